/* How many calls of each method ended how, and how long they took. Adding takes no lock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct route;

enum { CALL_STATS_BUCKETS = 16 };

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
void call_stats_add(const struct route *route, enum err_kind kind, uint64_t ns);

/* Of one method, all of them being route_at(0) and so on. */
void call_stats_get(const struct route *route, struct call_stats *ret);
