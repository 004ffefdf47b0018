// SPDX-License-Identifier: Apache-2.0
#include "http/connect_call.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text/parse.h"
#include "http/connect.h"
#include "http/connect_upload.h"
#include "http/exchange.h"
#include "http/limits.h"
#include "http/reply.h"
#include "http/stream.h"
#include "http/upload.h"
#include "wire/envelope.h"
#include "wire/raw.h"

enum { STREAM_BLOCK = 1024 }; /* libmicrohttpd's own buffer, which chunked replies do not use */

static void call_end(struct connect_call *call, enum err_kind kind)
{
    if (call->is_ended)
        return;
    call->is_ended = true;
    call->ops->on_end(call, kind);
}

static enum MHD_Result response_send(struct connect_call *call, unsigned status,
                                     struct MHD_Response *response)
{
    enum MHD_Result result;

    if (call->ops->send)
        return call->ops->send(call, status, response);
    result = MHD_queue_response(call->exchange->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* A connection that was shut down for reading cannot be used again. */
static enum MHD_Result body_send(struct connect_call *call, unsigned status, struct buf *body,
                                 bool is_last)
{
    const char *type =
        call->shape == CONNECT_UNARY || call->is_raw ? CONNECT_UNARY_TYPE : CONNECT_STREAM_TYPE;
    struct MHD_Response *response = reply_response(body, type);

    if (!response)
        return MHD_NO;
    if (is_last)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return response_send(call, status, response);
}

enum MHD_Result connect_call_fail(struct connect_call *call, const struct err *err)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);

    if (err->kind == ERR_INTERNAL)
        log_warn("%s: %s", call->name, err->msg);
    call_end(call, err->kind);
    client_connection_allow(call->exchange->client, CONNECTION_IDLE_MS);
    if (call->shape != CONNECT_UNARY && !call->is_raw)
        return envelope_add_end(&body, err) < 0 ? MHD_NO
                                                : body_send(call, MHD_HTTP_OK, &body, false);
    if (connect_error_write(&body, err) < 0)
        return MHD_NO;
    return body_send(call, err_kind_row(err->kind)->http_status, &body,
                     err->kind == ERR_DEADLINE || err->cause == CAUSE_SHUTTING_DOWN);
}

/* --- the header ------------------------------------------------------------------------------- */

const struct refusal *connect_call_check(const struct connect_call *call)
{
    const char *type = exchange_header(call->exchange, MHD_HTTP_HEADER_CONTENT_TYPE);

    if (strcmp(call->exchange->verb, MHD_HTTP_METHOD_POST) != 0)
        return &refuse_verb;
    if (call->shape == CONNECT_UNARY)
        return connect_type_is(type, CONNECT_UNARY_TYPE) ? NULL : &refuse_unary_type;
    return connect_type_is(type, CONNECT_STREAM_TYPE) ? NULL : &refuse_stream_type;
}

/* A client that cannot have the connection is answered as if it had not asked. */
static bool wants_raw(const struct connect_call *call)
{
    const char *upgrade = exchange_header(call->exchange, MHD_HTTP_HEADER_UPGRADE);
    const char *options = exchange_header(call->exchange, MHD_HTTP_HEADER_CONNECTION);

    return call->can_be_raw && upgrade && options && strcasecmp(upgrade, RAW_PROTOCOL) == 0 &&
           strcasestr(options, "upgrade");
}

static bool is_announced_too_large(const struct connect_call *call)
{
    const char *text = exchange_header(call->exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t len = 0;

    return call->shape != CONNECT_UPLOAD && text &&
           (parse_u64(text, &len) < 0 || len > call->exchange->body.max);
}

/* Holt speaks version 1 without compression. */
static int headers_check(const struct connect_call *call, struct err *err)
{
    const char *version = exchange_header(call->exchange, "Connect-Protocol-Version");
    const char *encoding = exchange_header(call->exchange, call->shape == CONNECT_UNARY
                                                               ? MHD_HTTP_HEADER_CONTENT_ENCODING
                                                               : "Connect-Content-Encoding");

    if (version && strcmp(version, "1") != 0)
        return err_set(err, ERR_INVALID, "Connect-Protocol-Version must be 1");
    if (encoding && strcmp(encoding, "identity") != 0)
        return err_set(err, ERR_UNSUPPORTED, "unknown compression: only identity is supported");
    return 0;
}

static int upload_begin(void *context, const json_t *first, struct upload **ret, struct err *err)
{
    struct connect_call *call = context;

    return call->ops->upload(call, first, ret, err);
}

enum MHD_Result connect_call_begin(struct connect_call *call)
{
    struct exchange *exchange = call->exchange;

    call->is_raw = wants_raw(call);
    if (is_announced_too_large(call)) {
        exchange_fail_too_large(exchange);
        return connect_call_fail(call, &exchange->err);
    }
    if (!exchange->is_failed)
        exchange->is_failed = headers_check(call, &exchange->err) < 0 ||
                              exchange_read_timeout(exchange, &exchange->err) < 0;
    if (call->shape == CONNECT_UPLOAD && !exchange->is_failed) {
        call->intake = upload_intake_new(upload_begin, call);
        client_connection_set_deadline(exchange->client, exchange->deadline_ns, true);
    }
    return MHD_YES;
}

/* --- client streams --------------------------------------------------------------------------- */

static int upload_finish(const struct connect_call *call, struct buf *out, struct err *err)
{
    int r = upload_intake_finish(call->intake, out, err);

    if (r == -ECANCELED)
        exchange_explain_cancel(call->exchange, err);
    return r;
}

/* A client with much left to send gets the error at once, and is disconnected at the end. */
static void upload_fail_early(struct connect_call *call)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_MAX), body = BUF_INIT(REPLY_MAX);
    struct err err = { 0 };

    if (call->is_answered || upload_finish(call, &reply, &err) == 0 ||
        envelope_add_end(&body, &err) < 0)
        return;
    call->is_answered = true;
    call_end(call, err.kind);
    reply_early(call->exchange->connection_fd, &body);
}

/* The service may take its time with a message, and the client may then pause. A client whose
 * upload has failed may still be sending. */
static enum MHD_Result upload_receive(struct connect_call *call, const char *data, size_t len)
{
    struct exchange *exchange = call->exchange;
    struct err err = { 0 };
    bool is_taken;

    if (exchange->discarded > 0) {
        client_connection_extend(exchange->client, len);
        upload_fail_early(call);
        return exchange_discard(exchange, len);
    }
    /* A connection that is shut down for reading still delivers what the client sends. */
    if (exchange_is_stopped(exchange, &err))
        upload_intake_fail(call->intake, -ESHUTDOWN, &err);
    client_connection_allow(exchange->client, CONNECTION_FOREVER);
    is_taken = upload_intake_take(call->intake, data, len);
    client_connection_allow(exchange->client, is_taken ? CONNECTION_IDLE_MS : CONNECTION_BODY_MS);
    return is_taken ? MHD_YES : exchange_discard(exchange, len);
}

enum MHD_Result connect_call_receive(struct connect_call *call, const char *data, size_t len)
{
    struct exchange *exchange = call->exchange;

    if (call->intake)
        return upload_receive(call, data, len);
    client_connection_extend(exchange->client, len);
    if (exchange->is_failed)
        return exchange_discard(exchange, len);
    if (buf_add(&exchange->body, data, len) < 0)
        exchange_fail_too_large(exchange);
    return MHD_YES;
}

/* The reply is a stream of one message. */
static enum MHD_Result upload_answer(struct connect_call *call)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_MAX), body = BUF_INIT(REPLY_MAX);
    struct err err = { 0 };
    int r;

    if (upload_finish(call, &reply, &err) < 0)
        return connect_call_fail(call, &err);
    r = reply.len > 0 ? envelope_add(&body, reply.data, reply.len) : envelope_add(&body, "{}", 2);
    if (r == 0)
        r = envelope_add_end(&body, NULL);
    if (r < 0) {
        (void)err_sys(&err, r, "write the reply");
        return connect_call_fail(call, &err);
    }
    call_end(call, ERR_NONE);
    client_connection_allow(call->exchange->client, CONNECTION_IDLE_MS);
    client_connection_extend(call->exchange->client, body.len);
    return body_send(call, MHD_HTTP_OK, &body, false);
}

/* --- the other shapes ------------------------------------------------------------------------- */

static int request_parse(const struct connect_call *call, json_t **ret, struct err *err)
{
    const struct exchange *exchange = call->exchange;
    struct envelope message = { .payload = exchange->body.data, .len = exchange->body.len };

    if (call->shape == CONNECT_STREAM) {
        int r = exchange_unwrap(
            exchange, call->is_large ? ENVELOPE_LARGE_MAX : ENVELOPE_PAYLOAD_MAX, &message, err);

        if (r < 0)
            return r;
    }
    if (message.len == 0 && call->accepts_empty) {
        *ret = json_object();
        return 0;
    }
    if (message.len == 0)
        return err_set(err, ERR_INVALID, "the message is empty; the shortest one is {}");
    if (call->is_large || call->accepts_empty)
        return json_parse_with_nul(message.payload, message.len, ret, err);
    return json_parse_object(message.payload, message.len, ret, err);
}

static enum MHD_Result unary_answer(struct connect_call *call, const json_t *request)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);
    struct exchange *exchange = call->exchange;
    struct err err = { 0 };
    int r = call->ops->unary(call, request, &body, &err);

    if (r == -ECANCELED)
        exchange_explain_cancel(exchange, &err);
    if (r < 0)
        return connect_call_fail(call, &err);
    call_end(call, ERR_NONE);
    client_connection_allow(exchange->client, CONNECTION_IDLE_MS);
    client_connection_extend(exchange->client, body.len);
    return body_send(call, MHD_HTTP_OK, &body, exchange_is_late(exchange, &err));
}

static bool owner_is_late(void *context, struct err *err)
{
    const struct connect_call *call = context;

    return exchange_is_late(call->exchange, err);
}

static bool owner_is_stopped(void *context, struct err *err)
{
    const struct connect_call *call = context;

    return exchange_is_stopped(call->exchange, err);
}

static void owner_on_end(void *context, enum err_kind kind)
{
    call_end(context, kind);
}

static struct stream_owner owner_of(struct connect_call *call)
{
    return (struct stream_owner){ owner_is_late, owner_is_stopped, owner_on_end, call };
}

static enum MHD_Result stream_answer(struct connect_call *call, const json_t *request)
{
    const struct stream_owner owner = owner_of(call);
    struct stream *stream = NULL;
    struct stream_reply *reply;
    struct MHD_Response *response;
    struct err err = { 0 };

    if (call->ops->stream(call, request, &stream, &err) < 0)
        return connect_call_fail(call, &err);
    reply = stream_reply_new(stream, &owner);
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_reply_read,
                                                 reply, stream_reply_free);
    if (!response) {
        stream_reply_free(reply);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, CONNECT_STREAM_TYPE);
    /* At its deadline the connection is shut down for reading, long after the header was sent. */
    if (call->exchange->deadline_ns != CONNECTION_FOREVER && !call->is_kept)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return response_send(call, MHD_HTTP_OK, response);
}

/* Runs on the connection's own thread. The parameters are libmicrohttpd's. */
// NOLINTNEXTLINE(readability-function-size)
static void on_upgrade(void *cls, struct MHD_Connection *connection, void *slot, const char *early,
                       size_t early_len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
    struct connect_call *call = cls;
    const struct stream_owner owner = owner_of(call);
    const struct raw_client client = { fd, early, early_len };

    (void)connection, (void)slot;
    call->ops->serve_raw(call, &owner, &client);
    (void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

/* connect_call_done closes the stream of a client that goes away before the switch of protocols.
 * The body of a client stream was only its first message. */
static enum MHD_Result raw_answer(struct connect_call *call, const json_t *request)
{
    struct MHD_Response *response;
    struct err err = { 0 };
    int r = call->intake ? upload_intake_begun(call->intake, &call->raw_upload, &err)
                         : call->ops->stream(call, request, &call->raw_stream, &err);

    if (r < 0)
        return connect_call_fail(call, &err);
    response = MHD_create_response_for_upgrade(on_upgrade, call);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, RAW_PROTOCOL);
    return response_send(call, MHD_HTTP_SWITCHING_PROTOCOLS, response);
}

static enum MHD_Result message_answer(struct connect_call *call)
{
    cleanup_json json_t *request = NULL;
    struct err err = { 0 };

    if (request_parse(call, &request, &err) < 0)
        return connect_call_fail(call, &err);
    if (call->is_raw)
        return raw_answer(call, request);
    return call->shape == CONNECT_STREAM ? stream_answer(call, request)
                                         : unary_answer(call, request);
}

/* The time that a slow client took for its request does not count as the method's. */
enum MHD_Result connect_call_answer(struct connect_call *call)
{
    struct exchange *exchange = call->exchange;

    if (call->is_answered)
        return MHD_NO;
    client_connection_allow(exchange->client, CONNECTION_FOREVER);
    if (!call->intake) {
        exchange->started_ns = clock_ns();
        client_connection_set_deadline(exchange->client, exchange->deadline_ns,
                                       call->shape != CONNECT_UNARY);
    }
    if (exchange->is_failed || exchange_is_stopped(exchange, &exchange->err) ||
        exchange_is_late(exchange, &exchange->err))
        return connect_call_fail(call, &exchange->err);
    if (!call->intake)
        return message_answer(call);
    return call->is_raw ? raw_answer(call, NULL) : upload_answer(call);
}

void connect_call_done(struct connect_call *call)
{
    call_end(call, ERR_CANCELED);
    if (call->raw_stream)
        call->raw_stream->ops->close(call->raw_stream);
    if (call->raw_upload)
        call->raw_upload->ops->close(call->raw_upload);
    upload_intake_free(call->intake);
    call->intake = NULL;
}
