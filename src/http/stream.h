/* A server stream: messages made one after the other, sent as Connect envelopes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct buf;
struct stream;

struct stream_ops {
    /* Waits for the next message and appends it to out with message_begin and message_end: 1 when
     * more may come, 0 when that was the last, -ECANCELED when the client has gone, or another
     * negative errno with err set, which the client gets as the end of the stream. */
    int (*next)(struct stream *stream, struct buf *out, struct err *err);

    /* Called once, after the last byte was sent or the client went away. */
    void (*close)(struct stream *stream);
};

/* Every stream's own struct has this first. */
struct stream {
    const struct stream_ops *ops;
    bool ends_itself; /* it has something to say before it ends with the daemon, and does so soon */
};

/* A message is appended between these two: begin before its JSON, end(where out->len was before
 * begin) behind it. So it is built in place and never copied. */
int message_begin(struct buf *out);
void message_end(struct buf *out, size_t start);

/* Appends a whole message and drops the value, which may be NULL (-ENOMEM). */
int message_add_take(struct buf *out, json_t *value);

/* The HTTP side of a stream. Owns it. */
struct stream_reply;

/* What the HTTP side of a stream asks of the exchange that it belongs to. */
struct stream_owner {
    /* Whether its time is over; then sets err. */
    bool (*is_late)(void *context, struct err *err);

    /* Whether the daemon is shutting down; then sets err. */
    bool (*is_stopped)(void *context, struct err *err);

    /* Called at most once, when it is known how the stream ends; not when the client goes away. */
    void (*on_end)(void *context, enum err_kind kind);
    void *context;
};

struct stream_reply *stream_reply_new(struct stream *stream, const struct stream_owner *owner);

/* The next turn of a stream: as its next(), and ERR_DEADLINE once its time is over, or
 * ShuttingDown.
 */
int stream_next(struct stream *stream, const struct stream_owner *owner, struct buf *out,
                struct err *err);

/* A libmicrohttpd content reader and its destructor; the context is the struct stream_reply. Puts
 * up to size bytes of the body into data. */
ssize_t stream_reply_read(void *context, uint64_t position, char *data, size_t size);
void stream_reply_free(void *context);
