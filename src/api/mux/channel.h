/* One channel of a multiplexed stream: a call of holt.v1 in the Connect protocol, on a connection
 * of the daemon to itself. Back-pressure: without credit the reply is not read, and the call waits
 * as for any client that does not read. */
#pragma once

#include <http_parser.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "http/connect_call.h"

struct err;

enum {
    MUX_CREDIT = 64 * 1024,            /* of a client that names none */
    MUX_CREDIT_MAX = 64 * 1024 * 1024, /* more is not kept */
    MUX_UPLOAD_CREDIT = 1024 * 1024,   /* of the client, for messages that follow the first */
    MUX_MESSAGE_MAX = 4 * 1024 * 1024, /* characters of a frame from the client */
    MUX_LARGE = 256 * 1024,            /* bytes; of larger messages one is received at a time */
    MUX_READ_BYTES = 64 * 1024,        /* at once, so that no channel keeps the others waiting */
};

struct mux_channel {
    uint64_t id;
    enum connect_shape shape;
    int fd; /* of the connection; the owner of the channel closes it */

    struct buf out;        /* of the request, not written yet */
    bool is_request_ended; /* nothing is added to it any more */
    int64_t upload_credit; /* that the client has; may become negative */
    size_t passed;         /* characters of messages in out, not granted again yet */

    struct http_parser parser;
    struct buf in; /* of the body of the reply, not passed on yet */
    bool is_reply_complete;
    bool is_broken;  /* the connection has failed or ended too early */
    bool is_waiting; /* a message in `in` is complete and waits for credit */
    int64_t credit;  /* that the daemon has; may become negative */
    bool is_over;    /* its end was passed on */
};

/* What the client asks for. */
struct mux_request {
    const char *call;      /* holt.v1.Service/Method, which exists */
    const json_t *message; /* NULL: an empty one */
    uint64_t timeout_ms;   /* 0: none */
};

/* Receives the frames of a channel: 0, or a negative errno if the stream cannot go on. */
struct mux_sink {
    int (*send)(void *context, const struct buf *frame);
    void *context;
};

/* Starts the call on the connection. mux_channel_done is needed in any case. */
int mux_channel_init(struct mux_channel *channel, const struct mux_request *request,
                     struct err *err);

/* Does not close the connection. */
void mux_channel_done(struct mux_channel *channel);

/* Adds a message to a client stream; `size` is the number of characters of its frame. Fails with
 * ERR_EXHAUSTED for a client without credit. */
int mux_channel_add(struct mux_channel *channel, const json_t *message, size_t size,
                    struct err *err);

/* The client sends no more messages. */
int mux_channel_end(struct mux_channel *channel, struct err *err);

/* The client takes so many more characters. */
void mux_channel_grant(struct mux_channel *channel, uint64_t credit);

/* Returns which events of the connection the channel waits for; 0: for none. */
short mux_channel_events(const struct mux_channel *channel);

/* Returns how many bytes the message has that is being received, as far as that is known. */
size_t mux_channel_message_size(const struct mux_channel *channel);

/* Writes and reads what the connection takes and has, without blocking. */
void mux_channel_transfer(struct mux_channel *channel, short events);

/* Passes on what was received, as far as the credit allows it, and credit for the client. */
int mux_channel_pass(struct mux_channel *channel, const struct mux_sink *sink);

/* Ends the channel with an error of the stream's own. */
int mux_channel_fail(struct mux_channel *channel, const struct mux_sink *sink,
                     const struct err *err);
