// SPDX-License-Identifier: Apache-2.0
#include "http/call_stats.h"

#include <stdatomic.h>

struct counters {
    atomic_uint_fast64_t by_kind[ERR_KINDS];
    atomic_uint_fast64_t buckets[CALL_STATS_BUCKETS + 1];
    atomic_uint_fast64_t total_ns;
};

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

const uint64_t call_stats_bounds_ns[CALL_STATS_BUCKETS] = {
    100 * US, 250 * US, 500 * US, 1 * MS,   2500 * US, 5 * MS,    10 * MS,   25 * MS,
    50 * MS,  100 * MS, 250 * MS, 500 * MS, 1000 * MS, 2500 * MS, 5000 * MS, 10000 * MS,
};

/* Of the process, as its routes are. */
static struct counters counted[CALL_STATS_METHODS];

static void count(atomic_uint_fast64_t *counter, uint64_t more)
{
    (void)atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static uint64_t read_count(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void call_stats_add(size_t method, enum err_kind kind, uint64_t ns)
{
    struct counters *counters = &counted[method];
    size_t bucket = 0;

    while (bucket < CALL_STATS_BUCKETS && ns > call_stats_bounds_ns[bucket])
        bucket++;
    count(&counters->by_kind[kind < ERR_KINDS ? kind : ERR_INTERNAL], 1);
    count(&counters->buckets[bucket], 1);
    count(&counters->total_ns, ns);
}

void call_stats_get(size_t method, struct call_stats *ret)
{
    const struct counters *counters = &counted[method];

    for (size_t i = 0; i < ERR_KINDS; i++)
        ret->by_kind[i] = read_count(&counters->by_kind[i]);
    for (size_t i = 0; i <= CALL_STATS_BUCKETS; i++)
        ret->buckets[i] = read_count(&counters->buckets[i]);
    ret->total_ns = read_count(&counters->total_ns);
}
