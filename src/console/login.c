// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "auth/session_store.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "console/console_internal.h"
#include "host/observe/event.h"
#include "http/exchange.h"
#include "http/session.h"

/* Writes the address of the client; "unix" for the unix socket. */
static void address_write(const struct exchange *exchange, char ret[THROTTLE_ADDRESS_SIZE])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    const void *bytes = NULL;

    if (address && address->sa_family == AF_INET)
        bytes = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    else if (address && address->sa_family == AF_INET6)
        bytes = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (!bytes || !inet_ntop(address->sa_family, bytes, ret, THROTTLE_ADDRESS_SIZE))
        (void)snprintf(ret, THROTTLE_ADDRESS_SIZE, "unix");
}

static int throttle_refuse(struct console *console, const char *address, struct err *err)
{
    uint64_t wait_ms;

    lock_scope(&console->lock);
    wait_ms = throttle_check(&console->throttle, address, clock_ms());
    if (wait_ms == 0)
        return 0;
    return err_set(err, ERR_EXHAUSTED, "too many failed logins from %s: try again in %" PRIu64 " s",
                   address, wait_ms / 1000 + 1);
}

/* Reads {"code": ...} or {"token": ...}. */
static int login_read(const struct exchange *exchange, json_t **ret, const char **ret_code,
                      const char **ret_token, struct err *err)
{
    static const char *const fields[] = { "code", "token", NULL };
    const struct buf *body = &exchange->body;
    int r = json_parse_object(body->data ? body->data : "", body->len, ret, err);

    if (r == 0)
        r = json_only_fields(*ret, fields, err);
    if (r == 0)
        r = json_get_text(*ret, "code", ret_code, err);
    if (r == 0)
        r = json_get_text(*ret, "token", ret_token, err);
    if (r == 0 && !*ret_code == !*ret_token)
        r = err_set(err, ERR_INVALID, "a login takes a code or a token");
    return r;
}

/* Finds on whose behalf a code or a token logs in. A code that is only looked at stays valid. */
static int login_find(struct console *console, const struct exchange *exchange, const char *address,
                      bool is_look, struct login *ret, struct err *err)
{
    cleanup_json json_t *request = NULL;
    const char *code = NULL, *token = NULL;
    int r = login_read(exchange, &request, &code, &token, err);
    bool is_found;

    if (r < 0)
        return r;
    if (!code)
        is_found = session_store_match_token(console->sessions, token, ret);
    else if (is_look)
        is_found = session_store_peek_code(console->sessions, code, ret);
    else
        is_found = session_store_take_code(console->sessions, code, NULL, ret);
    if (is_found)
        return 0;
    log_warn("console: failed login from %s", address);
    lock_scope(&console->lock);
    throttle_add(&console->throttle, address, clock_ms());
    return err_set(err, ERR_UNAUTHENTICATED,
                   code ? "the login code is not valid: it can be used once, within a minute"
                        : "the token is not valid");
}

static const char *role_word(enum role role)
{
    return role == ROLE_READ ? "reader" : role_name(role);
}

static int session_write(const struct session_info *info, const char *key, struct buf *out)
{
    cleanup_json json_t *reply =
        json_pack("{s:s, s:s, s:s, s:o}", "id", info->id, "owner", info->login.caller.owner, "role",
                  role_word(info->login.caller.role), "expires", json_time(info->expires_ms));

    if (key)
        (void)json_object_set_new(reply, "key", json_string(key));
    return json_write(reply, out);
}

/* Whether the browser speaks TLS, with holtd or with a proxy whose origin is configured. */
static bool is_secure(const struct exchange *exchange)
{
    const char *origin = exchange_header(exchange, MHD_HTTP_HEADER_ORIGIN);

    return exchange->listener->is_tls || (origin && strncmp(origin, "https://", 8) == 0);
}

/* max_age_s is 0 to remove the cookie. */
static char *cookie_make(const struct exchange *exchange, const char *value,
                         unsigned long long max_age_s)
{
    bool has_tls = is_secure(exchange);

    return xasprintf("%s=%s; HttpOnly; SameSite=Strict; Path=/; Max-Age=%llu%s",
                     has_tls ? SESSION_COOKIE_TLS : SESSION_COOKIE, value, max_age_s,
                     has_tls ? "; Secure" : "");
}

static void login_record(struct console *console, const struct session_info *info)
{
    owner_event(console->host, info->login.caller.owner, EVENT_CONSOLE_LOGIN,
                json_pack("{s:s, s:s, s:s}", "session", info->id, "role",
                          role_name(info->login.caller.role), "address", info->address));
}

static int session_begin(struct console *console, struct exchange *exchange,
                         const struct session_spec *spec, char **ret_cookie, struct buf *out,
                         struct err *err)
{
    struct session_secrets secrets;
    struct session_info info;
    int r = session_store_create(console->sessions, spec, &info, &secrets, err);

    if (r < 0)
        return r;
    exchange->caller = spec->login.caller;
    login_record(console, &info);
    *ret_cookie = cookie_make(exchange, secrets.cookie, (info.expires_ms - info.created_ms) / 1000);
    r = session_write(&info, secrets.key, out);
    return r < 0 ? err_sys(err, r, "write the reply") : 0;
}

enum MHD_Result console_login(struct console *console, struct exchange *exchange)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(CONSOLE_REPLY_MAX);
    cleanup_free char *cookie = NULL;
    char address[THROTTLE_ADDRESS_SIZE];
    struct session_spec spec = { .address = address };
    struct err err = { 0 };
    int r;

    address_write(exchange, address);
    spec.agent = exchange_header(exchange, MHD_HTTP_HEADER_USER_AGENT);
    r = throttle_refuse(console, address, &err);
    if (r == 0)
        r = login_find(console, exchange, address, false, &spec.login, &err);
    if (r == 0)
        r = session_begin(console, exchange, &spec, &cookie, &out, &err);
    if (r < 0)
        return console_fail(exchange, &err);
    return console_reply(exchange, &out, MHD_HTTP_HEADER_SET_COOKIE, cookie);
}

enum MHD_Result console_look(struct console *console, struct exchange *exchange)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(CONSOLE_REPLY_MAX);
    cleanup_json json_t *reply = NULL;
    char address[THROTTLE_ADDRESS_SIZE];
    struct login login = { .caller.role = ROLE_NONE };
    struct err err = { 0 };
    int r;

    address_write(exchange, address);
    r = throttle_refuse(console, address, &err);
    if (r == 0)
        r = login_find(console, exchange, address, true, &login, &err);
    if (r < 0)
        return console_fail(exchange, &err);
    reply =
        json_pack("{s:s, s:s}", "owner", login.caller.owner, "role", role_word(login.caller.role));
    if (json_write(reply, &out) < 0)
        return MHD_NO;
    return console_reply(exchange, &out, NULL, NULL);
}

enum MHD_Result console_logout(struct console *console, struct exchange *exchange)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(CONSOLE_REPLY_MAX);
    cleanup_free char *cookie = cookie_make(exchange, "", 0);
    struct err err = { 0 };

    if (session_store_remove(console->sessions, &exchange->caller, exchange->caller.session,
                             "logout", &err) < 0)
        return console_fail(exchange, &err);
    if (buf_add_str(&out, "{}") < 0)
        return MHD_NO;
    return console_reply(exchange, &out, MHD_HTTP_HEADER_SET_COOKIE, cookie);
}

enum MHD_Result console_session(struct console *console, struct exchange *exchange)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(CONSOLE_REPLY_MAX);
    struct session_info info;
    struct err err = { 0 };

    if (!session_store_get(console->sessions, exchange->caller.session, &info)) {
        (void)err_set(&err, ERR_UNAUTHENTICATED, "the session has ended");
        return console_fail(exchange, &err);
    }
    if (session_write(&info, NULL, &out) < 0)
        return MHD_NO;
    return console_reply(exchange, &out, NULL, NULL);
}
