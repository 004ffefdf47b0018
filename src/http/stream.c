// SPDX-License-Identifier: Apache-2.0
#include "http/stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "http/connect.h"
#include "wire/envelope.h"
#include "wire/schema.h"

struct stream_reply {
    struct stream *stream;
    struct buf out; /* envelopes that were not sent yet */
    size_t sent;    /* bytes of out that were sent */
    bool is_over;   /* the end of the stream is in out */
    struct stream_owner owner;
};

enum { STREAM_BUFFER_MAX = ENVELOPE_LARGE_MAX + ENVELOPE_PAYLOAD_MAX };

int message_begin(struct buf *out)
{
    return envelope_add(out, "", 0);
}

void message_end(struct buf *out, size_t start)
{
    uint32_t len = htonl((uint32_t)(out->len - start - ENVELOPE_HEADER_SIZE));

    memcpy(out->data + start + 1, &len, sizeof(len));
}

int message_add_as(struct buf *out, const struct schema *schema, const void *message,
                   enum encode_mode mode)
{
    size_t start = out->len;
    int r = message_begin(out);

    if (r == 0)
        r = schema_encode(schema, message, mode, out);
    if (r == 0)
        message_end(out, start);
    return r;
}

int message_add(struct buf *out, const struct schema *schema, const void *message)
{
    return message_add_as(out, schema, message, ENCODE_ALL);
}

int message_add_take(struct buf *out, json_t *value)
{
    cleanup_json json_t *owned = value;
    size_t start = out->len;
    int r;

    if (!owned)
        return -ENOMEM;
    r = message_begin(out);
    if (r == 0)
        r = json_write(owned, out);
    if (r == 0)
        message_end(out, start);
    return r;
}

struct stream_reply *stream_reply_new(struct stream *stream, const struct stream_owner *owner)
{
    struct stream_reply *reply = xcalloc(1, sizeof(*reply));

    reply->stream = stream;
    reply->owner = *owner;
    reply->out.max = STREAM_BUFFER_MAX;
    return reply;
}

/* Returns whether the call must not go on, then with err set; where a shutdown may pass, only the
 * end of its token stops it. */
static bool owner_stops(const struct stream_owner *owner, bool may_shut_down, struct err *err)
{
    if (!owner->is_stopped(owner->context, err))
        return false;
    if (!may_shut_down || err->cause != CAUSE_SHUTTING_DOWN)
        return true;
    *err = (struct err){ 0 };
    return false;
}

/* A stream that never pauses is stopped between two messages. What it tells after the end of its
 * token is not sent. */
int stream_next(struct stream *stream, const struct stream_owner *owner, struct buf *out,
                struct err *err)
{
    int r;

    if (owner->is_late(owner->context, err))
        return -ETIMEDOUT;
    if (owner_stops(owner, stream->ends_itself, err))
        return -ESHUTDOWN;
    r = stream->ops->next(stream, out, err);
    if (r >= 0 && owner_stops(owner, true, err))
        return -ESHUTDOWN;
    if (r != -ECANCELED)
        return r;
    if (owner->is_stopped(owner->context, err))
        return -ESHUTDOWN;
    return owner->is_late(owner->context, err) ? -ETIMEDOUT : r;
}

/* The last message and the end are sent together, so that the client does not wait for the end. */
static int reply_fill(struct stream_reply *reply)
{
    struct err err = { 0 };
    int r;

    buf_clear(&reply->out);
    reply->sent = 0;
    r = stream_next(reply->stream, &reply->owner, &reply->out, &err);
    if (r > 0 || r == -ECANCELED)
        return r;
    reply->is_over = true;
    reply->owner.on_end(reply->owner.context, r == 0 ? ERR_NONE : err.kind);
    if (r == 0)
        return envelope_add_end(&reply->out, NULL);
    if (err.kind == ERR_INTERNAL)
        log_warn("stream failed: %s", err.msg);
    buf_clear(&reply->out); /* half a message must not precede the error */
    return envelope_add_end(&reply->out, &err);
}

ssize_t stream_reply_read(void *context, uint64_t position, char *data, size_t size)
{
    struct stream_reply *reply = context;
    size_t len;

    (void)position;
    if (reply->sent == reply->out.len && reply->is_over)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (reply->sent == reply->out.len && reply_fill(reply) < 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    len = reply->out.len - reply->sent;
    if (len > size)
        len = size;
    memcpy(data, reply->out.data + reply->sent, len);
    reply->sent += len;
    return (ssize_t)len;
}

void stream_reply_free(void *context)
{
    struct stream_reply *reply = context;

    reply->stream->ops->close(reply->stream);
    buf_done(&reply->out);
    free(reply);
}
