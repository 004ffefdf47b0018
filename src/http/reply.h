/* Complete replies, and refusals of requests that are no calls. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

#include "base/err.h"

struct buf;

/* Size limit of a reply that is not a stream. */
enum { REPLY_MAX = 32 * 1024 * 1024 };

struct refusal {
    unsigned http_status;
    enum err_kind kind;
    const char *message;
    const char *header; /* required by the status, or NULL */
    const char *value;
    bool hangs_up; /* unauthenticated clients must not keep connections */
};

extern const struct refusal refuse_framing, refuse_header, refuse_host, refuse_origin, refuse_token,
    refuse_wrong_token, refuse_session, refuse_path, refuse_verb, refuse_unary_type,
    refuse_stream_type;

/* Makes a response of the buffer's bytes, which it takes without copying them. NULL: out of memory.
 */
struct MHD_Response *reply_response(struct buf *body, const char *type);

/* Queues a response with this body, as reply_response makes it. */
enum MHD_Result reply_send(struct MHD_Connection *connection, unsigned status, const char *type,
                           struct buf *body);

enum MHD_Result reply_refuse(struct MHD_Connection *connection, const struct refusal *refusal);

/* Writes the reply of a stream directly to the socket while the request is still arriving, which
 * libmicrohttpd cannot do. Nothing else may be sent on this connection afterwards. */
void reply_early(int fd, const struct buf *body);
