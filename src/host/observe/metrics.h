/* Counters and durations of the host, in the text format of Prometheus (0.0.4). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;
struct caller;
struct host;

/* Appends all metrics of the host. Returns 0, -ENOBUFS or -ENOMEM. */
int host_metrics_write(struct host *host, struct buf *out);

/* Appends those of the owners that the caller sees: of all for an admin, else of its own. */
int host_metrics_write_owners(struct host *host, const struct caller *caller, struct buf *out);

/* Count the start of a tool call, and its end with this result; its duration counts for its tier
 * (0: the host, 1: a worker, 2: a process). */
void host_tool_began(struct host *host);
void host_tool_ended(struct host *host, unsigned tier, uint64_t began_ns, int result);

/* The kind of a metric. Each metric is begun once, and its samples follow. */
enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };
int metric_begin(struct buf *out, const char *name, enum metric_kind kind, const char *help);

/* Appends one sample. labels is `a="b",c="d"`, or NULL; the caller ensures that the values need no
 * escaping. */
int metric_add(struct buf *out, const char *name, const char *labels, uint64_t value);
int metric_add_seconds(struct buf *out, const char *name, const char *labels, uint64_t ns);

/* A histogram of durations: `count` bounds and count + 1 buckets. Each duration is counted in one
 * bucket. */
struct metric_histogram {
    const uint64_t *bounds_ns;
    const uint64_t *buckets;
    size_t count;
    uint64_t total_ns;
};
int metric_add_histogram(struct buf *out, const char *name, const char *labels,
                         const struct metric_histogram *histogram);
