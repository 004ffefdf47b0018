// SPDX-License-Identifier: Apache-2.0
#include "host/observe/stats.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "api/service.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "host/core/reactor.h"
#include "http/stream.h"

enum {
    INTERVAL_DEFAULT_MS = 1000,
    SPACE_EVERY_MS = 10000, /* some storage has to count files to know */
};

struct stats_request {
    struct caller caller;
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

static struct msg_sandbox_stats stats_message(const struct sandbox_stats *stats)
{
    return (struct msg_sandbox_stats){
        .sandbox_id = stats->id,
        .sandbox_name = stats->name,
        .state = sandbox_state_name(stats->state),
        .age_ms = stats->age_ms,
        .cpu_us = stats->cpu_us,
        .cpu_limit_millis = stats->limits.cpu_millis,
        .memory_bytes = stats->memory_bytes,
        .cache_bytes = stats->cache_bytes,
        .memory_limit_bytes = stats->limits.memory_bytes,
        .pids = stats->pids,
        .pids_limit = stats->limits.pids,
        .processes = stats->processes,
        .space_used = stats->space_used,
        .quota_bytes = stats->quota_bytes,
        .owner = stats->owner,
    };
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
static uint32_t cpu_millis(const struct sandbox_stats *now, const struct sandbox_stats *then)
{
    uint64_t ms = now->taken_ms - then->taken_ms;
    uint64_t used_us = now->cpu_us >= then->cpu_us ? now->cpu_us - then->cpu_us : now->cpu_us;

    return ms == 0 ? 0 : (uint32_t)(used_us / ms);
}

static int list_stats(struct host *host, const struct stats_request *wanted, bool wants_space,
                      struct sandbox_stats **ret, size_t *ret_count, struct err *err)
{
    const struct stats_query query = { &wanted->caller, (const char *const *)wanted->ids,
                                       wanted->count, wants_space };

    return sandbox_list_stats(host, &query, ret, ret_count, err);
}

int sandbox_service_stats(const struct call *call, const struct msg_stats_request *request,
                          struct err *err)
{
    const struct stats_query query = { call->caller, request->sandbox_ids,
                                       request->sandbox_ids_count, true };
    cleanup_free struct sandbox_stats *list = NULL;
    struct msg_sandbox_stats *stats;
    size_t count = 0;
    int r = sandbox_list_stats(call->host, &query, &list, &count, err);

    if (r < 0)
        return r;
    stats = arena_take(call->arena, count, sizeof(*stats));
    for (size_t i = 0; i < count; i++)
        stats[i] = stats_message(&list[i]);
    return call_reply(call, MESSAGE(msg_stats_response, .stats = stats, .stats_count = count), err);
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
        const struct stats_request alone = { .caller = self->request.caller,
                                             .ids = &self->request.ids[i],
                                             .count = 1 };
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

static int list_add(const struct stats_stream *self, struct sandbox_stats *list, size_t count,
                    bool has_space, struct buf *out)
{
    cleanup_free struct msg_sandbox_stats *stats = xcalloc(count + 1, sizeof(*stats));

    for (size_t i = 0; i < count; i++) {
        const struct sandbox_stats *then = find(self->last, self->last_count, list[i].id);

        if (then && !has_space)
            list[i].space_used = then->space_used;
        stats[i] = stats_message(&list[i]);
        stats[i].has_cpu_millis = then != NULL;
        stats[i].cpu_millis = then ? cpu_millis(&list[i], then) : 0;
    }
    return message_add(out, MESSAGE(msg_stats_response, .stats = stats, .stats_count = count));
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
    r = list_add(self, list, count, has_space, out);
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

int sandbox_service_watch_stats(const struct call *call,
                                const struct msg_watch_stats_request *request, struct stream **ret,
                                struct err *err)
{
    struct stats_stream *self = xcalloc(1, sizeof(*self));

    (void)err;
    self->stream.ops = &stats_ops;
    self->host = call->host;
    self->connection_fd = call->connection_fd;
    self->request.caller = *call->caller;
    self->request.ids = xcalloc(request->sandbox_ids_count + 1, sizeof(*self->request.ids));
    self->request.count = request->sandbox_ids_count;
    for (size_t i = 0; i < self->request.count; i++)
        self->request.ids[i] = xstrdup(request->sandbox_ids[i]);
    self->request.interval_ms =
        request->interval_ms > 0 ? request->interval_ms : INTERVAL_DEFAULT_MS;
    *ret = &self->stream;
    return 0;
}
