/* Resource limits of a sandbox. */
#pragma once

#include <stdint.h>

enum { TOOL_OUTPUT_TOKENS_MAX = 1024 * 1024 }; /* tokens of the largest result of a tool call */

/* The highest limits of a sandbox. That of processes is the kernel's PID_MAX_LIMIT, that of
 * descriptors its default of fs.nr_open; the others are those of a template's settings, so that
 * every template can be started. */
enum { SANDBOX_CPUS_MAX = 4096, SANDBOX_PIDS_MAX = 4194304, SANDBOX_FILES_MAX = 1048576 };
#define SANDBOX_MEMORY_MAX (1ULL << 50)

/* 0 means the daemon's default. */
struct sandbox_limits {
    uint64_t memory_bytes;
    uint32_t cpu_millis;
    uint32_t pids;
    uint32_t files; /* descriptors of one process, hard limit */
};
