// SPDX-License-Identifier: Apache-2.0
#include "api/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/connect.h"
#include "api/raw_session.h"
#include "api/route.h"
#include "api/stream.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "wire/envelope.h"
#include "wire/raw.h"

enum {
    BODY_MAX = 4 * 1024 * 1024,     /* what a request may hold */
    DISCARD_MAX = 64 * 1024 * 1024, /* what is read of a refused one before we hang up */
    REPLY_MAX = 16 * 1024 * 1024,
    STREAM_BLOCK = 1024, /* libmicrohttpd's own buffer, which chunked replies do not use */
};

/* A request that is no call at all. */
struct refusal {
    unsigned http_status;
    enum err_kind kind;
    const char *message;
    const char *header; /* that the status asks for, or NULL */
    const char *value;
};

static const struct refusal refuse_token = {
    401, ERR_UNAUTHENTICATED, "a valid bearer token is needed", "WWW-Authenticate", "Bearer",
};
static const struct refusal refuse_path = {
    404, ERR_UNSUPPORTED, "there is no such method", NULL, NULL,
};
static const struct refusal refuse_verb = {
    405, ERR_UNSUPPORTED, "methods are called with POST", "Allow", "POST",
};
static const struct refusal refuse_unary_type = {
    415,           ERR_INVALID,        "the content type must be " CONNECT_UNARY_TYPE,
    "Accept-Post", CONNECT_UNARY_TYPE,
};
static const struct refusal refuse_stream_type = {
    415,           ERR_INVALID,         "the content type must be " CONNECT_STREAM_TYPE,
    "Accept-Post", CONNECT_STREAM_TYPE,
};

struct exchange {
    const struct listener *listener;
    const struct route *route;     /* NULL: /healthz, or refused */
    const struct refusal *refusal; /* NULL: it is a call */
    struct buf body;
    size_t discarded;
    bool is_too_large;
    bool is_raw;               /* the client asks for the connection itself */
    struct stream *raw_stream; /* that will get it */
};

static const char *header_get(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Queues a whole body. Takes the bytes out of the buffer without copying them. */
static enum MHD_Result body_send(struct MHD_Connection *connection, unsigned status,
                                 const char *type, struct buf *body, const struct refusal *refusal)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body->len, body->data, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result result;

    if (!response)
        return MHD_NO;
    *body = (struct buf){ .max = body->max };
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (refusal && refusal->header)
        (void)MHD_add_response_header(response, refusal->header, refusal->value);
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refusal_send(struct MHD_Connection *connection,
                                    const struct refusal *refusal)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);
    struct err err;

    (void)err_set(&err, refusal->kind, "%s", refusal->message);
    if (connect_error_write(&body, &err) < 0)
        return MHD_NO;
    return body_send(connection, refusal->http_status, CONNECT_UNARY_TYPE, &body, refusal);
}

static enum MHD_Result health_send(struct MHD_Connection *connection)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);

    if (buf_add_str(&body, "ok\n") < 0)
        return MHD_NO;
    return body_send(connection, MHD_HTTP_OK, "text/plain", &body, NULL);
}

/* A unary call fails with an HTTP status, and so does one that asked for the connection; a stream
 * fails with its last envelope. */
static enum MHD_Result err_send(const struct exchange *exchange, struct MHD_Connection *connection,
                                const struct err *err)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);

    if (err->kind == ERR_INTERNAL)
        log_warn("%s: %s", exchange->route->path, err->msg);
    if (exchange->route->stream && !exchange->is_raw) {
        if (envelope_add_end(&body, err) < 0)
            return MHD_NO;
        return body_send(connection, MHD_HTTP_OK, CONNECT_STREAM_TYPE, &body, NULL);
    }
    if (connect_error_write(&body, err) < 0)
        return MHD_NO;
    return body_send(connection, err_kind_row(err->kind)->http_status, CONNECT_UNARY_TYPE, &body,
                     NULL);
}

static int too_large(struct err *err)
{
    return err_set(err, ERR_EXHAUSTED, "the request is larger than %d bytes", BODY_MAX);
}

static bool is_healthz(const char *path, const char *verb)
{
    return strcmp(path, "/healthz") == 0 &&
           (strcmp(verb, MHD_HTTP_METHOD_GET) == 0 || strcmp(verb, MHD_HTTP_METHOD_HEAD) == 0);
}

/* A client that asks for what it cannot have is answered as if it had not asked. */
static bool wants_raw(const struct route *route, struct MHD_Connection *connection)
{
    const char *upgrade = header_get(connection, MHD_HTTP_HEADER_UPGRADE);
    const char *options = header_get(connection, MHD_HTTP_HEADER_CONNECTION);

    return route && route->can_be_raw && upgrade && options &&
           strcasecmp(upgrade, RAW_PROTOCOL) == 0 && strcasestr(options, "upgrade");
}

static const struct refusal *request_check(const struct route *route, const char *type,
                                           const char *verb)
{
    if (!route)
        return &refuse_path;
    if (strcmp(verb, MHD_HTTP_METHOD_POST) != 0)
        return &refuse_verb;
    if (route->unary && !connect_type_is(type, CONNECT_UNARY_TYPE))
        return &refuse_unary_type;
    if (route->stream && !connect_type_is(type, CONNECT_STREAM_TYPE))
        return &refuse_stream_type;
    return NULL;
}

static bool is_announced_too_large(struct MHD_Connection *connection)
{
    const char *text = header_get(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t len = 0;

    return text && (parse_u64(text, &len) < 0 || len > BODY_MAX);
}

enum MHD_Result exchange_begin(const struct listener *listener, struct MHD_Connection *connection,
                               const char *path, const char *verb, struct exchange **ret)
{
    struct exchange *exchange;
    struct err err;

    if (!listener->is_local &&
        !token_matches(header_get(connection, MHD_HTTP_HEADER_AUTHORIZATION), listener->token))
        return refusal_send(connection, &refuse_token);
    exchange = xcalloc(1, sizeof(*exchange));
    exchange->listener = listener;
    exchange->body.max = BODY_MAX;
    *ret = exchange;
    if (is_healthz(path, verb))
        return MHD_YES;
    exchange->route = route_find(path);
    exchange->is_raw = wants_raw(exchange->route, connection);
    exchange->refusal =
        request_check(exchange->route, header_get(connection, MHD_HTTP_HEADER_CONTENT_TYPE), verb);
    if (exchange->refusal || !is_announced_too_large(connection))
        return MHD_YES;
    (void)too_large(&err);
    return err_send(exchange, connection, &err);
}

/* A refused body is read to its end all the same: a client that is still writing would see a broken
 * pipe in place of the reason. */
enum MHD_Result exchange_receive(struct exchange *exchange, const char *data, size_t len)
{
    if (!exchange->route || exchange->refusal || exchange->is_too_large) {
        exchange->discarded += len;
        return exchange->discarded <= DISCARD_MAX ? MHD_YES : MHD_NO;
    }
    if (buf_add(&exchange->body, data, len) < 0) {
        exchange->is_too_large = true;
        buf_done(&exchange->body);
    }
    return MHD_YES;
}

/* We speak version 1 without compression; a client that insists on more is told so. */
static int headers_check(const struct exchange *exchange, struct MHD_Connection *connection,
                         struct err *err)
{
    const char *version = header_get(connection, "Connect-Protocol-Version");
    const char *encoding =
        header_get(connection, exchange->route->stream ? "Connect-Content-Encoding"
                                                       : MHD_HTTP_HEADER_CONTENT_ENCODING);

    if (version && strcmp(version, "1") != 0)
        return err_set(err, ERR_INVALID, "Connect-Protocol-Version must be 1");
    if (encoding && strcmp(encoding, "identity") != 0)
        return err_set(err, ERR_UNSUPPORTED, "unknown compression: only identity is supported");
    return exchange->is_too_large ? too_large(err) : 0;
}

/* The one message of a stream's request. */
static int envelope_unwrap(const struct buf *body, struct envelope *ret, struct err *err)
{
    long size = envelope_parse(body->data, body->len, ret);

    if (size == -EMSGSIZE)
        return err_set(err, ERR_EXHAUSTED, "the message is larger than %d bytes",
                       ENVELOPE_PAYLOAD_MAX);
    if (size <= 0 || ret->is_end)
        return err_set(err, ERR_INVALID, "the body is not an enveloped message");
    if ((size_t)size != body->len)
        return err_set(err, ERR_INVALID, "the request must be one message");
    return 0;
}

static int request_parse(const struct exchange *exchange, json_t **ret, struct err *err)
{
    struct envelope message = { .payload = exchange->body.data, .len = exchange->body.len };

    if (exchange->route->stream) {
        int r = envelope_unwrap(&exchange->body, &message, err);

        if (r < 0)
            return r;
    }
    if (message.len == 0)
        return err_set(err, ERR_INVALID, "the message is empty; {} is the least");
    return json_parse_object(message.payload, message.len, ret, err);
}

static enum MHD_Result unary_answer(const struct exchange *exchange,
                                    struct MHD_Connection *connection, const struct call *call,
                                    const json_t *request)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);
    cleanup_json json_t *reply = NULL;
    struct err err = { 0 };
    int r = exchange->route->unary(call, request, &reply, &err);

    if (r < 0)
        return err_send(exchange, connection, &err);
    r = reply ? json_write(reply, &body) : buf_add_str(&body, "{}");
    if (r < 0) {
        (void)err_sys(&err, r, "write the reply");
        return err_send(exchange, connection, &err);
    }
    return body_send(connection, MHD_HTTP_OK, CONNECT_UNARY_TYPE, &body, NULL);
}

static enum MHD_Result stream_answer(const struct exchange *exchange,
                                     struct MHD_Connection *connection, const struct call *call,
                                     const json_t *request)
{
    struct stream *stream = NULL;
    struct stream_reply *reply;
    struct MHD_Response *response;
    struct err err = { 0 };
    enum MHD_Result result;

    if (exchange->route->stream(call, request, &stream, &err) < 0)
        return err_send(exchange, connection, &err);
    reply = stream_reply_new(stream);
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_reply_read,
                                                 reply, stream_reply_free);
    if (!response) {
        stream_reply_free(reply);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, CONNECT_STREAM_TYPE);
    result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* Has the connection's thread to itself. The parameters are libmicrohttpd's. */
// NOLINTNEXTLINE(readability-function-size)
static void on_upgrade(void *cls, struct MHD_Connection *connection, void *slot, const char *early,
                       size_t early_len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
    struct exchange *exchange = cls;

    (void)connection, (void)slot;
    raw_session_run(exchange->listener->raw_sessions, TAKE_PTR(exchange->raw_stream), fd, early,
                    early_len);
    (void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

/* A client that goes away before it has the answer leaves the stream to exchange_free. */
static enum MHD_Result raw_answer(struct exchange *exchange, struct MHD_Connection *connection,
                                  const struct call *call, const json_t *request)
{
    struct MHD_Response *response;
    struct err err = { 0 };
    enum MHD_Result result;

    if (exchange->route->stream(call, request, &exchange->raw_stream, &err) < 0)
        return err_send(exchange, connection, &err);
    response = MHD_create_response_for_upgrade(on_upgrade, exchange);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, RAW_PROTOCOL);
    result = MHD_queue_response(connection, MHD_HTTP_SWITCHING_PROTOCOLS, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result call_answer(struct exchange *exchange, struct MHD_Connection *connection)
{
    cleanup_json json_t *request = NULL;
    struct call call = {
        .host = exchange->listener->host,
        .is_local = exchange->listener->is_local,
        .is_raw = exchange->is_raw,
        .connection_fd =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
    };
    struct err err = { 0 };

    if (headers_check(exchange, connection, &err) < 0 ||
        request_parse(exchange, &request, &err) < 0)
        return err_send(exchange, connection, &err);
    if (exchange->is_raw)
        return raw_answer(exchange, connection, &call, request);
    if (exchange->route->stream)
        return stream_answer(exchange, connection, &call, request);
    return unary_answer(exchange, connection, &call, request);
}

/* The idle time is for slow clients; a call may take as long as it takes. A stream's connection
 * gets it back when its request is completed. */
enum MHD_Result exchange_answer(struct exchange *exchange, struct MHD_Connection *connection)
{
    enum MHD_Result result;

    if (exchange->refusal)
        return refusal_send(connection, exchange->refusal);
    if (!exchange->route)
        return health_send(connection);
    (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    result = call_answer(exchange, connection);
    if (exchange->route->unary)
        (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                        (unsigned)EXCHANGE_IDLE_S);
    return result;
}

void exchange_free(struct exchange *exchange)
{
    if (!exchange)
        return;
    if (exchange->raw_stream)
        exchange->raw_stream->ops->close(exchange->raw_stream);
    buf_done(&exchange->body);
    free(exchange);
}
