// SPDX-License-Identifier: Apache-2.0
#include "api/metrics_page.h"

#include <stdio.h>
#include <string.h>

#include "api/call_stats.h"
#include "api/guard.h"
#include "api/route.h"
#include "base/buf.h"
#include "base/err.h"
#include "host/metrics.h"

enum { LABEL_SIZE = 160 };

/* "/holt.v1.SandboxService/Create" without what is the same everywhere. */
static const char *method_of(const struct route *route)
{
    static const char prefix[] = "/holt.v1.";

    return strncmp(route->path, prefix, strlen(prefix)) == 0 ? route->path + strlen(prefix)
                                                             : route->path;
}

static const char *code_of(enum err_kind kind)
{
    return kind == ERR_NONE ? "ok" : err_kind_row(kind)->code;
}

static int write_codes(const struct route *route, const struct call_stats *stats, struct buf *out)
{
    char label[LABEL_SIZE];
    int r = 0;

    for (enum err_kind kind = ERR_NONE; r == 0 && kind < ERR_KINDS; kind++) {
        if (stats->by_kind[kind] == 0)
            continue;
        (void)snprintf(label, sizeof(label), "method=\"%s\",code=\"%s\"", method_of(route),
                       code_of(kind));
        r = metric_add(out, "holt_rpc_total", label, stats->by_kind[kind]);
    }
    return r;
}

static int write_times(const struct route *route, const struct call_stats *stats, struct buf *out)
{
    const struct metric_histogram histogram = { call_stats_bounds_ns, stats->buckets,
                                                CALL_STATS_BUCKETS, stats->total_ns };
    char label[LABEL_SIZE];
    uint64_t count = 0;

    for (size_t i = 0; i <= CALL_STATS_BUCKETS; i++)
        count += stats->buckets[i];
    if (count == 0)
        return 0;
    (void)snprintf(label, sizeof(label), "method=\"%s\"", method_of(route));
    return metric_add_histogram(out, "holt_rpc_duration_seconds", label, &histogram);
}

/* Methods that nobody has called are left out. */
static int write_each(struct buf *out,
                      int (*write)(const struct route *route, const struct call_stats *stats,
                                   struct buf *out))
{
    const struct route *route;
    struct call_stats stats;
    int r = 0;

    for (size_t i = 0; r == 0 && (route = route_at(i)); i++) {
        call_stats_get(route, &stats);
        r = write(route, &stats, out);
    }
    return r;
}

int metrics_page_fill(struct host *host, struct buf *out)
{
    int r = host_metrics_write(host, out);

    if (r == 0)
        r = metric_begin(out, "holt_connections", METRIC_GAUGE, "Clients that are connected.");
    if (r == 0)
        r = metric_add(out, "holt_connections", NULL, guard_count());
    if (r == 0)
        r = metric_begin(out, "holt_rpc_total", METRIC_COUNTER,
                         "Calls that have ended, by method and Connect code.");
    if (r == 0)
        r = write_each(out, write_codes);
    if (r == 0)
        r = metric_begin(out, "holt_rpc_duration_seconds", METRIC_HISTOGRAM,
                         "How long calls took; streams from their begin to their end.");
    return r < 0 ? r : write_each(out, write_times);
}
