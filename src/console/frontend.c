// SPDX-License-Identifier: Apache-2.0
#include "console/frontend.h"

#include <stdlib.h>
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
#include "host/owner/session_registry.h"
#include "http/connect.h"
#include "http/exchange.h"
#include "http/reply.h"
#include "http/session.h"

enum { SWEEP_MS = 5000 };

/* A request below /console/. */
struct console_route {
    const char *verb, *path;
    bool needs_session;
    enum MHD_Result (*answer)(struct console *console, struct exchange *exchange);
};

static const struct console_route routes[] = {
    { MHD_HTTP_METHOD_POST, "/console/login", false, console_login },
    { MHD_HTTP_METHOD_POST, "/console/login/look", false, console_look },
    { MHD_HTTP_METHOD_POST, "/console/logout", true, console_logout },
    { MHD_HTTP_METHOD_GET, "/console/session", true, console_session },
    { MHD_HTTP_METHOD_POST, "/console/ticket", true, console_ticket },
    { MHD_HTTP_METHOD_GET, CONSOLE_DOWNLOAD, false, console_download },
};

static const struct refusal refuse_page = { 404, ERR_NOT_FOUND, "no such page", NULL, NULL, false };
static const struct refusal refuse_other_site = {
    403, ERR_DENIED, "this request was made by a page of another site", NULL, NULL, true,
};

/* What is known of a request once its header is complete. */
struct console_request {
    const struct refusal *refusal;     /* NULL: none */
    const struct console_route *route; /* NULL: a file */
};

static bool is_read(const struct exchange *exchange)
{
    return strcmp(exchange->verb, MHD_HTTP_METHOD_GET) == 0 ||
           strcmp(exchange->verb, MHD_HTTP_METHOD_HEAD) == 0;
}

static bool is_below_console(const char *path)
{
    static const char prefix[] = "/console";
    size_t len = strlen(prefix);

    return strncmp(path, prefix, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static bool console_claim(struct exchange *exchange)
{
    const struct console *console = exchange->frontend->context;

    return is_below_console(exchange->path) ||
           (is_read(exchange) && console_has_file(console, exchange));
}

/* A path that ends with a slash stands for all below it. */
static bool path_fits(const char *route, const char *path)
{
    size_t len = strlen(route);

    return route[len - 1] == '/' ? strncmp(path, route, len) == 0 : strcmp(path, route) == 0;
}

static const struct console_route *route_find(const struct exchange *exchange)
{
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
        if (path_fits(routes[i].path, exchange->path) &&
            strcmp(routes[i].verb, exchange->verb) == 0)
            return &routes[i];
    return NULL;
}

/* Browsers say where a request comes from. Pages of another port of this machine are of the same
 * site, but not of the same origin. */
static bool is_other_site(const struct exchange *exchange)
{
    const char *site = exchange_header(exchange, "Sec-Fetch-Site");

    return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

static const struct refusal *route_check(struct exchange *exchange,
                                         const struct console_route *route)
{
    if (is_other_site(exchange))
        return &refuse_other_site;
    if (strcmp(route->verb, MHD_HTTP_METHOD_POST) == 0 &&
        !connect_type_is(exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE),
                         CONNECT_UNARY_TYPE))
        return &refuse_unary_type;
    if (!route->needs_session)
        return NULL;
    session_find(exchange, &exchange->caller);
    return exchange->caller.role == ROLE_NONE ? &refuse_session : NULL;
}

static enum MHD_Result console_begin(struct exchange *exchange)
{
    const struct console *console = exchange->frontend->context;
    struct console_request *request = xcalloc(1, sizeof(*request));

    exchange->state = request;
    exchange->body.max = CONSOLE_BODY_MAX;
    request->refusal =
        exchange_check_origin(exchange, exchange_header(exchange, MHD_HTTP_HEADER_HOST), false);
    if (!request->refusal && !session_store_has_logins(console->sessions))
        request->refusal = &refuse_page;
    if (!request->refusal && is_below_console(exchange->path)) {
        request->route = route_find(exchange);
        request->refusal = request->route ? route_check(exchange, request->route) : &refuse_page;
    }
    exchange->is_unauthenticated = exchange->caller.role == ROLE_NONE && request->refusal;
    return MHD_YES;
}

static enum MHD_Result console_answer(struct exchange *exchange)
{
    struct console *console = exchange->frontend->context;
    const struct console_request *request = exchange->state;

    if (request->refusal)
        return console_refuse(exchange, request->refusal);
    if (exchange->is_failed)
        return console_fail(exchange, &exchange->err);
    if (request->route)
        return request->route->answer(console, exchange);
    return console_send_file(console, exchange);
}

static void console_end(struct exchange *exchange)
{
    free(exchange->state);
}

const struct frontend_ops console_frontend = {
    .name = "console",
    .claim = console_claim,
    .has_sessions = true,
    .begin = console_begin,
    .answer = console_answer,
    .close = console_end,
};

/* --- opening and closing ---------------------------------------------------------------------- */

static int storage_put(void *context, const struct session_row *row, struct err *err)
{
    return host_put_session(context, row, err);
}

static int storage_remove(void *context, const char *id, struct err *err)
{
    return host_remove_session(context, id, err);
}

static void end_record(struct host *host, const char *owner, const char *id, const char *reason)
{
    owner_event(host, owner, EVENT_CONSOLE_ENDED,
                json_pack("{s:s, s:s}", "session", id, "reason", reason));
}

static void session_ended(void *context, const struct session_info *info, const char *reason)
{
    end_record(context, info->login.caller.owner, info->id, reason);
}

/* Removes the row of a session that no store has. */
static int row_end(struct host *host, const struct session_row *row, const char *reason,
                   struct err *err)
{
    int r = host_remove_session(host, row->id, err);

    if (r >= 0)
        end_record(host, row->owner, row->id, reason);
    return r;
}

/* Returns why a row is not loaded. Without the console its logins are worth nothing, also when it
 * is back; previews stay. */
static const char *row_reason(const struct console *console, const struct session_row *row)
{
    if (row->sandbox[0] == '\0' && !session_store_has_logins(console->sessions))
        return "console-off";
    return clock_wall_ms() >= row->expires_ms ? "expired" : "token";
}

static int sessions_load(struct console *console, struct err *err)
{
    cleanup_free struct session_row *rows = NULL;
    size_t count = 0;
    int r = host_list_sessions(console->host, &rows, &count, err);

    for (size_t i = 0; r >= 0 && i < count; i++)
        if (!session_store_load(console->sessions, &rows[i]))
            r = row_end(console->host, &rows[i], row_reason(console, &rows[i]), err);
    return r;
}

static void sweeper_main(void *argument)
{
    struct console *console = argument;

    while (worker_rest(&console->sweeper, SWEEP_MS, 0)) {
        struct err err = { 0 };

        if (session_store_sweep(console->sessions, &err) < 0)
            log_warn("console: %s", err.msg);
    }
}

static int sweeper_start(struct console *console, struct err *err)
{
    int r = thread_start(&console->sweeper.thread, "holt-sessions", sweeper_main, console);

    return r < 0 ? err_sys(err, r, "start the thread that ends sessions") : 0;
}

int console_open(const struct console_options *options, struct console **ret, struct err *err)
{
    const struct session_storage storage = { storage_put, storage_remove, session_ended,
                                             options->host };
    const struct session_rules rules = {
        .ttl_ms = options->session_ttl,
        .code_ms = LOGIN_CODE_MS,
        .preview_ms = PREVIEW_MS,
        .has_logins = options->is_on,
    };
    struct console *console = xcalloc(1, sizeof(*console));
    int r;

    console->host = options->host;
    console->dir = xstrdup(options->dir);
    lock_init(&console->lock, LOCK_CONSOLE);
    worker_init(&console->sweeper, LOCK_CONSOLE_SWEEPER);
    console->sessions = session_store_new(options->tokens, &storage, &rules);
    r = sessions_load(console, err);
    if (r >= 0)
        r = sweeper_start(console, err);
    if (r < 0) {
        console_close(console);
        return r;
    }
    *ret = console;
    return 0;
}

void console_close(struct console *console)
{
    if (!console)
        return;
    worker_stop(&console->sweeper);
    worker_destroy(&console->sweeper);
    session_store_free(console->sessions);
    console_tickets_done(console);
    lock_destroy(&console->lock);
    free(console->dir);
    free(console);
}

struct session_store *console_sessions(struct console *console)
{
    return console->sessions;
}
