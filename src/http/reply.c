// SPDX-License-Identifier: Apache-2.0
#include "http/reply.h"

#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "http/connect.h"

const struct refusal refuse_framing = {
    400,
    ERR_INVALID,
    "ambiguous request: repeated or conflicting Host, Content-Length or Transfer-Encoding",
    NULL,
    NULL,
    true,
};
const struct refusal refuse_header = {
    400,
    ERR_INVALID,
    "malformed request: folded header line, blank before a colon, control character or line end "
    "other than CR LF",
    NULL,
    NULL,
    true,
};
const struct refusal refuse_host = {
    403, ERR_DENIED, "unknown host name; see listen.hosts", NULL, NULL, true,
};
const struct refusal refuse_origin = {
    403, ERR_DENIED, "origin not allowed; see listen.origins", NULL, NULL, true,
};
/* The two differ, so that a client can tell a user that the token is wrong (RFC 6750). */
#define TOKEN_HINT "error_description=\"holt token create makes a token; there is no OAuth\""

const struct refusal refuse_token = {
    401,
    ERR_UNAUTHENTICATED,
    "a valid bearer token is required",
    "WWW-Authenticate",
    "Bearer realm=\"holt\", " TOKEN_HINT,
    true,
};
const struct refusal refuse_wrong_token = {
    401,
    ERR_UNAUTHENTICATED,
    "a valid bearer token is required",
    "WWW-Authenticate",
    "Bearer realm=\"holt\", error=\"invalid_token\", " TOKEN_HINT,
    true,
};
const struct refusal refuse_session = {
    401,
    ERR_UNAUTHENTICATED,
    "not logged in: the session has ended, or its cookie and X-Holt-Session do not belong together",
    "WWW-Authenticate",
    "Bearer realm=\"holt\", " TOKEN_HINT,
    true,
};
const struct refusal refuse_path = {
    404, ERR_UNSUPPORTED, "no such method", NULL, NULL, false,
};
const struct refusal refuse_verb = {
    405, ERR_UNSUPPORTED, "methods are called with POST", "Allow", "POST", false,
};
const struct refusal refuse_unary_type = {
    415,           ERR_INVALID,        "the content type must be " CONNECT_UNARY_TYPE,
    "Accept-Post", CONNECT_UNARY_TYPE, false,
};
const struct refusal refuse_stream_type = {
    415,           ERR_INVALID,         "the content type must be " CONNECT_STREAM_TYPE,
    "Accept-Post", CONNECT_STREAM_TYPE, false,
};

struct MHD_Response *reply_response(struct buf *body, const char *type)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body->len, body->data, MHD_RESPMEM_MUST_FREE);

    if (!response)
        return NULL;
    *body = (struct buf){ .max = body->max };
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    return response;
}

static void close_announce(struct MHD_Response *response)
{
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
}

static enum MHD_Result response_queue(struct MHD_Connection *connection, unsigned status,
                                      struct MHD_Response *response)
{
    enum MHD_Result result = MHD_queue_response(connection, status, response);

    MHD_destroy_response(response);
    return result;
}

enum MHD_Result reply_send(struct MHD_Connection *connection, unsigned status, const char *type,
                           struct buf *body)
{
    struct MHD_Response *response = reply_response(body, type);

    return response ? response_queue(connection, status, response) : MHD_NO;
}

enum MHD_Result reply_refuse(struct MHD_Connection *connection, const struct refusal *refusal)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);
    struct MHD_Response *response;
    struct err err;

    (void)err_set(&err, refusal->kind, "%s", refusal->message);
    if (connect_error_write(&body, &err) < 0)
        return MHD_NO;
    response = reply_response(&body, CONNECT_UNARY_TYPE);
    if (!response)
        return MHD_NO;
    if (refusal->header)
        (void)MHD_add_response_header(response, refusal->header, refusal->value);
    if (refusal->hangs_up)
        close_announce(response);
    return response_queue(connection, refusal->http_status, response);
}

void reply_early(int fd, const struct buf *body)
{
    cleanup_with(buf_done) struct buf whole = BUF_INIT(REPLY_MAX);

    if (buf_printf(&whole,
                   "HTTP/1.1 200 OK\r\nContent-Type: " CONNECT_STREAM_TYPE "\r\n"
                   "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                   body->len) == 0 &&
        buf_add(&whole, body->data, body->len) == 0)
        (void)send(fd, whole.data, whole.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}
