// SPDX-License-Identifier: Apache-2.0
#include "http/session.h"

#include <string.h>

#include "auth/session_store.h"
#include "auth/token_store.h"
#include "http/exchange.h"
#include "http/frontend.h"

enum { COOKIES_MAX = 64 }; /* of the same name, which a page of another port can add */

/* A search through the cookies of a request. */
struct cookie_search {
    const struct exchange *exchange;
    const char *key; /* NULL: the cookie alone */
    unsigned count;
    struct caller *ret;
};

/* Over TLS only the cookie with the prefix counts: other ports cannot set it. */
static bool is_session_cookie(const struct exchange *exchange, const char *name)
{
    return strcmp(name, SESSION_COOKIE_TLS) == 0 ||
           (!exchange->listener->is_tls && strcmp(name, SESSION_COOKIE) == 0);
}

static enum MHD_Result cookie_try(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct cookie_search *search = context;
    struct session_store *sessions = search->exchange->listener->sessions;

    (void)kind;
    if (!value || !is_session_cookie(search->exchange, name))
        return MHD_YES;
    if (search->count++ >= COOKIES_MAX)
        return MHD_NO;
    if (search->key)
        session_store_match(sessions, value, search->key, search->ret);
    else
        session_store_match_cookie(sessions, value, search->ret);
    return search->ret->role == ROLE_NONE ? MHD_YES : MHD_NO;
}

static void cookies_search(const struct exchange *exchange, const char *key, struct caller *ret)
{
    struct cookie_search search = { .exchange = exchange, .key = key, .ret = ret };

    *ret = (struct caller){ .role = ROLE_NONE };
    if (exchange->listener->sessions)
        (void)MHD_get_connection_values(exchange->connection, MHD_COOKIE_KIND, cookie_try, &search);
}

static bool has_cookie(const struct exchange *exchange)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_COOKIE_KIND, SESSION_COOKIE) ||
           MHD_lookup_connection_value(exchange->connection, MHD_COOKIE_KIND, SESSION_COOKIE_TLS);
}

bool session_is_used(const struct exchange *exchange)
{
    return exchange->listener->sessions && session_store_has_logins(exchange->listener->sessions) &&
           exchange->frontend && exchange->frontend->ops->has_sessions &&
           !exchange_header(exchange, MHD_HTTP_HEADER_AUTHORIZATION) &&
           (exchange_header(exchange, SESSION_HEADER) || has_cookie(exchange));
}

void session_find(const struct exchange *exchange, struct caller *ret)
{
    const char *key = exchange_header(exchange, SESSION_HEADER);

    *ret = (struct caller){ .role = ROLE_NONE };
    if (key)
        cookies_search(exchange, key, ret);
}

void session_find_by_key(const struct exchange *exchange, const char *key, struct caller *ret)
{
    cookies_search(exchange, key, ret);
}

void session_find_by_cookie(const struct exchange *exchange, struct caller *ret)
{
    cookies_search(exchange, NULL, ret);
}

const char *credential_of(const struct caller *caller)
{
    return caller->session[0] ? caller->session : caller->token;
}

bool credential_is_valid(const struct listener *listener, const char *id)
{
    if (id[0] == 's')
        return listener->sessions && session_store_is_valid(listener->sessions, id);
    return token_store_is_valid(listener->tokens, id);
}
