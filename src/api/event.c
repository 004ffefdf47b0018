// SPDX-License-Identifier: Apache-2.0
#include "host/observe/event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/event_request.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/observe/event_ring.h"
#include "http/stream.h"

enum {
    HEARTBEAT_MS = 15000,
    BATCH_BYTES = 64 * 1024, /* of messages that are sent together */
};

struct watch_stream {
    struct stream stream;
    struct host *host;
    int connection_fd;
    bool follows;
    bool is_announced;
    uint64_t last; /* number of the last event when it was opened */
    struct event_reader *reader;
};

static int heartbeat_put(struct buf *out, uint64_t seq)
{
    return message_add_take(out, json_pack("{s:{s:o}}", "heartbeat", "seq", json_u64(seq)));
}

static json_t *event_json(const struct event *event)
{
    json_t *fields = json_loadb(event->fields, event->len, 0, NULL);

    return json_pack("{s:{s:o, s:o, s:s, s:s, s:s, s:o*}}", "event", "seq", json_u64(event->seq),
                     "time", json_time(event->time_ms), "type", event_type_name(event->type),
                     "sandboxId", event->sandbox, "sandboxName", event->name, "fields", fields);
}

/* Whatever there is, up to some bytes: how many messages, or -errno. */
static int batch_put(struct watch_stream *watch, struct buf *out)
{
    int count = 0, r = 0;

    while (r == 0 && out->len < BATCH_BYTES) {
        uint64_t lost = 0;
        struct event *event = event_reader_take(watch->reader, &lost);

        if (lost > 0)
            r = message_add_take(out, json_pack("{s:o}", "lost", json_u64(lost)));
        if (r == 0 && event)
            r = message_add_take(out, event_json(event));
        count += (lost > 0) + (event != NULL);
        if (!event)
            break;
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
        r = heartbeat_put(out, host_last_event(watch->host));
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
    free(watch);
}

static const struct stream_ops watch_ops = { watch_next, watch_close };

int event_service_watch(const struct call *call, const json_t *request, struct stream **ret,
                        struct err *err)
{
    struct watch_request wanted = { 0 };
    struct watch_stream *watch;
    struct event_reader *reader = NULL;
    uint64_t last = host_last_event(call->host);
    int r = watch_request_parse(request, &wanted, err);

    if (r == 0)
        r = host_watch(call->host, &wanted.spec, &reader, err);
    if (r < 0)
        return r;
    watch = xcalloc(1, sizeof(*watch));
    watch->stream.ops = &watch_ops;
    watch->stream.ends_itself = true;
    watch->host = call->host;
    watch->connection_fd = call->connection_fd;
    watch->follows = wanted.follows;
    watch->last = last;
    watch->reader = reader;
    *ret = &watch->stream;
    return 0;
}
