// SPDX-License-Identifier: Apache-2.0
#include "host/observe/event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/observe/event_ring.h"
#include "host/sandbox/sandbox.h"
#include "http/stream.h"

enum {
    HEARTBEAT_MS = 15000,
    PATTERN_MAX = 64,        /* bytes */
    BATCH_BYTES = 64 * 1024, /* of messages that are sent together */
    SEEN_MAX = 100000,       /* sandboxes that a stream remembers */
};

struct watch_stream {
    struct stream stream;
    struct host *host;
    int connection_fd;
    bool follows;
    bool is_announced;
    uint64_t last; /* number of the last event when it was opened */
    struct event_reader *reader;
    struct caller caller;
    json_t *seen; /* ids of sandboxes that were in the scope of the caller; NULL: it has none */
};

static int heartbeat_put(struct buf *out, uint64_t seq)
{
    const struct msg_heartbeat heartbeat = { .seq = seq };

    return message_add(out, MESSAGE(msg_watch_response, .heartbeat = &heartbeat));
}

static int event_put(struct buf *out, uint64_t seq, const struct event *event)
{
    cleanup_json json_t *fields = json_loadb(event->fields, event->len, 0, NULL);
    const struct msg_event message = {
        .seq = seq,
        .time_ms = event->time_ms,
        .type = event_type_name(event->type),
        .sandbox_id = event->sandbox,
        .sandbox_name = event->name,
        .fields = fields,
        .owner = event->owner,
    };

    return message_add(out, MESSAGE(msg_watch_response, .event = &message));
}

/* Returns whether the event is in the scope of the caller. A sandbox that has been in it stays, so
 * that its end is reported too. */
static bool is_in_scope(const struct watch_stream *watch, const struct event *event)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct err ignored;

    if (!watch->seen)
        return true;
    if (!event->sandbox[0])
        return false;
    if (sandbox_find(watch->host, &watch->caller, event->sandbox, &sandbox, &ignored) == 0 &&
        json_object_size(watch->seen) < SEEN_MAX)
        (void)json_object_set_new(watch->seen, event->sandbox, json_true());
    return sandbox || json_object_get(watch->seen, event->sandbox);
}

/* Whatever there is, up to some bytes: how many messages, or -errno. */
static int batch_put(struct watch_stream *watch, struct buf *out)
{
    int count = 0, r = 0;

    while (r == 0 && out->len < BATCH_BYTES) {
        uint64_t lost = 0;
        struct event *event = event_reader_take(watch->reader, &lost);

        if (lost > 0)
            r = message_add(out, MESSAGE(msg_watch_response, .lost = lost, .has_lost = true));
        count += lost > 0;
        if (!event)
            break;
        if (r == 0 && is_in_scope(watch, event)) {
            r = event_put(out, event_reader_seq(watch->reader), event);
            count++;
        }
        event_unref(event);
    }
    return r < 0 ? r : count;
}

/* 1 when there may be something to send, 0 when that was all, or -errno. */
static int await(struct watch_stream *watch, struct buf *out, struct err *err)
{
    int r =
        event_reader_wait(watch->reader, watch->connection_fd, watch->follows ? HEARTBEAT_MS : 0);

    if (r == -ETIMEDOUT && !watch->follows)
        return 0;
    if (r == -ETIMEDOUT)
        r = heartbeat_put(out, event_reader_last(watch->reader));
    if (r == -ESHUTDOWN && watch->follows)
        return err_refuse(err, CAUSE_SHUTTING_DOWN, "the daemon is shutting down");
    if (r == -ESHUTDOWN)
        return 0;
    if (r < 0 && r != -ECANCELED)
        return err_sys(err, r, "wait for events");
    return r < 0 ? r : 1;
}

/* Sends the start position at once, so that the client knows that it is subscribed. */
static int watch_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct watch_stream *watch = (struct watch_stream *)stream;
    int r;

    if (!watch->is_announced && watch->follows) {
        watch->is_announced = true;
        r = heartbeat_put(out, watch->last);
        return r < 0 ? err_sys(err, r, "write a heartbeat") : 1;
    }
    for (;;) {
        r = batch_put(watch, out);
        if (r < 0)
            return err_sys(err, r, "write an event");
        if (r > 0)
            return 1;
        r = await(watch, out, err);
        if (r <= 0 || out->len > 0)
            return r;
    }
}

static void watch_close(struct stream *stream)
{
    struct watch_stream *watch = (struct watch_stream *)stream;

    event_reader_close(watch->reader);
    json_decref(watch->seen);
    free(watch);
}

static const struct stream_ops watch_ops = { watch_next, watch_close };

/* Bits of the types that one of the patterns matches; all when there is none. */
static int types_find(const struct msg_watch_request *request, event_set *ret, struct err *err)
{
    *ret = request->types_count == 0 ? EVENT_SET_ALL : 0;
    for (size_t i = 0; i < request->types_count; i++) {
        const char *pattern = request->types[i];
        event_set types = strlen(pattern) <= PATTERN_MAX ? event_types_matching(pattern) : 0;

        if (types == 0)
            return err_set(err, ERR_INVALID, "no event type matches '%.40s'", pattern);
        *ret |= types;
    }
    return 0;
}

static int reader_spec_fill(const struct msg_watch_request *request, struct event_reader_spec *ret,
                            struct err *err)
{
    *ret = (struct event_reader_spec){ .start = EVENT_FROM_NOW,
                                       .sandbox = text_or_null(request->sandbox_id) };
    if (request->has_since && request->since_time_ms > 0)
        return err_set(err, ERR_INVALID, "fields 'since' and 'sinceTime' exclude each other");
    if (request->has_since) {
        ret->start = EVENT_BEHIND_SEQ;
        ret->value = request->since;
    } else if (request->since_time_ms > 0) {
        ret->start = EVENT_SINCE_TIME;
        ret->value = request->since_time_ms;
    }
    return types_find(request, &ret->types, err);
}

/* Returns the ids of the sandboxes that are in the scope of the caller now. */
static json_t *seen_now(const struct call *call)
{
    cleanup_free struct sandbox_info *infos = NULL;
    json_t *seen = json_object();
    size_t count = 0;

    sandbox_list(call->host, call->caller, NULL, 0, &infos, &count);
    for (size_t i = 0; i < count; i++) {
        (void)json_object_set_new(seen, infos[i].id, json_true());
        sandbox_info_done(&infos[i]);
    }
    return seen;
}

int event_service_watch(const struct call *call, const struct msg_watch_request *request,
                        struct stream **ret, struct err *err)
{
    struct event_reader *reader = NULL;
    struct event_reader_spec spec;
    struct watch_stream *watch;
    int r = reader_spec_fill(request, &spec, err);

    if (r == 0)
        r = host_watch(call->host, call->caller, &spec, &reader, err);
    if (r < 0)
        return r;
    watch = xcalloc(1, sizeof(*watch));
    watch->stream.ops = &watch_ops;
    watch->stream.ends_itself = true;
    watch->host = call->host;
    watch->connection_fd = call->connection_fd;
    watch->follows = !request->no_follow;
    watch->last = event_reader_last(reader);
    watch->reader = reader;
    watch->caller = *call->caller;
    if (call->caller->scope_count > 0)
        watch->seen = seen_now(call);
    *ret = &watch->stream;
    return 0;
}
