// SPDX-License-Identifier: Apache-2.0
#include "api/frontend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/route.h"
#include "api/stream/raw_session.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "http/call_stats.h"
#include "http/connect_call.h"
#include "http/exchange.h"
#include "wire/envelope.h"

/* One call of holt.v1 in progress. */
struct rpc {
    struct connect_call connect; /* first: a struct connect_call * is a struct rpc * */
    const struct route *route;
    struct call call; /* what the service may know */
};

static struct rpc *rpc_of(struct connect_call *connect)
{
    return (struct rpc *)connect;
}

static int rpc_unary(struct connect_call *connect, const json_t *request, struct buf *out,
                     struct err *err)
{
    struct rpc *rpc = rpc_of(connect);
    int r;

    rpc->call.out = out;
    r = rpc->route->unary(&rpc->call, request, err);
    if (r < 0 || out->len > 0)
        return r;
    r = buf_add_str(out, "{}");
    return r < 0 ? err_sys(err, r, "write the reply") : 0;
}

static int rpc_stream(struct connect_call *connect, const json_t *request, struct stream **ret,
                      struct err *err)
{
    struct rpc *rpc = rpc_of(connect);

    return rpc->route->stream(&rpc->call, request, ret, err);
}

static int rpc_upload(struct connect_call *connect, const json_t *first, struct upload **ret,
                      struct err *err)
{
    struct rpc *rpc = rpc_of(connect);

    return rpc->route->upload(&rpc->call, first, ret, err);
}

static void rpc_serve_raw(struct connect_call *connect, const struct stream_owner *owner,
                          const struct raw_client *client)
{
    struct upgraded_connections *upgraded = connect->exchange->listener->upgraded;

    if (connect->raw_upload)
        raw_upload_run(upgraded, TAKE_PTR(connect->raw_upload), owner, client);
    else
        raw_session_run(upgraded, TAKE_PTR(connect->raw_stream), owner, client);
}

static void rpc_on_end(struct connect_call *connect, enum err_kind kind)
{
    const struct exchange *exchange = connect->exchange;

    call_stats_add(exchange->frontend->first_method + route_index(rpc_of(connect)->route), kind,
                   clock_ns() - exchange->started_ns);
}

static const struct connect_ops rpc_ops = {
    .unary = rpc_unary,
    .stream = rpc_stream,
    .upload = rpc_upload,
    .serve_raw = rpc_serve_raw,
    .on_end = rpc_on_end,
};

static enum connect_shape shape_of(const struct route *route)
{
    if (route->upload)
        return CONNECT_UPLOAD;
    return route->stream ? CONNECT_STREAM : CONNECT_UNARY;
}

static struct rpc *rpc_new(struct exchange *exchange, const struct route *route)
{
    const struct api *api = exchange->frontend->context;
    struct rpc *rpc = xcalloc(1, sizeof(*rpc));

    rpc->route = route;
    rpc->connect = (struct connect_call){
        .exchange = exchange,
        .ops = &rpc_ops,
        .name = route->path,
        .shape = shape_of(route),
        .can_be_raw = route->can_be_raw,
        .is_large = route->is_large,
    };
    rpc->call = (struct call){
        .host = api->host,
        .listener = exchange->listener,
        .tokens = api->tokens,
        .agents_dir = api->agents_dir,
        .sessions = exchange->listener->sessions,
        .has_port_names = api->has_port_names,
        .is_local = exchange->listener->is_local,
        .caller = &exchange->caller,
        .connection_fd = exchange->connection_fd,
    };
    return rpc;
}

static bool holt_owns(const char *path, const char *verb)
{
    (void)verb;
    return route_find(path) != NULL;
}

/* Fails if the role of the caller does not allow the method, before anything of the body is read.
 */
static int role_check(const struct caller *caller, const struct route *route, struct err *err)
{
    if (!route->is_read_only && !caller_may_change(caller))
        return err_set(err, ERR_DENIED, "this token is read-only");
    if (route->is_admin && !caller_is_host_admin(caller))
        return err_set(err, ERR_DENIED,
                       "this method concerns the whole host: it needs the role admin and a token "
                       "that is not limited to labels");
    return 0;
}

/* A read-only token has no file to send, so it does not get the larger buffer. */
static enum MHD_Result holt_begin(struct exchange *exchange)
{
    struct rpc *rpc = rpc_new(exchange, route_find(exchange->path));
    enum MHD_Result result;

    exchange->state = rpc;
    exchange->refusal = connect_call_check(&rpc->connect);
    if (exchange->refusal)
        return MHD_YES;
    if (rpc->route->is_large && caller_may_change(&exchange->caller))
        exchange->body.max = ENVELOPE_HEADER_SIZE + ENVELOPE_LARGE_MAX;
    exchange->is_failed = role_check(&exchange->caller, rpc->route, &exchange->err) < 0;
    result = connect_call_begin(&rpc->connect);
    rpc->call.is_raw = rpc->connect.is_raw;
    return result;
}

static enum MHD_Result holt_receive(struct exchange *exchange, const char *data, size_t len)
{
    struct rpc *rpc = exchange->state;

    return connect_call_receive(&rpc->connect, data, len);
}

static enum MHD_Result holt_answer(struct exchange *exchange)
{
    struct rpc *rpc = exchange->state;

    return connect_call_answer(&rpc->connect);
}

/* A refused request is none of the method's calls. */
static void holt_close(struct exchange *exchange)
{
    struct rpc *rpc = exchange->state;

    rpc->connect.is_ended |= exchange->refusal != NULL;
    connect_call_done(&rpc->connect);
    free(rpc);
}

/* "/holt.v1.SandboxService/Create" without the prefix that all methods share. */
static bool holt_method_name(size_t index, char *ret, size_t size)
{
    static const char prefix[] = "/holt.v1.";
    const struct route *route = route_at(index);
    bool has_prefix = route && strncmp(route->path, prefix, strlen(prefix)) == 0;

    if (route)
        (void)snprintf(ret, size, "%s", route->path + (has_prefix ? strlen(prefix) : 0));
    return route != NULL;
}

const struct frontend_ops holt_frontend = {
    .name = "holt.v1",
    .owns = holt_owns,
    .has_sessions = true,
    .begin = holt_begin,
    .receive = holt_receive,
    .answer = holt_answer,
    .close = holt_close,
    .method_name = holt_method_name,
};
