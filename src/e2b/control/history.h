/* Usage of sandboxes: one sample every five seconds of each active one, for an hour, in memory.
 * Sampling starts with the first E2B request about sandboxes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct e2b_history;
struct host;

enum { E2B_HISTORY_STEP_S = 5 };

struct e2b_sample {
    uint64_t at_s;        /* since 1970 */
    uint64_t cpu_percent; /* of one processor, in hundredths */
    uint64_t memory_bytes, cache_bytes;
    uint64_t disk_bytes; /* looked at every minute */
};

struct e2b_history *e2b_history_new(struct host *host);

/* Accepts NULL. */
void e2b_history_free(struct e2b_history *history);

/* Samples are taken from now on. */
void e2b_history_begin(struct e2b_history *history);

/* Those of a sandbox from one second to another, oldest first, for the caller to free. */
struct e2b_sample *e2b_history_read(struct e2b_history *history, const char *sandbox,
                                    uint64_t start_s, uint64_t end_s, size_t *ret_count);
