/* What the machine and its sandboxes used during the last hour: a sample every five seconds, kept
 * in memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;
struct history;
struct host;

enum { HISTORY_INTERVAL_MS = 5000, HISTORY_SAMPLES = 720 };

struct history_sample {
    uint64_t at_ms; /* since 1970 */
    double cpu;     /* busy part of all processors since the sample before, 0 to 1 */
    double load;    /* average of one minute */
    uint64_t memory_used, memory_total;
    uint64_t storage_used, storage_available;
    uint32_t active, paused, stopped, other; /* sandboxes by state */
    uint32_t runs, processes;
    uint32_t pool_ready, pool_size;
};

/* Starts the thread that takes the samples. */
int history_start(struct host *host, struct history **ret, struct err *err);

/* Ends the thread. Accepts NULL. */
void history_stop(struct history *history);

/* Copies the last samples, at most `max`, oldest first, and returns their number. */
size_t host_read_history(struct host *host, struct history_sample *ret, size_t max);

/* The processor time of the machine, as /proc/stat has it. */
struct cpu_time {
    uint64_t busy, total;
};

/* Reads the first line of /proc/stat; zero if it is none. */
struct cpu_time cpu_time_parse(const char *text);

/* Returns the busy part, 0 to 1, of what has passed between the two. */
double cpu_time_share(const struct cpu_time *before, const struct cpu_time *now);
