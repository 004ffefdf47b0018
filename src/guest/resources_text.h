/* Texts of files in /proc and /sys/fs/cgroup, made from the counters of a control group. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of memory, microseconds of CPU time. */
struct resource_state {
    uint64_t memory_limit, memory_used;
    uint64_t anon_active, anon_inactive, file_active, file_inactive, shmem;
    uint64_t usage_us, user_us, system_us;
    uint64_t processes;
    uint64_t oom_kills;
    uint32_t cpus;
    uint64_t up_ms;   /* since the sandbox was created */
    uint64_t begun_s; /* when that was, in seconds since 1970 */
    double load[3];
};

/* Parses the number at the start of a text; 0 if there is none. */
uint64_t resources_number(const char *text);

/* Fill in what memory.stat (of cgroup v1 or v2) and cpu.stat (of v2) contain. */
void resources_read_memory(const char *text, struct resource_state *ret);
void resources_read_cpu(const char *text, struct resource_state *ret);

/* Returns the OOM kills that memory.events of v2 or memory.oom_control of v1 counts. */
uint64_t resources_read_oom_kills(const char *text);

/* Updates the averages of the CPUs in use, after so many microseconds of CPU time were used in so
 * many milliseconds. */
void resources_load(double load[3], uint64_t passed_ms, uint64_t used_us);

/* Write the text of a file. */
void resources_meminfo(const struct resource_state *state, char *text, size_t size);
void resources_loadavg(const struct resource_state *state, char *text, size_t size);
void resources_stat(const struct resource_state *state, char *text, size_t size);
void resources_memory_stat(const struct resource_state *state, char *text, size_t size);
void resources_memory_events(const struct resource_state *state, char *text, size_t size);
