/* Resource limits of a sandbox. */
#pragma once

#include <stdint.h>

/* 0 means the daemon's default. */
struct sandbox_limits {
    uint64_t memory_bytes;
    uint32_t cpu_millis;
    uint32_t pids;
};
