// SPDX-License-Identifier: Apache-2.0
/* The control API: what sandboxes use. E2B keeps a sample for every five seconds; here there is the
 * present one. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "api/e2b.h"
#include "api/e2b_ref.h"
#include "api/e2b_sandbox_json.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "host/host.h"
#include "host/reactor.h"
#include "host/sandbox.h"
#include "host/stats.h"

enum { LOOK_MS = 50, IDS_MAX = 100, SLACK_S = 5 };

/* Two looks: what a processor did is known only between two moments. */
struct sample {
    struct sandbox_stats *first, *second;
    size_t count;
};

static void sample_done(struct sample *sample)
{
    free(sample->first);
    free(sample->second);
}

static int sample_take(struct host *host, const char *const *ids, size_t count, struct sample *ret,
                       struct err *err)
{
    struct stats_query query = { .ids = ids, .count = count };
    int r = sandbox_list_stats(host, &query, &ret->first, &ret->count, err);

    if (r < 0)
        return r;
    (void)poll(NULL, 0, LOOK_MS);
    query.wants_space = true;
    return sandbox_list_stats(host, &query, &ret->second, &ret->count, err);
}

static double cpu_percent(const struct sandbox_stats *first, const struct sandbox_stats *second)
{
    uint64_t ms = second->taken_ms - first->taken_ms;

    if (ms == 0 || second->cpu_us < first->cpu_us)
        return 0;
    return (double)(second->cpu_us - first->cpu_us) / (double)ms / 10;
}

static json_t *metric_json(struct host *host, const struct sample *sample, size_t index)
{
    const struct sandbox_stats *stats = &sample->second[index];
    struct sandbox_limits limits;
    struct host_health health;
    uint64_t now_ms = clock_wall_ms(), disk = stats->quota_bytes;

    sandbox_limits_in_force(host, &stats->limits, &limits);
    if (disk == 0) {
        host_health(host, &health);
        disk = health.storage_used + health.storage_available;
    }
    return json_pack("{s:o, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "timestamp",
                     e2b_time_json(now_ms), "timestampUnix", (json_int_t)(now_ms / 1000),
                     "cpuCount", (json_int_t)((limits.cpu_millis + 999) / 1000), "cpuUsedPct",
                     cpu_percent(&sample->first[index], stats), "memUsed",
                     (json_int_t)stats->memory_bytes, "memTotal", (json_int_t)limits.memory_bytes,
                     "memCache", (json_int_t)stats->cache_bytes, "diskUsed",
                     (json_int_t)stats->space_used, "diskTotal", (json_int_t)disk);
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

static enum MHD_Result one(struct e2b_request *request)
{
    cleanup_with(sample_done) struct sample sample = { 0 };
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    uint64_t start_s = 0, end_s = UINT64_MAX, now_s = clock_wall_ms() / 1000;
    const char *id;
    struct err err = { 0 };

    if (moment_parse(request, "start", &start_s, &err) < 0 ||
        moment_parse(request, "end", &end_s, &err) < 0)
        return e2b_reply_err(request, &err);
    if (start_s > end_s)
        return e2b_reply_error(request, MHD_HTTP_BAD_REQUEST, "start must not be after end");
    if (e2b_ref_find(request, &err) < 0)
        return e2b_reply_err(request, &err);
    /* Clocks of clients and ours differ a little, and so does the moment that they wrote down. */
    if (now_s - SLACK_S > end_s || start_s > now_s + SLACK_S)
        return e2b_reply_json(request, MHD_HTTP_OK, json_array());
    sandbox_get_info(request->sandbox, false, &info);
    id = info.id;
    if (!e2b_is_running(&info))
        return e2b_reply_json(request, MHD_HTTP_OK, json_array());
    if (sample_take(request->host, &id, 1, &sample, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_OK,
                          json_pack("[o]", metric_json(request->host, &sample, 0)));
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

        if (e2b_id_to(word, ids[count]) &&
            sandbox_find(request->host, ids[count], &sandbox, &ignored) == 0) {
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
    cleanup_with(sample_done) struct sample sample = { 0 };
    char ids[IDS_MAX][SANDBOX_ID_MAX], id[SANDBOX_ID_MAX];
    const char *list[IDS_MAX];
    size_t count = ids_parse(request, ids);
    struct err err = { 0 };
    json_t *object = json_object();

    for (size_t i = 0; i < count; i++)
        list[i] = ids[i];
    if (count > 0 && sample_take(request->host, list, count, &sample, &err) < 0) {
        json_decref(object);
        return e2b_reply_err(request, &err);
    }
    for (size_t i = 0; i < sample.count; i++)
        if (e2b_id_from(sample.second[i].id, id))
            (void)json_object_set_new(object, id, metric_json(request->host, &sample, i));
    return e2b_reply_json(request, MHD_HTTP_OK, json_pack("{s:o}", "sandboxes", object));
}

static const struct e2b_route routes[] = {
    { "GET", "/sandboxes/metrics", .answer = many },
    { "GET", "/sandboxes/{}/metrics", .answer = one },
};

const struct e2b_routes e2b_metrics_routes = { routes, ARRAY_SIZE(routes) };
