/* Whole answers: bodies, and refusals of what is no call at all. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

#include "base/err.h"

struct buf;

/* Most bytes of an answer that is not a stream. */
enum { REPLY_MAX = 32 * 1024 * 1024 };

struct refusal {
    unsigned http_status;
    enum err_kind kind;
    const char *message;
    const char *header; /* that the status asks for, or NULL */
    const char *value;
    bool hangs_up; /* on strangers, who might otherwise stay */
};

extern const struct refusal refuse_framing, refuse_host, refuse_origin, refuse_token, refuse_path,
    refuse_verb, refuse_unary_type, refuse_stream_type;

/* Makes a response of the buffer's bytes, which it takes without copying them. NULL: out of memory.
 */
struct MHD_Response *reply_response(struct buf *body, const char *type);

/* Queues a response with this body, as reply_response makes it. */
enum MHD_Result reply_send(struct MHD_Connection *connection, unsigned status, const char *type,
                           struct buf *body);

enum MHD_Result reply_refuse(struct MHD_Connection *connection, const struct refusal *refusal);

/* Writes an answer of a stream to the socket itself, while the request still comes: libmicrohttpd
 * has no words for that. Nothing else may be sent on this connection afterwards. */
void reply_early(int fd, const struct buf *body);
