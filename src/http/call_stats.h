/* Counts the calls of each method by outcome and duration. Adding takes no lock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    CALL_STATS_BUCKETS = 16,
    CALL_STATS_METHODS = 256, /* of all front ends together */
    CALL_STATS_NAME_SIZE = 120,
};

/* The calls of one method. A reader may see a call in one field and not yet in another. */
struct call_stats {
    uint64_t by_kind[ERR_KINDS];              /* ERR_NONE: succeeded */
    uint64_t buckets[CALL_STATS_BUCKETS + 1]; /* each call in one; the last: longer than all */
    uint64_t total_ns;
};

/* The upper ends of the buckets, 100 us to 10 s. */
extern const uint64_t call_stats_bounds_ns[CALL_STATS_BUCKETS];

/* Counts a call that has ended. `method` is the front end's first_method plus its own index. */
void call_stats_add(size_t method, enum err_kind kind, uint64_t ns);

void call_stats_get(size_t method, struct call_stats *ret);
