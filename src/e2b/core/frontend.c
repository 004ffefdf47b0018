// SPDX-License-Identifier: Apache-2.0
/* The life of an E2B request, from its header to its reply. */
#include "e2b/core/frontend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "e2b/control/history.h"
#include "e2b/control/secret.h"
#include "e2b/control/snapshot.h"
#include "e2b/core/e2b.h"
#include "e2b/core/gate.h"
#include "e2b/core/object_store.h"
#include "e2b/core/reset.h"
#include "e2b/core/route.h"
#include "e2b/core/wake.h"
#include "e2b/envd/watcher.h"
#include "e2b/port/access.h"
#include "e2b/template/build.h"
#include "host/core/host.h"
#include "host/sandbox/sandbox.h"
#include "host/secret/grant.h"
#include "host/secret/secret.h"
#include "http/call_stats.h"
#include "http/connect.h"
#include "http/connect_call.h"
#include "http/exchange.h"
#include "http/limits.h"
#include "http/reply.h"
#include "http/stream.h"

/* A request, with what its header has decided. */
struct e2b_call {
    struct e2b_request request; /* first: handlers see this part */
    struct connect_call connect;
    unsigned refusal;       /* HTTP status, with exchange->err as the reason; 0: none */
    bool is_login;          /* a browser passes its token for a port; see e2b/port/access.h */
    struct e2b_reset reset; /* of a stream or a transfer */
};

static struct e2b_call *call_of(const struct exchange *exchange)
{
    return exchange->state;
}

static struct e2b_request *request_of(const struct connect_call *connect)
{
    return &call_of(connect->exchange)->request;
}

/* --- the front end's own state ---------------------------------------------------------------- */

int e2b_open(struct host *host, const char *state_dir, struct e2b **ret, struct err *err)
{
    struct e2b *e2b = xcalloc(1, sizeof(*e2b));
    int r;

    e2b->host = host;
    r = e2b_objects_open(state_dir, &e2b->objects, err);
    if (r == 0)
        r = e2b_snapshots_recover(host, e2b->objects, err);
    if (r == 0)
        r = e2b_builds_open(host, e2b->objects, state_dir, &e2b->builds, err);
    if (r == 0) {
        e2b_secrets_recover(host, e2b->objects);
        secrets_set_source(host_secrets(host), e2b_secret_value, e2b);
        secret_grants_apply(host); /* of sandboxes that were running already */
    }
    e2b->watchers = e2b_watchers_new();
    e2b->resets = e2b_resets_new(host);
    e2b->history = e2b_history_new(host);
    if (r < 0) {
        e2b_close(e2b);
        return r;
    }
    *ret = e2b;
    return 0;
}

void e2b_close(struct e2b *e2b)
{
    if (!e2b)
        return;
    secrets_set_source(host_secrets(e2b->host), NULL, NULL);
    e2b_resets_free(e2b->resets);
    e2b_history_free(e2b->history);
    e2b_watchers_free(e2b->watchers);
    e2b_builds_close(e2b->builds);
    e2b_objects_close(e2b->objects);
    free(e2b);
}

/* --- the header ------------------------------------------------------------------------------- */

static void request_fill(struct e2b_request *request, struct exchange *exchange)
{
    request->e2b = exchange->frontend->context;
    request->host = request->e2b->host;
    request->exchange = exchange;
    request->connection = exchange->connection;
    request->connection_fd = exchange->connection_fd;
    request->verb = exchange->verb;
    request->target = exchange->target;
    request->path = xasprintf("%.*s", (int)strcspn(exchange->target, "?#"), exchange->target);
    request->outcome = ERR_CANCELED;
}

static bool e2b_claim(struct exchange *exchange)
{
    const struct e2b_request_headers headers = {
        .path = exchange->path,
        .sandbox_header = exchange_header(exchange, "E2b-Sandbox-Id"),
        .port_header = exchange_header(exchange, "E2b-Sandbox-Port"),
        .host = exchange_header(exchange, MHD_HTTP_HEADER_HOST),
        .has_signature = MHD_lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND,
                                                     "signature") != NULL,
        .has_key = exchange_header(exchange, "X-API-KEY") &&
                   !exchange_is_owned_by_other(exchange, exchange->frontend),
    };
    struct e2b_target to;
    struct e2b_call *call;
    bool is_clear = e2b_target_find(&headers, &to);

    if (is_clear && to.kind == E2B_NONE)
        return false;
    call = xcalloc(1, sizeof(*call));
    call->request.to = to;
    request_fill(&call->request, exchange);
    exchange->state = call;
    if (!is_clear) {
        (void)err_set(&exchange->err, ERR_INVALID, "E2b-Sandbox-Port must be a port");
        call->refusal = MHD_HTTP_BAD_REQUEST;
    }
    return true;
}

/* The Host header without the part that names a sandbox or an API of ours. */
static const char *host_of(const struct e2b_request *request)
{
    static const char *const prefixes[] = { "api.", "sandbox." };
    const char *host = e2b_header(request, MHD_HTTP_HEADER_HOST);
    char sandbox[SANDBOX_ID_MAX];
    uint16_t port;
    const char *rest = host ? e2b_host_parse(host, &port, sandbox) : NULL;

    for (size_t i = 0; host && !rest && i < ARRAY_SIZE(prefixes); i++)
        if (strncasecmp(host, prefixes[i], strlen(prefixes[i])) == 0)
            rest = host + strlen(prefixes[i]);
    return rest ? rest : host;
}

static unsigned origin_check(struct exchange *exchange)
{
    const struct e2b_request *request = &call_of(exchange)->request;
    const char *host = host_of(request);
    const char *whole = e2b_header(request, MHD_HTTP_HEADER_HOST);
    const struct origin_rules *rules = &exchange->listener->origin_rules;
    const struct refusal *refusal;

    /* Only E2B's requests, which need no cookie of the console, are answered below preview.domain.
     */
    if (origin_rules_is_preview(rules, host))
        host = NULL;
    refusal = exchange_check_origin(exchange, host, request->to.kind == E2B_PORT);
    if (!refusal && request->to.kind == E2B_PORT && host && host != whole &&
        !origin_rules_allow_ports(rules, host))
        refusal = &refuse_host;

    if (!refusal && request->to.kind == E2B_PORT && !port_origin_is_allowed(request))
        refusal = &refuse_origin;
    if (!refusal)
        return 0;
    exchange->is_unauthenticated = true;
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

static void request_fail(struct exchange *exchange)
{
    exchange->is_failed = true;
    buf_done(&exchange->body);
}

/* Runs before the sandbox is used for anything, so that no pause is missed. */
static void reset_register(struct e2b_request *request)
{
    char id[SANDBOX_ID_MAX] = "";

    (void)e2b_id_to(request->to.sandbox, id);
    call_of(request->exchange)->reset.is_stream = !request->route->is_transfer;
    e2b_reset_add(request->e2b->resets, &call_of(request->exchange)->reset, id,
                  request->connection_fd);
}

static int connect_unary(struct connect_call *connect, const json_t *message, struct buf *out,
                         struct err *err);
static int connect_stream(struct connect_call *connect, const json_t *message, struct stream **ret,
                          struct err *err);

static enum MHD_Result connect_send(struct connect_call *connect, unsigned status,
                                    struct MHD_Response *response)
{
    return e2b_reply_response(request_of(connect), status, response);
}

static void connect_on_end(struct connect_call *connect, enum err_kind kind)
{
    request_of(connect)->outcome = kind;
}

static const struct connect_ops envd_ops = {
    .unary = connect_unary,
    .stream = connect_stream,
    .send = connect_send,
    .on_end = connect_on_end,
};

static void connect_init(struct e2b_request *request)
{
    call_of(request->exchange)->connect = (struct connect_call){
        .exchange = request->exchange,
        .ops = &envd_ops,
        .name = request->route->path,
        .shape = request->route->stream ? CONNECT_STREAM : CONNECT_UNARY,
        .accepts_empty = true,
        .is_kept = true, /* every command of an SDK has a deadline, and most end before it */
    };
}

static int body_begin(struct e2b_request *request, struct err *err)
{
    const struct e2b_route *route = request->route;
    int r = 0;

    if (route->is_transfer)
        reset_register(request);
    if (!route->answer) {
        connect_init(request);
        r = exchange_read_timeout(request->exchange, err);
    }
    return r == 0 && route->body ? route->body->begin(request, err) : r;
}

/* An unauthenticated client does not learn which paths exist. */
static enum MHD_Result e2b_begin(struct exchange *exchange)
{
    struct e2b_call *call = call_of(exchange);
    struct e2b_request *request = &call->request;
    unsigned unrouted;
    struct err why = { 0 };

    if (call->refusal == 0)
        call->refusal = origin_check(exchange);
    if (call->refusal != 0)
        return MHD_YES;
    unrouted = route_check(request, &why);
    call->refusal = e2b_gate_check(request, &exchange->err);
    exchange->is_unauthenticated = call->refusal == MHD_HTTP_UNAUTHORIZED;
    if (call->refusal == 0 && unrouted != 0) {
        call->refusal = unrouted;
        exchange->err = why;
    }
    call->is_login =
        call->refusal == 0 && request->to.kind == E2B_PORT && port_access_is_login(request);
    if (call->refusal == 0 && !call->is_login && body_begin(request, &exchange->err) < 0)
        request_fail(exchange);
    return MHD_YES;
}

/* Only authenticated clients keep their connections for longer. */
static bool e2b_is_kept(const struct exchange *exchange)
{
    return exchange->caller.role != ROLE_NONE || call_of(exchange)->request.has_token;
}

static enum MHD_Result e2b_receive(struct exchange *exchange, const char *data, size_t len)
{
    struct e2b_call *call = call_of(exchange);

    client_connection_extend(exchange->client, len);
    if (call->refusal != 0 || call->is_login || exchange->is_failed)
        return exchange_discard(exchange, len);
    if (call->request.route->body) {
        if (call->request.route->body->receive(&call->request, data, len, &exchange->err) < 0)
            request_fail(exchange);
    } else if (buf_add(&exchange->body, data, len) < 0) {
        exchange_fail_too_large(exchange);
    }
    return MHD_YES;
}

/* --- Connect calls ---------------------------------------------------------------------------- */

static int connect_unary(struct connect_call *connect, const json_t *message, struct buf *out,
                         struct err *err)
{
    struct e2b_request *request = request_of(connect);
    int r;

    request->body = json_incref((json_t *)(uintptr_t)message);
    r = request->route->unary(request, out, err);
    if (r == 0 && out->len == 0 && buf_add_str(out, "{}") < 0)
        return err_sys(err, -ENOMEM, "write the reply");
    return r;
}

/* A stream whose client must be able to tell the end of the sandbox from the end of the stream. */
struct sandbox_stream {
    struct stream stream;
    struct stream *inner;
    struct sandbox *sandbox; /* a reference: the inner stream may have taken the request's */
    int fd;
};

/* When a sandbox ends, so do its processes. Clients would take their last messages for ends of
 * their own, so these are dropped, and the connection is cut. */
static int sandbox_stream_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct sandbox_stream *own = (struct sandbox_stream *)stream;
    int r = own->inner->ops->next(own->inner, out, err);

    if (e2b_is_active(own->sandbox))
        return r;
    e2b_connection_cut(own->fd);
    return -ECANCELED;
}

static void sandbox_stream_close(struct stream *stream)
{
    struct sandbox_stream *own = (struct sandbox_stream *)stream;

    if (own->inner)
        own->inner->ops->close(own->inner);
    sandbox_unref(own->sandbox);
    free(own);
}

static int connect_stream(struct connect_call *connect, const json_t *message, struct stream **ret,
                          struct err *err)
{
    static const struct stream_ops ops = { sandbox_stream_next, sandbox_stream_close };
    struct e2b_request *request = request_of(connect);
    struct sandbox_stream *own = xcalloc(1, sizeof(*own));
    char id[SANDBOX_ID_MAX] = "";
    int r;

    own->stream.ops = &ops;
    own->fd = request->connection_fd;
    request->body = json_incref((json_t *)(uintptr_t)message);
    (void)e2b_id_to(request->to.sandbox, id);
    r = sandbox_find(request->host, &caller_root, id, &own->sandbox, err);
    if (r == 0) {
        reset_register(request);
        r = request->route->stream(request, &own->inner, err);
    }
    if (r < 0) {
        sandbox_stream_close(&own->stream);
        return r;
    }
    own->stream.ends_itself = own->inner->ends_itself;
    *ret = &own->stream;
    return 0;
}

/* --- replies ---------------------------------------------------------------------------------- */

/* Old SDKs send no body where new ones send {}. */
static enum MHD_Result rest_answer(struct e2b_request *request)
{
    struct exchange *exchange = request->exchange;
    struct err err = { 0 };

    client_connection_allow(exchange->client, CONNECTION_FOREVER);
    if (!request->route->body)
        exchange->started_ns = clock_ns(); /* a slow client does not count as the method's time */
    if (exchange->is_failed && !request->route->body)
        return e2b_reply_error(request, MHD_HTTP_CONTENT_TOO_LARGE, "%s", exchange->err.msg);
    if (exchange->is_failed)
        return e2b_reply_err(request, &exchange->err);
    if (exchange->body.len > 0 &&
        json_parse_object(exchange->body.data, exchange->body.len, &request->body, &err) < 0)
        return e2b_reply_error(request, MHD_HTTP_BAD_REQUEST, "%s", err.msg);
    return request->route->answer(request);
}

static enum MHD_Result refusal_answer(struct e2b_call *call)
{
    struct e2b_request *request = &call->request;

    if (request->exchange->is_unauthenticated)
        e2b_header_add(request, MHD_HTTP_HEADER_CONNECTION, "close");
    if (call->refusal == MHD_HTTP_BAD_GATEWAY)
        return e2b_reply_gone(request);
    return e2b_reply_error(request, call->refusal, "%s", request->exchange->err.msg);
}

/* It may have ended since the header was checked. */
static bool sandbox_exists(const struct e2b_request *request)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    char id[SANDBOX_ID_MAX] = "";
    struct err ignored;

    (void)e2b_id_to(request->to.sandbox, id);
    return sandbox_find(request->host, &caller_root, id, &sandbox, &ignored) == 0;
}

static enum MHD_Result e2b_answer(struct exchange *exchange)
{
    struct e2b_call *call = call_of(exchange);
    struct e2b_request *request = &call->request;

    if (call->refusal != 0)
        return refusal_answer(call);
    if (call->is_login)
        return port_access_login(request);
    if (exchange_is_stopped(exchange, &exchange->err)) {
        e2b_header_add(request, MHD_HTTP_HEADER_CONNECTION, "close");
        return e2b_reply_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "%s", exchange->err.msg);
    }
    if (request->route->answer)
        return rest_answer(request);
    return request->route->stream && !sandbox_exists(request) ? e2b_reply_gone(request)
                                                              : connect_call_answer(&call->connect);
}

static void e2b_close_call(struct exchange *exchange)
{
    struct e2b_call *call = call_of(exchange);
    struct e2b_request *request = &call->request;

    if (request->route)
        call_stats_add(exchange->frontend->first_method + e2b_route_index(request->route),
                       request->outcome, clock_ns() - exchange->started_ns);
    e2b_reset_remove(request->e2b->resets, &call->reset);
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
    free(call);
}

/* "e2b.control GET /sandboxes/{}", as the table has it: no part of a client's path is in the name.
 */
static bool e2b_method_name(size_t index, char *ret, size_t size)
{
    const char *place;
    const struct e2b_route *route = e2b_route_at(index, &place);

    if (route)
        (void)snprintf(ret, size, "e2b.%s %s %s", place, route->verb, route->path);
    return route != NULL;
}

const struct frontend_ops e2b_frontend = {
    .name = "e2b",
    .claim = e2b_claim,
    .begin = e2b_begin,
    .receive = e2b_receive,
    .answer = e2b_answer,
    .close = e2b_close_call,
    .is_kept = e2b_is_kept,
    .method_name = e2b_method_name,
};
