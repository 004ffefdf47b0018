// SPDX-License-Identifier: Apache-2.0
#include "api/metrics_page.h"

#include <stdio.h>
#include <string.h>

#include "api/route.h"
#include "base/buf.h"
#include "base/err.h"
#include "e2b/core/e2b.h"
#include "e2b/core/route.h"
#include "host/observe/metrics.h"
#include "http/call_stats.h"
#include "http/limits.h"

enum { NAME_SIZE = 120, LABEL_SIZE = 160 };

_Static_assert((int)CALL_STATS_METHODS > (int)ROUTES_MAX, "E2B's methods are behind Holt's");

/* "/holt.v1.SandboxService/Create" without what is the same everywhere. */
static void name_write(const struct route *route, char ret[NAME_SIZE])
{
    static const char prefix[] = "/holt.v1.";
    bool has_prefix = strncmp(route->path, prefix, strlen(prefix)) == 0;

    (void)snprintf(ret, NAME_SIZE, "%s", route->path + (has_prefix ? strlen(prefix) : 0));
}

/* "e2b.control GET /sandboxes/{}", as the table has it: what clients write is in no name. */
static bool e2b_name_write(size_t index, char ret[NAME_SIZE])
{
    const char *place;
    const struct e2b_route *route = e2b_route_at(index, &place);

    if (route)
        (void)snprintf(ret, NAME_SIZE, "e2b.%s %s %s", place, route->verb, route->path);
    return route != NULL;
}

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

/* Methods that nobody has called are left out. */
static int write_each(struct buf *out,
                      int (*write)(const char *name, const struct call_stats *stats,
                                   struct buf *out))
{
    const struct route *route;
    char name[NAME_SIZE];
    struct call_stats stats;
    int r = 0;

    for (size_t i = 0; r == 0 && (route = route_at(i)); i++) {
        name_write(route, name);
        call_stats_get(i, &stats);
        r = write(name, &stats, out);
    }
    for (size_t i = 0; r == 0 && e2b_name_write(i, name); i++) {
        call_stats_get(ROUTES_MAX + i, &stats);
        r = write(name, &stats, out);
    }
    return r;
}

int metrics_page_fill(struct host *host, struct buf *out)
{
    int r = host_metrics_write(host, out);

    if (r == 0)
        r = metric_begin(out, "holt_connections", METRIC_GAUGE, "Clients that are connected.");
    if (r == 0)
        r = metric_add(out, "holt_connections", NULL, connection_limits_count());
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
