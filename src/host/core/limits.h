/* Resource limits of a sandbox. */
#pragma once

#include <stdint.h>

enum { TOOL_OUTPUT_TOKENS_MAX = 1024 * 1024 }; /* tokens of the largest result of a tool call */

/* 0 means the daemon's default. */
struct sandbox_limits {
    uint64_t memory_bytes;
    uint32_t cpu_millis;
    uint32_t pids;
    uint32_t files; /* descriptors of one process, hard limit */
};
