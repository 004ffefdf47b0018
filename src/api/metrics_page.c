// SPDX-License-Identifier: Apache-2.0
#include "api/metrics_page.h"

#include <stdio.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/buf.h"
#include "base/err.h"
#include "host/observe/metrics.h"
#include "http/call_stats.h"
#include "http/exchange.h"
#include "http/frontend.h"
#include "http/limits.h"

enum { LABEL_SIZE = CALL_STATS_NAME_SIZE + 40 };

static const char *code_of(enum err_kind kind)
{
    return kind == ERR_NONE ? "ok" : err_kind_row(kind)->code;
}

static int write_codes(const char *name, const struct call_stats *stats, struct buf *out)
{
    char label[LABEL_SIZE];
    int r = 0;

    for (enum err_kind kind = ERR_NONE; r == 0 && kind < ERR_KINDS; kind++) {
        if (stats->by_kind[kind] == 0)
            continue;
        (void)snprintf(label, sizeof(label), "method=\"%s\",code=\"%s\"", name, code_of(kind));
        r = metric_add(out, "holt_rpc_total", label, stats->by_kind[kind]);
    }
    return r;
}

static int write_times(const char *name, const struct call_stats *stats, struct buf *out)
{
    const struct metric_histogram histogram = { call_stats_bounds_ns, stats->buckets,
                                                CALL_STATS_BUCKETS, stats->total_ns };
    char label[LABEL_SIZE];
    uint64_t count = 0;

    for (size_t i = 0; i <= CALL_STATS_BUCKETS; i++)
        count += stats->buckets[i];
    if (count == 0)
        return 0;
    (void)snprintf(label, sizeof(label), "method=\"%s\"", name);
    return metric_add_histogram(out, "holt_rpc_duration_seconds", label, &histogram);
}

typedef int (*write_fn)(const char *name, const struct call_stats *stats, struct buf *out);

static int write_frontend(const struct frontend *frontend, struct buf *out, write_fn write)
{
    char name[CALL_STATS_NAME_SIZE];
    struct call_stats stats;
    int r = 0;

    for (size_t i = 0; r == 0 && frontend->ops->method_name(i, name, sizeof(name)); i++) {
        call_stats_get(frontend->first_method + i, &stats);
        r = write(name, &stats, out);
    }
    return r;
}

/* Leaves out methods that were never called. */
static int write_each(const struct listener *listener, struct buf *out, write_fn write)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < listener->frontend_count; i++)
        if (listener->frontends[i].ops->method_name)
            r = write_frontend(&listener->frontends[i], out, write);
    return r;
}

int metrics_page_fill(struct host *host, const struct listener *listener,
                      const struct caller *caller, struct buf *out)
{
    int r = host_metrics_write_owners(host, caller, out);

    if (r < 0 || !caller_may_watch_host(caller))
        return r;
    r = host_metrics_write(host, out);
    if (r == 0)
        r = metric_begin(out, "holt_connections", METRIC_GAUGE, "Clients that are connected.");
    if (r == 0)
        r = metric_add(out, "holt_connections", NULL, connection_limits_count());
    if (r == 0)
        r = metric_begin(out, "holt_rpc_total", METRIC_COUNTER,
                         "Calls that have ended, by method and Connect code.");
    if (r == 0)
        r = write_each(listener, out, write_codes);
    if (r == 0)
        r = metric_begin(out, "holt_rpc_duration_seconds", METRIC_HISTOGRAM,
                         "How long calls took; streams from their begin to their end.");
    return r < 0 ? r : write_each(listener, out, write_times);
}
