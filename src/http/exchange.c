// SPDX-License-Identifier: Apache-2.0
#include "http/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/route.h"
#include "auth/token_store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "http/call_stats.h"
#include "http/connect.h"
#include "http/exchange_internal.h"
#include "http/limits.h"
#include "http/origin.h"
#include "http/page.h"
#include "http/reply.h"
#include "http/stream.h"
#include "http/upload.h"
#include "http/upload_intake.h"
#include "wire/envelope.h"
#include "wire/raw.h"

enum {
    BODY_MAX = 4 * 1024 * 1024, /* what a request of one message may hold */
    TIMEOUT_DIGITS_MAX = 10,
    DISCARD_MAX = 64 * 1024 * 1024, /* what is read of a refused one before we hang up */
    STRANGER_MAX = 1024 * 1024,     /* the same where nobody is known to have sent it */
};

static const char *header_get(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

void exchange_count(struct exchange *exchange, enum err_kind kind)
{
    if (!exchange->route || exchange->is_counted)
        return;
    exchange->is_counted = true;
    call_stats_add(route_index(exchange->route), kind, guard_clock_ns() - exchange->started_ns);
}

/* A unary call fails with an HTTP status, and so does one that asked for the connection; a stream
 * fails with its last envelope. */
enum MHD_Result exchange_fail(struct exchange *exchange, struct MHD_Connection *connection,
                              const struct err *err)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);

    if (err->kind == ERR_INTERNAL)
        log_warn("%s: %s", exchange->route->path, err->msg);
    exchange_count(exchange, err->kind);
    client_connection_allow(exchange->client, CONNECTION_IDLE_MS);
    if (!exchange->route->unary && !exchange->is_raw) {
        if (envelope_add_end(&body, err) < 0)
            return MHD_NO;
        return reply_send(connection, MHD_HTTP_OK, CONNECT_STREAM_TYPE, &body);
    }
    if (connect_error_write(&body, err) < 0)
        return MHD_NO;
    if (err->kind == ERR_DEADLINE ||
        err->cause == CAUSE_SHUTTING_DOWN) /* nobody reads from it any more */
        return reply_send_last(connection, err_kind_row(err->kind)->http_status, CONNECT_UNARY_TYPE,
                               &body);
    return reply_send(connection, err_kind_row(err->kind)->http_status, CONNECT_UNARY_TYPE, &body);
}

bool exchange_is_late(const struct exchange *exchange, struct err *err)
{
    if (guard_clock_ns() < exchange->deadline_ns)
        return false;
    (void)err_set(err, ERR_DEADLINE, "the call has taken longer than the time it was given");
    return true;
}

bool exchange_is_stopped(const struct exchange *exchange, struct err *err)
{
    return host_is_open(exchange->listener->host, err) < 0;
}

void exchange_explain_cancel(const struct exchange *exchange, struct err *err)
{
    if (!exchange_is_stopped(exchange, err))
        (void)exchange_is_late(exchange, err);
}

static int too_large(const struct exchange *exchange, struct err *err)
{
    return err_set(err, ERR_EXHAUSTED, "the request is larger than %zu bytes", exchange->body.max);
}

/* A client that asks for what it cannot have is answered as if it had not asked. Behind TLS the
 * connection is libmicrohttpd's, which wants its thread back before it passes a byte. */
static bool wants_raw(const struct exchange *exchange, struct MHD_Connection *connection)
{
    const char *upgrade = header_get(connection, MHD_HTTP_HEADER_UPGRADE);
    const char *options = header_get(connection, MHD_HTTP_HEADER_CONNECTION);

    return exchange->route->can_be_raw && !exchange->listener->is_tls && upgrade && options &&
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
    if (!route->unary && !connect_type_is(type, CONNECT_STREAM_TYPE))
        return &refuse_stream_type;
    return NULL;
}

static bool is_announced_too_large(const struct exchange *exchange,
                                   struct MHD_Connection *connection)
{
    const char *text = header_get(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t len = 0;

    return !exchange->route->upload && text &&
           (parse_u64(text, &len) < 0 || len > exchange->body.max);
}

/* We speak version 1 without compression; a client that insists on more is told so. */
static int headers_check(const struct exchange *exchange, struct MHD_Connection *connection,
                         struct err *err)
{
    const char *version = header_get(connection, "Connect-Protocol-Version");
    const char *encoding =
        header_get(connection, exchange->route->unary ? MHD_HTTP_HEADER_CONTENT_ENCODING
                                                      : "Connect-Content-Encoding");

    if (version && strcmp(version, "1") != 0)
        return err_set(err, ERR_INVALID, "Connect-Protocol-Version must be 1");
    if (encoding && strcmp(encoding, "identity") != 0)
        return err_set(err, ERR_UNSUPPORTED, "unknown compression: only identity is supported");
    return 0;
}

static int access_check(const struct exchange *exchange, struct err *err)
{
    if (exchange->access == ACCESS_FULL || exchange->route->is_read_only)
        return 0;
    return err_set(err, ERR_DENIED, "this token may only look");
}

int exchange_read_timeout(struct exchange *exchange, struct MHD_Connection *connection,
                          struct err *err)
{
    const char *text = header_get(connection, "Connect-Timeout-Ms");
    uint64_t ms = 0;

    if (!text)
        return 0;
    if (strlen(text) > TIMEOUT_DIGITS_MAX || parse_u64(text, &ms) < 0)
        return err_set(err, ERR_INVALID, "Connect-Timeout-Ms must be a number of at most %d digits",
                       TIMEOUT_DIGITS_MAX);
    exchange->deadline_ns = exchange->started_ns + ms * 1000000;
    return 0;
}

/* What its header says about a call is known before its body is looked at. */
static enum MHD_Result call_begin(struct exchange *exchange, struct MHD_Connection *connection)
{
    /* Who may change nothing has no file to bring, and may not have us hold many. */
    if (exchange->route->is_large && exchange->access == ACCESS_FULL)
        exchange->body.max = ENVELOPE_HEADER_SIZE + ENVELOPE_LARGE_MAX;
    exchange->is_raw = wants_raw(exchange, connection);
    exchange->call = (struct call){
        .host = exchange->listener->host,
        .tokens = exchange->listener->tokens,
        .objects = exchange->listener->objects,
        .is_local = exchange->listener->is_local,
        .is_read_only = exchange->access != ACCESS_FULL,
        .is_raw = exchange->is_raw,
        .connection_fd =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
    };
    if (is_announced_too_large(exchange, connection)) {
        (void)too_large(exchange, &exchange->err);
        return exchange_fail(exchange, connection, &exchange->err);
    }
    exchange->is_failed = access_check(exchange, &exchange->err) < 0 ||
                          headers_check(exchange, connection, &exchange->err) < 0 ||
                          exchange_read_timeout(exchange, connection, &exchange->err) < 0;
    if (exchange->route->upload && !exchange->is_failed) {
        exchange->intake = upload_intake_new(exchange->route->upload, &exchange->call);
        client_connection_set_deadline(exchange->client, exchange->deadline_ns, true);
    }
    return MHD_YES;
}

/* Headers that say where a request ends and whom it is for. */
struct framing {
    unsigned hosts, lengths, encodings, sandboxes, ports;
    bool is_strange;
};

static enum MHD_Result framing_note(void *context, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    struct framing *framing = context;

    (void)kind;
    framing->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    framing->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    framing->sandboxes += strcasecmp(name, "E2b-Sandbox-Id") == 0;
    framing->ports += strcasecmp(name, "E2b-Sandbox-Port") == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        framing->encodings++;
        framing->is_strange |= !value || strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

/* libmicrohttpd takes one of several lengths. A proxy before us may have taken another, and what it
 * thought was a body would be a request here, with the rights of whoever is next on the connection.
 */
static bool framing_is_plain(struct MHD_Connection *connection)
{
    struct framing framing = { 0 };

    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, framing_note, &framing);
    return framing.hosts <= 1 && framing.lengths + framing.encodings <= 1 && !framing.is_strange &&
           framing.sandboxes <= 1 && framing.ports <= 1;
}

const struct refusal *exchange_check_origin(const struct exchange *exchange,
                                            struct MHD_Connection *connection, const char *host,
                                            bool is_anybody)
{
    const struct origin_rules *origin_rules = &exchange->listener->origin_rules;

    if (!framing_is_plain(connection))
        return &refuse_framing;
    if (!origin_rules_allow_host(origin_rules, host))
        return &refuse_host;
    if (!is_anybody &&
        !origin_rules_allow_origin(origin_rules, header_get(connection, MHD_HTTP_HEADER_ORIGIN)))
        return &refuse_origin;
    return NULL;
}

/* Why a request is not let in, or NULL. What it asks for plays no part, so that strangers learn
 * nothing but that they are. */
static const struct refusal *origin_check(struct exchange *exchange,
                                          struct MHD_Connection *connection, bool is_open)
{
    const struct listener *listener = exchange->listener;
    const struct refusal *refusal = exchange_check_origin(
        exchange, connection, header_get(connection, MHD_HTTP_HEADER_HOST), false);

    if (refusal)
        return refusal;
    exchange->access = ACCESS_FULL;
    if (!listener->is_local && !is_open)
        exchange->access = token_store_match(listener->tokens,
                                             header_get(connection, MHD_HTTP_HEADER_AUTHORIZATION));
    return exchange->access == ACCESS_NONE ? &refuse_token : NULL;
}

struct exchange *exchange_new(const struct listener *listener, const char *target)
{
    struct exchange *exchange = xcalloc(1, sizeof(*exchange));

    exchange->listener = listener;
    exchange->target = xstrdup(target);
    return exchange;
}

bool exchange_is_new(const struct exchange *exchange)
{
    return !exchange->is_begun;
}

enum MHD_Result exchange_begin(struct exchange *exchange, struct MHD_Connection *connection,
                               const char *path, const char *verb)
{
    const struct page *page = page_find(path, verb);

    exchange->is_begun = true;
    exchange->body.max = BODY_MAX;
    exchange->deadline_ns = CONNECTION_FOREVER;
    exchange->started_ns = guard_clock_ns();
    exchange->client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    client_connection_allow(exchange->client, CONNECTION_BODY_MS);
    if (exchange_is_e2b(exchange, connection, path, verb)) {
        exchange_begin_e2b(exchange);
        return MHD_YES;
    }
    exchange->refusal = origin_check(exchange, connection, page && page->is_open);
    exchange->is_stranger = exchange->refusal != NULL;
    if (exchange->refusal)
        return MHD_YES;
    exchange->page = page;
    if (page || exchange_is_mcp(path, verb, &exchange->mcp_verb))
        return MHD_YES;
    exchange->route = route_find(path);
    exchange->refusal =
        request_check(exchange->route, header_get(connection, MHD_HTTP_HEADER_CONTENT_TYPE), verb);
    return exchange->refusal ? MHD_YES : call_begin(exchange, connection);
}

/* A refused body is read to its end all the same: a client that is still writing would see a broken
 * pipe in place of the reason. */
enum MHD_Result exchange_discard(struct exchange *exchange, size_t len)
{
    size_t most = exchange->is_stranger ? STRANGER_MAX : DISCARD_MAX;

    exchange->discarded += len;
    return exchange->discarded <= most ? MHD_YES : MHD_NO;
}

enum MHD_Result exchange_receive(struct exchange *exchange, const char *data, size_t len)
{
    if (exchange->e2b)
        return exchange_receive_e2b(exchange, data, len);
    if (exchange->intake)
        return exchange_receive_upload(exchange, data, len) ? MHD_YES
                                                            : exchange_discard(exchange, len);
    client_connection_extend(exchange->client, len);
    if (exchange->page || exchange->refusal || exchange->is_failed)
        return exchange_discard(exchange, len);
    if (buf_add(&exchange->body, data, len) < 0) {
        exchange->is_failed = true;
        (void)too_large(exchange, &exchange->err);
        buf_done(&exchange->body);
    }
    return MHD_YES;
}

int exchange_unwrap(const struct exchange *exchange, size_t max, struct envelope *ret,
                    struct err *err)
{
    const struct buf *body = &exchange->body;
    long size = envelope_parse_up_to(body->data, body->len, max, ret);

    if (size == -EMSGSIZE)
        return err_set(err, ERR_EXHAUSTED, "the message is larger than %zu bytes", max);
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
        int r = exchange_unwrap(
            exchange, exchange->route->is_large ? ENVELOPE_LARGE_MAX : ENVELOPE_PAYLOAD_MAX,
            &message, err);

        if (r < 0)
            return r;
    }
    if (message.len == 0)
        return err_set(err, ERR_INVALID, "the message is empty; {} is the least");
    if (exchange->route->is_large)
        return json_parse_with_nul(message.payload, message.len, ret, err);
    return json_parse_object(message.payload, message.len, ret, err);
}

static int reply_write(const json_t *reply, struct buf *out, struct err *err)
{
    int r = reply ? json_write(reply, out) : buf_add_str(out, out->len > 0 ? "" : "{}");

    return r < 0 ? err_sys(err, r, "write the reply") : 0;
}

static enum MHD_Result unary_answer(struct exchange *exchange, struct MHD_Connection *connection,
                                    const json_t *request)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);
    cleanup_json json_t *reply = NULL;
    struct err err = { 0 };
    int r;

    exchange->call.out = &body;
    r = exchange->route->unary(&exchange->call, request, &reply, &err);

    if (r == -ECANCELED)
        exchange_explain_cancel(exchange, &err);
    if (r == 0)
        r = reply_write(reply, &body, &err);
    if (r < 0)
        return exchange_fail(exchange, connection, &err);
    exchange_count(exchange, ERR_NONE);
    client_connection_allow(exchange->client, CONNECTION_IDLE_MS);
    client_connection_extend(exchange->client, body.len);
    if (exchange_is_late(exchange, &err)) /* it is well, but the connection is not */
        return reply_send_last(connection, MHD_HTTP_OK, CONNECT_UNARY_TYPE, &body);
    return reply_send(connection, MHD_HTTP_OK, CONNECT_UNARY_TYPE, &body);
}

static enum MHD_Result call_answer(struct exchange *exchange, struct MHD_Connection *connection)
{
    cleanup_json json_t *request = NULL;
    struct err err = { 0 };

    if (exchange->is_failed || exchange_is_stopped(exchange, &exchange->err) ||
        exchange_is_late(exchange, &exchange->err))
        return exchange_fail(exchange, connection, &exchange->err);
    if (exchange->intake)
        return exchange->is_raw ? exchange_answer_raw(exchange, connection, NULL)
                                : exchange_answer_upload(exchange, connection);
    if (request_parse(exchange, &request, &err) < 0)
        return exchange_fail(exchange, connection, &err);
    if (exchange->is_raw)
        return exchange_answer_raw(exchange, connection, request);
    if (exchange->route->stream)
        return exchange_answer_stream(exchange, connection, request);
    return unary_answer(exchange, connection, request);
}

static enum MHD_Result page_answer(const struct exchange *exchange,
                                   struct MHD_Connection *connection)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);

    if (exchange->page->fill(exchange->listener->host, &body) < 0)
        return MHD_NO;
    return reply_send(connection, MHD_HTTP_OK, exchange->page->type, &body);
}

/* The client may take its time for reading what was queued; only a stream that goes on has to
 * itself how long it lasts. */
enum MHD_Result exchange_answer(struct exchange *exchange, struct MHD_Connection *connection)
{
    if (exchange->is_answered)
        return MHD_NO;
    if (exchange->e2b)
        return exchange_answer_e2b(exchange);
    if (exchange->page)
        return page_answer(exchange, connection);
    if (exchange->refusal)
        return reply_refuse(connection, exchange->refusal);
    if (exchange->mcp_verb != MCP_NONE)
        return exchange_answer_mcp(exchange, connection);
    client_connection_allow(exchange->client, CONNECTION_FOREVER);
    if (!exchange->intake) {
        exchange->started_ns = guard_clock_ns(); /* a slow client is not the method's time */
        client_connection_set_deadline(exchange->client, exchange->deadline_ns,
                                       !exchange->route->unary);
    }
    return call_answer(exchange, connection);
}

void exchange_free(struct exchange *exchange)
{
    if (!exchange)
        return;
    if (exchange->client) {
        client_connection_set_deadline(exchange->client, CONNECTION_FOREVER, false);
        client_connection_allow(exchange->client, exchange_is_kept(exchange) ? CONNECTION_KEPT_MS
                                                                             : CONNECTION_IDLE_MS);
    }
    exchange_free_e2b(exchange);
    exchange_count(exchange, ERR_CANCELED); /* by a client that went away */
    if (exchange->raw_stream)
        exchange->raw_stream->ops->close(exchange->raw_stream);
    if (exchange->raw_upload)
        exchange->raw_upload->ops->close(exchange->raw_upload);
    upload_intake_free(exchange->intake);
    buf_done(&exchange->body);
    free(exchange->target);
    free(exchange);
}
