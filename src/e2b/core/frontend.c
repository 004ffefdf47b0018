// SPDX-License-Identifier: Apache-2.0
/* The life of a request of E2B's, from its header to its answer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/route.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "e2b/core/gate.h"
#include "e2b/core/reset.h"
#include "e2b/core/route.h"
#include "e2b/core/wake.h"
#include "host/sandbox/sandbox.h"
#include "http/call_stats.h"
#include "http/connect.h"
#include "http/exchange.h"
#include "http/exchange_internal.h"
#include "http/limits.h"
#include "http/page.h"
#include "http/reply.h"
#include "http/stream.h"
#include "wire/envelope.h"

enum { STREAM_BLOCK = 1024 }; /* libmicrohttpd's own buffer, which chunked replies do not use */

/* A request, and what is found about it before its body was whole. */
struct e2b_call {
    struct e2b_request request; /* first: it is what others see */
    unsigned refusal;           /* a status with exchange->err; 0: none */
    struct e2b_reset reset;     /* of a stream or a transfer */
};

static struct e2b_call *call_of(const struct exchange *exchange)
{
    return (struct e2b_call *)exchange->e2b;
}

static const char *header_get(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static void request_fill(struct e2b_request *request, struct exchange *exchange,
                         struct MHD_Connection *connection, const char *verb)
{
    request->exchange = exchange;
    request->connection = connection;
    request->connection_fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    request->host = exchange->listener->host;
    request->verb = verb;
    request->target = exchange->target;
    request->path = xasprintf("%.*s", (int)strcspn(exchange->target, "?#"), exchange->target);
    request->outcome = ERR_CANCELED;
}

static bool is_holts(const char *path, const char *verb)
{
    enum mcp_verb ignored;

    return page_find(path, verb) || route_find(path) || exchange_is_mcp(path, verb, &ignored);
}

bool exchange_is_e2b(struct exchange *exchange, struct MHD_Connection *connection, const char *path,
                     const char *verb)
{
    const struct e2b_signs signs = {
        .path = path,
        .sandbox_header = header_get(connection, "E2b-Sandbox-Id"),
        .port_header = header_get(connection, "E2b-Sandbox-Port"),
        .host = header_get(connection, MHD_HTTP_HEADER_HOST),
        .has_signature =
            MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "signature") != NULL,
        .has_key = header_get(connection, "X-API-KEY") && !is_holts(path, verb),
    };
    struct e2b_place place;
    struct e2b_call *call;
    bool is_clear = e2b_place_find(&signs, &place);

    if (is_clear && place.kind == E2B_NONE)
        return false;
    call = xcalloc(1, sizeof(*call));
    call->request.place = place;
    request_fill(&call->request, exchange, connection, verb);
    exchange->e2b = &call->request;
    if (!is_clear) {
        (void)err_set(&exchange->err, ERR_INVALID, "E2b-Sandbox-Port must be a port");
        call->refusal = MHD_HTTP_BAD_REQUEST;
    }
    return true;
}

/* Whom the request says it is for, without what says which of our places. */
static const char *host_of(const struct e2b_request *request)
{
    static const char *const places[] = { "api.", "sandbox." };
    const char *host = e2b_header(request, MHD_HTTP_HEADER_HOST);
    char sandbox[SANDBOX_ID_MAX];
    uint16_t port;
    const char *rest = host ? e2b_host_parse(host, &port, sandbox) : NULL;

    for (size_t i = 0; host && !rest && i < ARRAY_SIZE(places); i++)
        if (strncasecmp(host, places[i], strlen(places[i])) == 0)
            rest = host + strlen(places[i]);
    return rest ? rest : host;
}

static unsigned origin_check(struct exchange *exchange)
{
    struct e2b_request *request = exchange->e2b;
    const struct refusal *refusal = exchange_check_origin(
        exchange, request->connection, host_of(request), request->place.kind == E2B_PORT);

    if (!refusal)
        return 0;
    exchange->is_stranger = true;
    (void)err_set(&exchange->err, refusal->kind, "%s", refusal->message);
    return refusal->http_status;
}

static unsigned route_check(struct e2b_request *request, struct err *err)
{
    bool has_path;

    request->route = e2b_route_find(request, &has_path);
    if (request->route)
        return 0;
    (void)err_set(err, has_path ? ERR_UNSUPPORTED : ERR_NOT_FOUND, "there is no %s %.150s here",
                  request->verb, request->path);
    return has_path ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND;
}

/* A handler's refusal of what it was given so far. */
static void fail(struct exchange *exchange)
{
    exchange->is_failed = true;
    buf_done(&exchange->body);
}

/* Before the sandbox is asked for anything, so that no pause is missed. */
static void reset_note(struct e2b_request *request)
{
    char id[SANDBOX_ID_MAX] = "";

    (void)e2b_id_to(request->place.sandbox, id);
    e2b_reset_add(request->exchange->listener->resets, &call_of(request->exchange)->reset, id,
                  request->connection_fd);
}

static int body_begin(struct e2b_request *request, struct err *err)
{
    const struct e2b_route *route = request->route;
    int r = 0;

    if (route->is_transfer)
        reset_note(request);
    if (route->unary || route->stream)
        r = exchange_read_timeout(request->exchange, request->connection, err);
    return r == 0 && route->body ? route->body->begin(request, err) : r;
}

/* Who may not come in learns nothing of what there is. */
void exchange_begin_e2b(struct exchange *exchange)
{
    struct e2b_call *call = call_of(exchange);
    struct e2b_request *request = &call->request;
    unsigned unrouted;
    struct err why = { 0 };

    if (call->refusal == 0)
        call->refusal = origin_check(exchange);
    if (call->refusal != 0)
        return;
    unrouted = route_check(request, &why);
    call->refusal = e2b_gate_pass(request, &exchange->err);
    exchange->is_stranger = call->refusal == MHD_HTTP_UNAUTHORIZED;
    if (call->refusal == 0 && unrouted != 0) {
        call->refusal = unrouted;
        exchange->err = why;
    }
    if (call->refusal != 0)
        return;
    if (body_begin(request, &exchange->err) < 0)
        fail(exchange);
}

/* Only of those who have shown that they may come. */
bool exchange_is_kept(const struct exchange *exchange)
{
    return exchange->e2b && (exchange->access != ACCESS_NONE || exchange->e2b->has_token);
}

enum MHD_Result exchange_receive_e2b(struct exchange *exchange, const char *data, size_t len)
{
    struct e2b_call *call = call_of(exchange);

    client_connection_extend(exchange->client, len);
    if (call->refusal != 0 || exchange->is_failed)
        return exchange_discard(exchange, len);
    if (call->request.route->body) {
        if (call->request.route->body->receive(&call->request, data, len, &exchange->err) < 0)
            fail(exchange);
    } else if (buf_add(&exchange->body, data, len) < 0) {
        (void)err_set(&exchange->err, ERR_EXHAUSTED, "the request is larger than %zu bytes",
                      exchange->body.max);
        fail(exchange);
    }
    return MHD_YES;
}

/* --- answers ---------------------------------------------------------------------------------- */

static enum MHD_Result connect_fail(struct e2b_request *request, const struct err *err)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);

    client_connection_allow(request->exchange->client, CONNECTION_IDLE_MS);
    request->outcome = err->kind;
    if (request->route->stream) {
        if (envelope_add_end(&body, err) < 0)
            return MHD_NO;
        return reply_send(request->connection, MHD_HTTP_OK, CONNECT_STREAM_TYPE, &body);
    }
    if (connect_error_write(&body, err) < 0)
        return MHD_NO;
    return reply_send(request->connection, err_kind_row(err->kind)->http_status, CONNECT_UNARY_TYPE,
                      &body);
}

/* The one message of a Connect call; an object in any case. */
static int message_parse(struct e2b_request *request, struct err *err)
{
    struct exchange *exchange = request->exchange;
    struct envelope message = { .payload = exchange->body.data, .len = exchange->body.len };
    int r = 0;

    if (request->route->stream)
        r = exchange_unwrap(exchange, ENVELOPE_PAYLOAD_MAX, &message, err);
    if (r < 0)
        return r;
    if (message.len == 0)
        request->body = json_object();
    else
        r = json_parse_with_nul(message.payload, message.len, &request->body, err);
    return r;
}

static enum MHD_Result unary_answer(struct e2b_request *request)
{
    json_t *reply = NULL;
    struct err err = { 0 };
    int r = request->route->unary(request, &reply, &err);

    if (r == -ECANCELED)
        exchange_explain_cancel(request->exchange, &err);
    if (r < 0)
        return connect_fail(request, &err);
    return e2b_reply_json(request, MHD_HTTP_OK, reply ? reply : json_object());
}

static bool is_late(void *context, struct err *err)
{
    return exchange_is_late(context, err);
}

static bool is_stopped(void *context, struct err *err)
{
    return exchange_is_stopped(context, err);
}

static void on_end(void *context, enum err_kind kind)
{
    const struct exchange *exchange = context;

    exchange->e2b->outcome = kind;
}

/* A stream whose client must see that the sandbox, and not the stream, has ended. */
struct watched {
    struct stream_reply *reply;
    struct sandbox *sandbox; /* a reference: the stream may have taken the request's */
    int fd;
};

/* What a process says at its end is not passed on where it was its sandbox that ended: clients
 * would take it for the process's own. */
static ssize_t watched_read(void *context, uint64_t position, char *data, size_t size)
{
    struct watched *watched = context;
    ssize_t n = stream_reply_read(watched->reply, position, data, size);

    if (e2b_is_awake(watched->sandbox))
        return n;
    e2b_connection_reset(watched->fd);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static void watched_free(void *context)
{
    struct watched *watched = context;

    if (watched->reply)
        stream_reply_free(watched->reply);
    sandbox_unref(watched->sandbox);
    free(watched);
}

static int watched_new(struct e2b_request *request, struct watched **ret, struct err *err)
{
    struct watched *watched = xcalloc(1, sizeof(*watched));
    char id[SANDBOX_ID_MAX] = "";
    int r;

    (void)e2b_id_to(request->place.sandbox, id);
    r = sandbox_find(request->host, id, &watched->sandbox, err);
    if (r < 0) {
        watched_free(watched);
        return r;
    }
    watched->fd = request->connection_fd;
    reset_note(request);
    *ret = watched;
    return 0;
}

static enum MHD_Result stream_answer(struct e2b_request *request)
{
    const struct stream_owner owner = { is_late, is_stopped, on_end, request->exchange };
    struct MHD_Response *response;
    struct stream *stream = NULL;
    struct watched *watched;
    struct err err = { 0 };

    if (watched_new(request, &watched, &err) < 0)
        return e2b_reply_gone(request);
    if (request->route->stream(request, &stream, &err) < 0) {
        watched_free(watched);
        return connect_fail(request, &err);
    }
    watched->reply = stream_reply_new(stream, &owner);
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, watched_read,
                                                 watched, watched_free);
    if (!response) {
        watched_free(watched);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, CONNECT_STREAM_TYPE);
    return e2b_reply_response(request, MHD_HTTP_OK, response);
}

static enum MHD_Result connect_answer(struct e2b_request *request)
{
    struct exchange *exchange = request->exchange;
    struct err err = { 0 };

    if (exchange->is_failed || exchange_is_late(exchange, &exchange->err))
        return connect_fail(request, &exchange->err);
    if (message_parse(request, &err) < 0)
        return connect_fail(request, &err);
    client_connection_set_deadline(exchange->client, exchange->deadline_ns,
                                   request->route->stream != NULL);
    return request->route->stream ? stream_answer(request) : unary_answer(request);
}

/* A client of an old SDK sends no body where a new one sends {}. */
static enum MHD_Result rest_answer(struct e2b_request *request)
{
    struct exchange *exchange = request->exchange;
    struct err err = { 0 };

    if (exchange->is_failed && !request->route->body)
        return e2b_reply_error(request, MHD_HTTP_CONTENT_TOO_LARGE, "%s", exchange->err.msg);
    if (exchange->is_failed)
        return e2b_reply_err(request, &exchange->err);
    if (exchange->body.len > 0 &&
        json_parse_object(exchange->body.data, exchange->body.len, &request->body, &err) < 0)
        return e2b_reply_error(request, MHD_HTTP_BAD_REQUEST, "%s", err.msg);
    return request->route->answer(request);
}

static enum MHD_Result refuse(struct e2b_call *call)
{
    struct e2b_request *request = &call->request;

    if (request->exchange->is_stranger)
        e2b_header_add(request, MHD_HTTP_HEADER_CONNECTION, "close");
    if (call->refusal == MHD_HTTP_BAD_GATEWAY)
        return e2b_reply_gone(request);
    return e2b_reply_error(request, call->refusal, "%s", request->exchange->err.msg);
}

enum MHD_Result exchange_answer_e2b(struct exchange *exchange)
{
    struct e2b_call *call = call_of(exchange);
    struct e2b_request *request = &call->request;

    if (call->refusal != 0)
        return refuse(call);
    if (exchange_is_stopped(exchange, &exchange->err)) {
        e2b_header_add(request, MHD_HTTP_HEADER_CONNECTION, "close");
        return e2b_reply_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "%s", exchange->err.msg);
    }
    client_connection_allow(exchange->client, CONNECTION_FOREVER);
    if (!request->route->body)
        exchange->started_ns = guard_clock_ns(); /* a slow client is not the method's time */
    return request->route->answer ? rest_answer(request) : connect_answer(request);
}

void exchange_free_e2b(struct exchange *exchange)
{
    struct e2b_request *request = exchange->e2b;

    if (!request)
        return;
    if (request->route)
        call_stats_add(ROUTES_MAX + e2b_route_index(request->route), request->outcome,
                       guard_clock_ns() - exchange->started_ns);
    e2b_reset_remove(exchange->listener->resets, &call_of(exchange)->reset);
    if (request->state && request->route && request->route->close)
        request->route->close(request);
    for (size_t i = 0; i < E2B_PARAMS_MAX; i++)
        free(request->params[i]);
    for (size_t i = 0; i < request->header_count; i++)
        free(request->headers[i].value);
    sandbox_unref(request->sandbox);
    json_decref(request->metadata);
    json_decref(request->body);
    free(request->path);
    free(call_of(exchange));
    exchange->e2b = NULL;
}
