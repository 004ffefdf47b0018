// SPDX-License-Identifier: Apache-2.0
/* What envd answers by itself. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "e2b/control/usage.h"
#include "e2b/core/e2b.h"
#include "host/core/reactor.h"
#include "host/observe/stats.h"
#include "host/sandbox/sandbox.h"

enum { CPU_SAMPLE_MS = 100 };

/* That it is asked at all says that the sandbox runs. */
static enum MHD_Result health(struct e2b_request *request)
{
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

static int stats_take(const struct e2b_request *request, bool wants_space,
                      struct sandbox_stats *ret, struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    const char *ids[1] = { info.id };
    const struct stats_query query = {
        .caller = &caller_root, .ids = ids, .count = 1, .wants_space = wants_space
    };
    struct sandbox_stats *list = NULL;
    size_t count = 0;
    int r;

    sandbox_get_info(request->sandbox, false, &info);
    r = sandbox_list_stats(request->host, &query, &list, &count, err);
    if (r == 0 && count == 1)
        *ret = list[0];
    free(list);
    return r;
}

static enum MHD_Result metrics(struct e2b_request *request)
{
    struct sandbox_stats before = { 0 }, now = { 0 };
    struct e2b_whole whole;
    struct err err = { 0 };
    int r = stats_take(request, false, &before, &err);

    if (r == 0) {
        clock_sleep_ms(CPU_SAMPLE_MS);
        r = stats_take(request, true, &now, &err);
    }
    if (r < 0)
        return e2b_reply_err(request, &err);
    whole = e2b_whole_of(request, &now.limits, now.quota_bytes);
    return e2b_reply_json(
        request, MHD_HTTP_OK,
        json_pack("{s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "ts",
                  (json_int_t)(clock_wall_ms() / 1000), "cpu_count",
                  (json_int_t)e2b_cpu_count(&whole), "cpu_used_pct",
                  e2b_cpu_share(&whole, e2b_cpu_between(&before, &now)), "mem_total",
                  (json_int_t)whole.limits.memory_bytes, "mem_used", (json_int_t)now.memory_bytes,
                  "mem_cache", (json_int_t)now.cache_bytes, "disk_used", (json_int_t)now.space_used,
                  "disk_total", (json_int_t)whole.disk_bytes));
}

/* What every process gets. */
static enum MHD_Result envs(struct e2b_request *request)
{
    json_t *values = json_object_get(request->metadata, "envVars");

    return e2b_reply_json(request, MHD_HTTP_OK, values ? json_incref(values) : json_object());
}

static const struct e2b_route routes[] = {
    { "GET", "/health", .answer = health, .is_open = true },
    { "GET", "/metrics", .answer = metrics },
    { "GET", "/envs", .answer = envs },
};

const struct e2b_routes e2b_envd_routes = { routes, ARRAY_SIZE(routes) };
