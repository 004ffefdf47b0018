// SPDX-License-Identifier: Apache-2.0
#include "http/exchange.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/peer.h"
#include "auth/token_store.h"
#include "base/clock.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "http/exchange_internal.h"
#include "http/framing.h"
#include "http/frontend.h"
#include "http/inner.h"
#include "http/limits.h"
#include "http/reply.h"
#include "http/session.h"
#include "wire/envelope.h"

enum {
    TIMEOUT_DIGITS_MAX = 10,
    DISCARD_MAX = 64 * 1024 * 1024,            /* bytes read of a refused body before we hang up */
    UNAUTHENTICATED_DISCARD_MAX = 1024 * 1024, /* the same for an unauthenticated client */
};

bool listener_name(const struct listener *listener, char *ret, size_t size)
{
    const char *port = strrchr(listener->tcp_address, ':');
    char name[LISTENER_ADDRESS_SIZE / 4];

    if (!port)
        return false;
    origin_rules_name(&listener->origin_rules, name, sizeof(name));
    return snprintf(ret, size, "%s%s", name, port) < (int)size;
}

bool listener_preview(const struct listener *listener, char *ret, size_t size, bool *ret_is_tls)
{
    const struct origin_rules *rules = &listener->origin_rules;
    const char *port = strrchr(listener->tcp_address, ':');
    const char *name = *rules->preview ? rules->preview : "localhost";

    if (!port)
        return false;
    *ret_is_tls = listener->is_tcp_tls || origin_rules_has_tls_front(rules);
    if (origin_rules_has_tls_front(rules)) {
        name += strlen("https://");
        port = "";
    } else if (strchr(name, ':')) {
        port = "";
    }
    return snprintf(ret, size, "%s%s", name, port) < (int)size;
}

const char *exchange_header(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

bool exchange_is_late(const struct exchange *exchange, struct err *err)
{
    if (clock_ns() < exchange->deadline_ns)
        return false;
    (void)err_set(err, ERR_DEADLINE, "the call exceeded its deadline");
    return true;
}

bool exchange_is_stopped(const struct exchange *exchange, struct err *err)
{
    if (exchange->listener->check_open(exchange->listener->context, err) < 0)
        return true;
    if (credential_is_valid(exchange->listener, credential_of(&exchange->caller)))
        return false;
    (void)err_set(err, ERR_UNAUTHENTICATED, "the %s was removed or has expired",
                  exchange->caller.session[0] ? "session" : "token");
    return true;
}

void exchange_explain_cancel(const struct exchange *exchange, struct err *err)
{
    if (!exchange_is_stopped(exchange, err))
        (void)exchange_is_late(exchange, err);
}

int exchange_read_timeout(struct exchange *exchange, struct err *err)
{
    const char *text = exchange_header(exchange, "Connect-Timeout-Ms");
    uint64_t ms = 0;

    if (!text)
        return 0;
    if (strlen(text) > TIMEOUT_DIGITS_MAX || parse_u64(text, &ms) < 0)
        return err_set(err, ERR_INVALID, "Connect-Timeout-Ms must be a number of at most %d digits",
                       TIMEOUT_DIGITS_MAX);
    exchange->deadline_ns = exchange->started_ns + ms * 1000000;
    return 0;
}

const struct refusal *exchange_check_origin(const struct exchange *exchange, const char *host,
                                            bool allows_any_origin)
{
    const struct origin_rules *rules = &exchange->listener->origin_rules;
    const char *origin = exchange_header(exchange, MHD_HTTP_HEADER_ORIGIN);

    if (!origin_rules_allow_host(rules, host))
        return &refuse_host;
    if (allows_any_origin || origin_rules_allow_origin(rules, origin))
        return NULL;
    /* The only pages that the daemon serves itself are those of the console. */
    if (exchange->frontend && exchange->frontend->ops->has_sessions &&
        origin_is_same(origin, host, exchange->listener->is_tls))
        return NULL;
    return &refuse_origin;
}

const struct refusal *exchange_find_caller(struct exchange *exchange)
{
    const struct listener *listener = exchange->listener;
    const struct caller *inner = inner_caller(exchange->connection);
    const char *header = exchange_header(exchange, MHD_HTTP_HEADER_AUTHORIZATION);

    if (inner)
        exchange->caller = *inner;
    else if (listener->is_local)
        peer_find(listener->peers, exchange->connection_fd, &exchange->caller);
    else if (session_is_used(exchange))
        session_find(exchange, &exchange->caller);
    else
        token_store_match(listener->tokens, header, &exchange->caller);
    if (exchange->caller.role != ROLE_NONE)
        return NULL;
    if (session_is_used(exchange))
        return &refuse_session;
    return header ? &refuse_wrong_token : &refuse_token;
}

/* The same refusal for every path, so that it tells an unauthenticated client nothing. */
static const struct refusal *access_check(struct exchange *exchange, bool is_public)
{
    const struct refusal *refusal =
        exchange_check_origin(exchange, exchange_header(exchange, MHD_HTTP_HEADER_HOST), false);

    if (refusal)
        return refusal;
    if (!is_public || exchange->listener->is_local)
        return exchange_find_caller(exchange);
    exchange->caller = caller_root;
    return NULL;
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

static bool frontend_owns(const struct frontend *frontend, const struct exchange *exchange)
{
    return frontend->ops->owns && frontend->ops->owns(exchange->path, exchange->verb);
}

bool exchange_is_owned_by_other(const struct exchange *exchange, const struct frontend *frontend)
{
    const struct listener *listener = exchange->listener;

    for (size_t i = 0; i < listener->frontend_count; i++)
        if (&listener->frontends[i] != frontend && frontend_owns(&listener->frontends[i], exchange))
            return true;
    return false;
}

/* claim() gets to see exchange->frontend, so that it finds its context. */
static void frontend_find(struct exchange *exchange)
{
    const struct listener *listener = exchange->listener;

    for (size_t i = 0; i < listener->frontend_count; i++) {
        exchange->frontend = &listener->frontends[i];
        if (exchange->frontend->ops->claim ? exchange->frontend->ops->claim(exchange)
                                           : frontend_owns(exchange->frontend, exchange))
            return;
    }
    exchange->frontend = NULL;
}

/* A front end with claim() finds the caller in begin(). */
static enum MHD_Result frontend_begin(struct exchange *exchange)
{
    const struct frontend_ops *ops = exchange->frontend->ops;
    enum MHD_Result result = ops->begin ? ops->begin(exchange) : MHD_YES;

    client_connection_set_token(exchange->client, credential_of(&exchange->caller));
    return result;
}

/* What follows a header that is refused here is no body that could be read, so the client gets the
 * reason at once, and the connection ends. */
static enum MHD_Result framing_refuse(struct exchange *exchange, const struct refusal *refusal)
{
    exchange->refusal = refusal;
    return reply_refuse(exchange->connection, refusal);
}

enum MHD_Result exchange_begin(struct exchange *exchange, struct MHD_Connection *connection,
                               const char *path, const struct request_line *line)
{
    const struct refusal *refusal = framing_check(connection, line);
    bool is_public = false;

    exchange->is_begun = true;
    exchange->connection = connection;
    exchange->connection_fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    exchange->client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    exchange->path = path;
    exchange->verb = line->verb;
    exchange->body.max = EXCHANGE_BODY_MAX;
    exchange->deadline_ns = CONNECTION_FOREVER;
    exchange->started_ns = clock_ns();
    client_connection_allow(exchange->client, CONNECTION_BODY_MS);
    if (refusal)
        return framing_refuse(exchange, refusal);
    frontend_find(exchange);
    if (exchange->frontend) {
        const struct frontend_ops *ops = exchange->frontend->ops;

        if (ops->claim)
            return frontend_begin(exchange);
        is_public = ops->is_public && ops->is_public(exchange);
    }
    exchange->refusal = access_check(exchange, is_public);
    exchange->is_unauthenticated = exchange->refusal != NULL;
    if (!exchange->refusal && !exchange->frontend)
        exchange->refusal = &refuse_path;
    return exchange->refusal ? MHD_YES : frontend_begin(exchange);
}

/* A refused body is read to its end: a client that is still writing would otherwise see a broken
 * pipe instead of the reason. */
enum MHD_Result exchange_discard(struct exchange *exchange, size_t len)
{
    size_t most = exchange->is_unauthenticated ? UNAUTHENTICATED_DISCARD_MAX : DISCARD_MAX;

    exchange->discarded += len;
    return exchange->discarded <= most ? MHD_YES : MHD_NO;
}

void exchange_fail_too_large(struct exchange *exchange)
{
    exchange->is_failed = true;
    (void)err_set(&exchange->err, ERR_EXHAUSTED, "the request is larger than %zu bytes",
                  exchange->body.max);
    buf_done(&exchange->body);
}

enum MHD_Result exchange_receive(struct exchange *exchange, const char *data, size_t len)
{
    if (!exchange->refusal && exchange->frontend->ops->receive)
        return exchange->frontend->ops->receive(exchange, data, len);
    client_connection_extend(exchange->client, len);
    if (exchange->refusal || exchange->is_failed)
        return exchange_discard(exchange, len);
    if (buf_add(&exchange->body, data, len) < 0)
        exchange_fail_too_large(exchange);
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

enum MHD_Result exchange_answer(struct exchange *exchange)
{
    if (exchange->refusal)
        return reply_refuse(exchange->connection, exchange->refusal);
    caller_set_current(&exchange->caller);
    return exchange->frontend->ops->answer(exchange);
}

void exchange_free(struct exchange *exchange)
{
    const struct frontend_ops *ops;

    if (!exchange)
        return;
    ops = exchange->frontend ? exchange->frontend->ops : NULL;
    if (exchange->client) {
        client_connection_set_deadline(exchange->client, CONNECTION_FOREVER, false);
        client_connection_allow(exchange->client, ops && ops->is_kept && ops->is_kept(exchange)
                                                      ? CONNECTION_KEPT_MS
                                                      : CONNECTION_IDLE_MS);
    }
    if (exchange->state && ops && ops->close)
        ops->close(exchange);
    caller_set_current(NULL); /* each connection has a thread */
    buf_done(&exchange->body);
    free(exchange->target);
    free(exchange);
}
