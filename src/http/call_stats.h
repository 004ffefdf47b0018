/* How many calls of each method ended how, and how long they took. Adding takes no lock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    CALL_STATS_BUCKETS = 16,
    CALL_STATS_METHODS = 256, /* Holt's, which have their route_index, and behind them E2B's */
};

/* What one method's calls were like. A reader may see a call in one field and not yet in another.
 */
struct call_stats {
    uint64_t by_kind[ERR_KINDS];              /* ERR_NONE: went well */
    uint64_t buckets[CALL_STATS_BUCKETS + 1]; /* each call in one; the last: longer than all */
    uint64_t total_ns;
};

/* The upper ends of the buckets, 100 us to 10 s. */
extern const uint64_t call_stats_bounds_ns[CALL_STATS_BUCKETS];

/* A call has ended. */
void call_stats_add(size_t method, enum err_kind kind, uint64_t ns);

void call_stats_get(size_t method, struct call_stats *ret);
