// SPDX-License-Identifier: Apache-2.0
#include "host/observe/stats.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/fields.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "host/core/reactor.h"
#include "http/stream.h"

enum {
    IDS_MAX = 1024,
    INTERVAL_DEFAULT_MS = 1000,
    INTERVAL_MIN_MS = 100,
    INTERVAL_MAX_MS = 3600 * 1000,
    SPACE_EVERY_MS = 10000, /* some storage has to count files to know */
};

struct stats_request {
    char **ids; /* its own; none: all sandboxes */
    size_t count;
    uint64_t interval_ms;
};

static void stats_request_done(struct stats_request *request)
{
    for (size_t i = 0; i < request->count; i++)
        free(request->ids[i]);
    free(request->ids);
}

static int ids_parse(const json_t *request, struct stats_request *ret, struct err *err)
{
    const json_t *list = NULL;
    int r = json_get_array(request, "sandboxIds", &list, err);
    size_t count = json_array_size(list);

    if (r < 0)
        return r;
    if (count > IDS_MAX)
        return err_set(err, ERR_INVALID, "field 'sandboxIds' has more than %d", IDS_MAX);
    ret->ids = xcalloc(count + 1, sizeof(*ret->ids));
    for (size_t i = 0; i < count; i++) {
        const char *id = json_string_value(json_array_get(list, i));

        if (!id || !*id)
            return err_set(err, ERR_INVALID, "field 'sandboxIds' must be a list of ids or names");
        ret->ids[ret->count++] = xstrdup(id);
    }
    return 0;
}

static json_t *stats_json(const struct sandbox_stats *stats)
{
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "sandboxId",
        stats->id, "sandboxName", stats->name, "state", sandbox_state_name(stats->state), "ageMs",
        json_u64(stats->age_ms), "cpuUs", json_u64(stats->cpu_us), "cpuLimitMillis",
        (json_int_t)stats->limits.cpu_millis, "memoryBytes", json_u64(stats->memory_bytes),
        "cacheBytes", json_u64(stats->cache_bytes), "memoryLimitBytes",
        json_u64(stats->limits.memory_bytes), "pids", (json_int_t)stats->pids, "pidsLimit",
        (json_int_t)stats->limits.pids, "processes", (json_int_t)stats->processes, "spaceUsed",
        json_u64(stats->space_used), "quotaBytes", json_u64(stats->quota_bytes));
}

static const struct sandbox_stats *find(const struct sandbox_stats *list, size_t count,
                                        const char *id)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].id, id) == 0)
            return &list[i];
    return NULL;
}

/* Returns thousandths of a processor since the last sample; 0 for a restarted machine. */
static json_int_t cpu_millis(const struct sandbox_stats *now, const struct sandbox_stats *then)
{
    uint64_t ms = now->taken_ms - then->taken_ms;
    uint64_t used_us = now->cpu_us >= then->cpu_us ? now->cpu_us - then->cpu_us : now->cpu_us;

    return ms == 0 ? 0 : (json_int_t)(used_us / ms);
}

static int list_stats(struct host *host, const struct stats_request *wanted, bool wants_space,
                      struct sandbox_stats **ret, size_t *ret_count, struct err *err)
{
    const struct stats_query query = { (const char *const *)wanted->ids, wanted->count,
                                       wants_space };

    return sandbox_list_stats(host, &query, ret, ret_count, err);
}

int sandbox_service_stats(const struct call *call, const json_t *request, json_t **ret_reply,
                          struct err *err)
{
    static const char *const fields[] = { "sandboxIds", NULL };
    cleanup_with(stats_request_done) struct stats_request wanted = { 0 };
    cleanup_free struct sandbox_stats *list = NULL;
    cleanup_json json_t *array = json_array();
    size_t count = 0;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = ids_parse(request, &wanted, err);
    if (r == 0)
        r = list_stats(call->host, &wanted, true, &list, &count, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(array, stats_json(&list[i]));
    *ret_reply = json_pack("{s:O}", "stats", array);
    return *ret_reply && json_array_size(array) == count ? 0
                                                         : err_sys(err, -ENOMEM, "list statistics");
}

/* --- as a stream ------------------------------------------------------------------------------ */

struct stats_stream {
    struct stream stream;
    struct host *host;
    int connection_fd;
    struct stats_request request;
    struct sandbox_stats *last; /* of the message before */
    size_t last_count;
    uint64_t next_ms;       /* when the next one is due */
    uint64_t space_next_ms; /* when it asks the storage again */
};

/* Waits until the next sample is due: 0, or -ECANCELED when the client has gone. */
static int await(const struct stats_stream *self)
{
    struct pollfd hang_up = { .fd = self->connection_fd, .events = POLLRDHUP };
    uint64_t now_ms;

    while ((now_ms = clock_ms()) < self->next_ms) {
        int r = poll(&hang_up, 1, (int)(self->next_ms - now_ms));

        if (r > 0)
            return -ECANCELED;
        if (r < 0 && errno != EINTR)
            return -errno;
    }
    return 0;
}

/* A sandbox that is destroyed is left out from then on. */
static void forget_gone(struct stats_stream *self)
{
    size_t kept = 0;

    for (size_t i = 0; i < self->request.count; i++) {
        const struct stats_request alone = { .ids = &self->request.ids[i], .count = 1 };
        struct sandbox_stats *one = NULL;
        struct err ignored;
        size_t count = 0;

        if (list_stats(self->host, &alone, false, &one, &count, &ignored) == 0)
            self->request.ids[kept++] = self->request.ids[i];
        else
            free(self->request.ids[i]);
        free(one);
    }
    self->request.count = kept;
}

static int look(struct stats_stream *self, bool wants_space, struct sandbox_stats **ret,
                size_t *ret_count, struct err *err)
{
    bool is_all = self->request.count == 0;
    int r = list_stats(self->host, &self->request, wants_space, ret, ret_count, err);

    if (r == 0 || err->cause != CAUSE_SESSION_NOT_FOUND || is_all)
        return r;
    forget_gone(self);
    if (self->request.count == 0)
        return r;
    return list_stats(self->host, &self->request, wants_space, ret, ret_count, err);
}

static json_t *list_json(const struct stats_stream *self, struct sandbox_stats *list, size_t count,
                         bool has_space)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        const struct sandbox_stats *then = find(self->last, self->last_count, list[i].id);
        json_t *one;

        if (then && !has_space)
            list[i].space_used = then->space_used;
        one = stats_json(&list[i]);
        if (one && then)
            (void)json_object_set_new(one, "cpuMillis", json_integer(cpu_millis(&list[i], then)));
        (void)json_array_append_new(array, one);
    }
    return json_pack("{s:o}", "stats", array);
}

static int stats_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct stats_stream *self = (struct stats_stream *)stream;
    struct sandbox_stats *list = NULL;
    size_t count = 0;
    bool has_space;
    int r = await(self);

    if (r < 0)
        return r == -ECANCELED ? r : err_sys(err, r, "wait for the next statistics");
    r = host_is_open(self->host, err);
    if (r < 0)
        return r;
    has_space = clock_ms() >= self->space_next_ms;
    r = look(self, has_space, &list, &count, err);
    if (r < 0)
        return r;
    if (has_space)
        self->space_next_ms = clock_ms() + SPACE_EVERY_MS;
    r = message_add_take(out, list_json(self, list, count, has_space));
    free(self->last);
    self->last = list;
    self->last_count = count;
    self->next_ms = clock_ms() + self->request.interval_ms;
    return r < 0 ? err_sys(err, r, "write statistics") : 1;
}

static void stats_close(struct stream *stream)
{
    struct stats_stream *self = (struct stats_stream *)stream;

    stats_request_done(&self->request);
    free(self->last);
    free(self);
}

static const struct stream_ops stats_ops = { stats_next, stats_close };

static int watch_parse(const json_t *request, struct stats_request *ret, struct err *err)
{
    static const char *const fields[] = { "sandboxIds", "intervalMs", NULL };
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = json_get_u64(request, "intervalMs", &ret->interval_ms, err);
    if (r == 0 && ret->interval_ms == 0)
        ret->interval_ms = INTERVAL_DEFAULT_MS;
    if (r == 0 && (ret->interval_ms < INTERVAL_MIN_MS || ret->interval_ms > INTERVAL_MAX_MS))
        r = err_set(err, ERR_INVALID, "field 'intervalMs' must be between %d and %d",
                    INTERVAL_MIN_MS, INTERVAL_MAX_MS);
    return r < 0 ? r : ids_parse(request, ret, err);
}

int sandbox_service_watch_stats(const struct call *call, const json_t *request, struct stream **ret,
                                struct err *err)
{
    struct stats_stream *self = xcalloc(1, sizeof(*self));
    int r = watch_parse(request, &self->request, err);

    if (r < 0) {
        stats_close(&self->stream);
        return r;
    }
    self->stream.ops = &stats_ops;
    self->host = call->host;
    self->connection_fd = call->connection_fd;
    *ret = &self->stream;
    return 0;
}
