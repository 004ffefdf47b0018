// SPDX-License-Identifier: Apache-2.0
/* The control API: what sandboxes use, and have used. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "e2b/control/history.h"
#include "e2b/control/sandbox_json.h"
#include "e2b/control/usage.h"
#include "e2b/core/e2b.h"
#include "e2b/core/ref.h"
#include "host/core/host.h"
#include "host/core/reactor.h"
#include "host/observe/stats.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"

enum { LOOK_MS = 50, IDS_MAX = 100, SLACK_S = E2B_HISTORY_STEP_S };

/* Two looks: what a processor did is known only between two moments. */
struct looks {
    struct sandbox_stats *first, *second;
    size_t count;
};

static void looks_done(struct looks *looks)
{
    free(looks->first);
    free(looks->second);
}

static int looks_take(const struct e2b_request *request, const char *const *ids, size_t count,
                      struct looks *ret, struct err *err)
{
    struct stats_query query = { .caller = &request->exchange->caller, .ids = ids, .count = count };
    int r = sandbox_list_stats(request->host, &query, &ret->first, &ret->count, err);

    if (r < 0)
        return r;
    (void)poll(NULL, 0, LOOK_MS);
    query.wants_space = true;
    return sandbox_list_stats(request->host, &query, &ret->second, &ret->count, err);
}

static json_t *metric_json(const struct e2b_whole *whole, const struct e2b_sample *sample)
{
    return json_pack(
        "{s:o, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "timestamp",
        e2b_time_json(sample->at_s * 1000), "timestampUnix", (json_int_t)sample->at_s, "cpuCount",
        (json_int_t)e2b_cpu_count(whole), "cpuUsedPct", e2b_cpu_share(whole, sample->cpu_percent),
        "memUsed", (json_int_t)sample->memory_bytes, "memTotal",
        (json_int_t)whole->limits.memory_bytes, "memCache", (json_int_t)sample->cache_bytes,
        "diskUsed", (json_int_t)sample->disk_bytes, "diskTotal", (json_int_t)whole->disk_bytes);
}

/* The present. */
static json_t *now_json(struct e2b_request *request, const struct looks *looks, size_t index)
{
    const struct sandbox_stats *stats = &looks->second[index];
    const struct e2b_sample sample = {
        .at_s = clock_wall_ms() / 1000,
        .cpu_percent = e2b_cpu_between(&looks->first[index], stats),
        .memory_bytes = stats->memory_bytes,
        .cache_bytes = stats->cache_bytes,
        .disk_bytes = stats->space_used,
    };
    struct e2b_whole whole = e2b_whole_of(request, &stats->limits, stats->quota_bytes);

    return metric_json(&whole, &sample);
}

/* Seconds since 1970; absent: as it was. */
static int moment_parse(const struct e2b_request *request, const char *name, uint64_t *ret,
                        struct err *err)
{
    const char *text = e2b_query(request, name);

    if (text && parse_u64(text, ret) < 0)
        return err_set(err, ERR_INVALID, "%s must be a number of seconds since 1970", name);
    return 0;
}

/* The seconds that are asked about. */
struct range {
    uint64_t start_s, end_s;
};

static int range_parse(const struct e2b_request *request, struct range *ret, struct err *err)
{
    *ret = (struct range){ .end_s = UINT64_MAX };
    if (moment_parse(request, "start", &ret->start_s, err) < 0 ||
        moment_parse(request, "end", &ret->end_s, err) < 0)
        return err_wrap(err, "metrics");
    return ret->start_s > ret->end_s ? err_set(err, ERR_INVALID, "start must not be after end") : 0;
}

static json_t *history_json(struct e2b_request *request, const struct sandbox_info *info,
                            const struct range *range)
{
    struct e2b_whole whole = e2b_whole_of(request, &info->limits, info->quota_bytes);
    json_t *array = json_array();
    size_t count = 0;
    cleanup_free struct e2b_sample *samples =
        e2b_history_read(request->e2b->history, info->id, range->start_s, range->end_s, &count);

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(array, metric_json(&whole, &samples[i]));
    return array;
}

/* Whether the present is among it. Clocks of clients and ours differ a little, and so does the
 * moment that they wrote down. */
static bool has_now(const struct range *range)
{
    uint64_t now_s = clock_wall_ms() / 1000;

    return now_s - SLACK_S <= range->end_s && range->start_s <= now_s + SLACK_S;
}

/* Returns the samples; for an active sandbox without any, a current one. */
static enum MHD_Result one(struct e2b_request *request)
{
    cleanup_with(looks_done) struct looks looks = { 0 };
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    cleanup_json json_t *array = NULL;
    const char *id;
    struct range range;
    struct err err = { 0 };

    if (range_parse(request, &range, &err) < 0 || e2b_ref_find(request, &err) < 0)
        return e2b_reply_err(request, &err);
    e2b_history_begin(request->e2b->history);
    sandbox_get_info(request->sandbox, false, &info);
    array = history_json(request, &info, &range);
    if (json_array_size(array) == 0 && e2b_is_running(&info) && has_now(&range)) {
        id = info.id;
        if (looks_take(request, &id, 1, &looks, &err) < 0)
            return e2b_reply_err(request, &err);
        (void)json_array_append_new(array, now_json(request, &looks, 0));
    }
    return e2b_reply_json(request, MHD_HTTP_OK, TAKE_PTR(array));
}

/* Those of a list that are there, as Holt knows them; the number of them. */
static size_t ids_parse(const struct e2b_request *request, char ids[][SANDBOX_ID_MAX])
{
    const char *text = e2b_query(request, "sandbox_ids");
    size_t count = 0;

    while (text && *text && count < IDS_MAX) {
        size_t len = strcspn(text, ",");
        cleanup_free char *word = xasprintf("%.*s", (int)len, text);
        struct sandbox *sandbox;
        struct err ignored;

        if (e2b_id_to(word, ids[count]) && sandbox_find(request->host, &request->exchange->caller,
                                                        ids[count], &sandbox, &ignored) == 0) {
            sandbox_unref(sandbox);
            count++;
        }
        text += len;
        text += *text == ',';
    }
    return count;
}

static enum MHD_Result many(struct e2b_request *request)
{
    cleanup_with(looks_done) struct looks looks = { 0 };
    char ids[IDS_MAX][SANDBOX_ID_MAX], id[SANDBOX_ID_MAX];
    const char *list[IDS_MAX];
    size_t count = ids_parse(request, ids);
    struct err err = { 0 };
    json_t *object = json_object();

    for (size_t i = 0; i < count; i++)
        list[i] = ids[i];
    if (count > 0 && looks_take(request, list, count, &looks, &err) < 0) {
        json_decref(object);
        return e2b_reply_err(request, &err);
    }
    for (size_t i = 0; i < looks.count; i++)
        if (e2b_id_from(looks.second[i].id, id))
            (void)json_object_set_new(object, id, now_json(request, &looks, i));
    return e2b_reply_json(request, MHD_HTTP_OK, json_pack("{s:o}", "sandboxes", object));
}

static const struct e2b_route routes[] = {
    { "GET", "/sandboxes/metrics", .answer = many },
    { "GET", "/sandboxes/{}/metrics", .answer = one },
};

const struct e2b_routes e2b_metrics_routes = { routes, ARRAY_SIZE(routes) };
