/* One call of the Connect protocol, from its header to the end of its reply: unary, server stream,
 * client stream, or the connection itself after an upgrade. holt.v1 and E2B's envd are called
 * through it; each gives it the functions that do the work. */
#pragma once

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct buf;
struct connect_call;
struct exchange;
struct stream;
struct stream_owner;
struct upload;
struct upload_intake;

enum connect_shape { CONNECT_UNARY, CONNECT_STREAM, CONNECT_UPLOAD };

/* The connection of a client that asked for it, after the switch of protocols. */
struct raw_client {
    int fd;            /* the caller's, who closes it */
    const char *early; /* bytes that were received already */
    size_t early_len;
};

/* Only the functions of the shapes that a front end has are set. */
struct connect_ops {
    /* Answers one message with one: appends the JSON of the reply to out. */
    int (*unary)(struct connect_call *call, const json_t *request, struct buf *out,
                 struct err *err);

    /* Answers one message with a stream. The request is freed before the stream is read. */
    int (*stream)(struct connect_call *call, const json_t *request, struct stream **ret,
                  struct err *err);

    /* Starts a client stream with its first message. */
    int (*upload)(struct connect_call *call, const json_t *first, struct upload **ret,
                  struct err *err);

    /* Serves a client that asked for the connection itself, on the connection's own thread. Takes
     * call->raw_stream or call->raw_upload. NULL where no method can be raw. */
    void (*serve_raw)(struct connect_call *call, const struct stream_owner *owner,
                      const struct raw_client *client);

    /* Queues the response and drops it, after adding headers of the front end's own. NULL: none. */
    enum MHD_Result (*send)(struct connect_call *call, unsigned status,
                            struct MHD_Response *response);

    /* The outcome of the call is known. Called once. */
    void (*on_end)(struct connect_call *call, enum err_kind kind);
};

struct connect_call {
    struct exchange *exchange;
    const struct connect_ops *ops;
    const char *name; /* of the method, for the log */
    enum connect_shape shape;
    bool can_be_raw;    /* the client may ask for the connection itself */
    bool is_large;      /* the request may hold a whole file, with NULs inside */
    bool accepts_empty; /* an empty body stands for {} */
    bool is_kept;       /* a stream with a deadline leaves the connection open at its end */
    bool is_raw;        /* the client asks for the connection itself */

    struct upload_intake *intake;
    struct stream *raw_stream; /* that will get the connection; or */
    struct upload *raw_upload;
    bool is_answered; /* while its body was still arriving */
    bool is_ended;    /* on_end was called */
};

/* Checks content type and verb: the refusal of a request that is no such call, or NULL. */
struct refusal;
const struct refusal *connect_call_check(const struct connect_call *call);

/* The header is complete. Access to the method was checked: exchange->is_failed says that it was
 * denied, with exchange->err as the reason. */
enum MHD_Result connect_call_begin(struct connect_call *call);

/* Takes a piece of the body. */
enum MHD_Result connect_call_receive(struct connect_call *call, const char *data, size_t len);

/* The request is complete: sends the reply. */
enum MHD_Result connect_call_answer(struct connect_call *call);

/* Replies with an error: a unary call by its HTTP status, a stream by its last envelope. */
enum MHD_Result connect_call_fail(struct connect_call *call, const struct err *err);

/* Frees everything but the call itself. A call without an outcome was canceled by its client. */
void connect_call_done(struct connect_call *call);
