/* Counters on the request path: without locks, a few nanoseconds each. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "host/observe/event.h"
#include "host/observe/metrics.h"

/* Operations with a measured duration. */
enum timed {
    TIMED_CREATE,
    TIMED_RUN,  /* the creation of a throw-away machine */
    TIMED_EXEC, /* from the request until the guest has started the process */
    TIMED_SNAPSHOT,
    TIMED_ROLLBACK,
    TIMED_FORK,
    TIMED_PAUSE,
    TIMED_DEEP_PAUSE, /* a deep resume is a resume or a start */
    TIMED_RESUME,
    TIMED_STOP,
    TIMED_START,
    TIMED_DESTROY,
    TIMED_TOOL_HOST, /* tool calls, by tier */
    TIMED_TOOL_WORKER,
    TIMED_TOOL_PROCESS,
    TIMED_COUNT
};

enum { METRICS_BUCKETS = 16 };

struct metrics {
    atomic_uint_fast64_t events[EVENT_TYPES];
    struct {
        atomic_uint_fast64_t buckets[METRICS_BUCKETS + 1];
        atomic_uint_fast64_t total_ns;
        atomic_uint_fast64_t failures;
    } timed[TIMED_COUNT];
    atomic_uint_fast64_t pool_hits, pool_misses;
    atomic_uint_fast64_t tools_running;
    atomic_uint_fast64_t process_ends[8]; /* by enum outcome */
};

/* Records the end of an operation; returns the result, for use in a return statement. */
int metrics_note(struct metrics *metrics, enum timed what, uint64_t began_ns, int result);

static inline void metrics_add(atomic_uint_fast64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static inline uint32_t metrics_tools_running(const struct metrics *metrics)
{
    return (uint32_t)atomic_load_explicit(&metrics->tools_running, memory_order_relaxed);
}

static inline void metrics_count_event(struct metrics *metrics, enum event_type type)
{
    metrics_add(&metrics->events[type]);
}
