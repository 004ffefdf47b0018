/* A server stream: a sequence of messages, sent as Connect envelopes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "wire/schema.h"

struct buf;
struct stream;

struct stream_ops {
    /* Waits for the next message and appends it to out with message_begin and message_end. Returns
     * 1 if more may follow, 0 after the last one, -ECANCELED when the client has gone, or another
     * negative errno with err set, which ends the stream. */
    int (*next)(struct stream *stream, struct buf *out, struct err *err);

    /* Frees the stream. Called once, after the last byte was sent or the client went away. */
    void (*close)(struct stream *stream);
};

/* The first member of every stream's own struct. */
struct stream {
    const struct stream_ops *ops;
    bool ends_itself; /* at a shutdown it sends a last message of its own and ends soon */
};

/* Bracket the JSON of a message, which is built in place and never copied: `start` is out->len
 * before message_begin. */
int message_begin(struct buf *out);
void message_end(struct buf *out, size_t start);

/* Appends a complete message and frees the value (NULL: -ENOMEM). */
int message_add_take(struct buf *out, json_t *value);

/* Appends a complete message: 0, -ENOBUFS or -ENOMEM. */
int message_add(struct buf *out, const struct schema *schema, const void *message);
int message_add_as(struct buf *out, const struct schema *schema, const void *message,
                   enum encode_mode mode);

/* The HTTP reply of a stream, which it owns. */
struct stream_reply;

/* What a stream's reply needs to know of the call. */
struct stream_owner {
    /* Whether the deadline has passed; then sets err. */
    bool (*is_late)(void *context, struct err *err);

    /* Whether the daemon is shutting down, or the token has become invalid; then sets err. */
    bool (*is_stopped)(void *context, struct err *err);

    /* Called at most once, when the stream ends; not when the client goes away. */
    void (*on_end)(void *context, enum err_kind kind);
    void *context;
};

struct stream_reply *stream_reply_new(struct stream *stream, const struct stream_owner *owner);

/* Calls next() of the stream. Fails with ERR_DEADLINE past the deadline, and with ShuttingDown. */
int stream_next(struct stream *stream, const struct stream_owner *owner, struct buf *out,
                struct err *err);

/* A content reader of libmicrohttpd and its destructor; the context is the struct stream_reply. */
ssize_t stream_reply_read(void *context, uint64_t position, char *data, size_t size);
void stream_reply_free(void *context);
