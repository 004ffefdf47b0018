// SPDX-License-Identifier: Apache-2.0
#include "e2b/port/access.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "auth/session_store.h"
#include "auth/token_store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/port/header.h"
#include "host/observe/event.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"
#include "http/origin.h"

enum { LOCATION_MAX = 32 * 1024, COOKIES_MAX = 8 };

_Static_assert(sizeof(((struct e2b_request *)0)->preview) == SESSION_SECRET_SIZE, "a secret fits");

static bool reads_only(const struct e2b_request *request)
{
    return strcmp(request->verb, MHD_HTTP_METHOD_GET) == 0 ||
           strcmp(request->verb, MHD_HTTP_METHOD_HEAD) == 0;
}

/* --- tokens ----------------------------------------------------------------------------------- */

/* The token in a URL must be a port token: one with full access does not belong there. */
static const char *login_token(const struct e2b_request *request)
{
    const char *text = reads_only(request) ? e2b_query(request, PORT_TOKEN_QUERY) : NULL;

    return text && strlen(text) == TOKEN_PORT_SIZE - 1 ? text : NULL;
}

static bool sandbox_is_seen(const struct e2b_request *request, const char *id,
                            const struct caller *caller)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct err ignored;

    return sandbox_find(request->host, caller, id, &sandbox, &ignored) == 0;
}

/* Lets the request act for a caller who may use the sandbox. */
static bool caller_accept(const struct e2b_request *request, const char *id,
                          const struct caller *caller)
{
    if (!caller_may_change(caller) || !sandbox_is_seen(request, id, caller))
        return false;
    request->exchange->caller = *caller; /* whose connection ends with the token */
    return true;
}

static bool token_is_valid(const struct e2b_request *request, const char *text, const char *id)
{
    struct caller caller = { .role = ROLE_NONE };

    if (text)
        token_store_match_port(request->exchange->listener->tokens, text, id, &caller);
    return caller_accept(request, id, &caller);
}

/* --- previews --------------------------------------------------------------------------------- */

/* Whether the browser sees this host name over TLS. */
static bool is_secure(const struct e2b_request *request)
{
    const struct listener *listener = request->exchange->listener;
    const char *host = e2b_header(request, MHD_HTTP_HEADER_HOST);
    char sandbox[SANDBOX_ID_MAX];
    uint16_t port;
    const char *name = host ? e2b_host_parse(host, &port, sandbox) : NULL;

    return listener->is_tls || (origin_rules_has_tls_front(&listener->origin_rules) &&
                                origin_rules_is_preview(&listener->origin_rules, name));
}

static void target_fill(const struct e2b_request *request, const char *id,
                        struct preview_target *ret)
{
    *ret = (struct preview_target){ .port = request->to.port };
    (void)snprintf(ret->sandbox, sizeof(ret->sandbox), "%s", id);
}

struct preview_search {
    const struct e2b_request *request;
    const char *name;
    struct preview_target target;
    struct caller caller;
    unsigned count;
};

/* A page of another port may have planted a cookie of the same name, so each is tried. */
static enum MHD_Result preview_try(void *context, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct preview_search *search = context;

    (void)kind;
    if (!value || strcmp(name, search->name) != 0)
        return MHD_YES;
    if (search->count++ >= COOKIES_MAX)
        return MHD_NO;
    session_store_match_preview(search->request->exchange->listener->sessions, value,
                                &search->target, &search->caller);
    return search->caller.role == ROLE_NONE ? MHD_YES : MHD_NO;
}

static bool preview_is_valid(const struct e2b_request *request, const char *id)
{
    struct preview_search search = {
        .request = request,
        .name = is_secure(request) ? PREVIEW_COOKIE_TLS : PREVIEW_COOKIE,
        .caller.role = ROLE_NONE,
    };

    target_fill(request, id, &search.target);
    if (request->exchange->listener->sessions)
        (void)MHD_get_connection_values(request->connection, MHD_COOKIE_KIND, preview_try, &search);
    return caller_accept(request, id, &search.caller);
}

bool port_access_has_code(const struct e2b_request *request)
{
    return request->to.kind == E2B_PORT && reads_only(request) &&
           e2b_query(request, PREVIEW_QUERY) != NULL;
}

static bool code_exchange(struct e2b_request *request, const char *id)
{
    struct session_store *sessions = request->exchange->listener->sessions;
    struct session_spec spec = { .address = "",
                                 .agent = e2b_header(request, MHD_HTTP_HEADER_USER_AGENT) };
    struct session_secrets secrets;
    struct preview_target target;
    struct session_info info;
    struct err ignored;

    target_fill(request, id, &target);
    if (!sessions || strcmp(request->verb, MHD_HTTP_METHOD_GET) != 0 ||
        !session_store_take_code(sessions, e2b_query(request, PREVIEW_QUERY), &target,
                                 &spec.login) ||
        !caller_accept(request, id, &spec.login.caller) ||
        session_store_create(sessions, &spec, &info, &secrets, &ignored) < 0)
        return false;
    (void)snprintf(request->preview, sizeof(request->preview), "%s", secrets.cookie);
    owner_event(request->host, spec.login.caller.owner, EVENT_CONSOLE_LOGIN,
                json_pack("{s:s, s:s, s:s, s:i}", "session", info.id, "role",
                          role_name(spec.login.caller.role), "preview", id, "port",
                          (int)request->to.port));
    return true;
}

bool port_access_take_code(struct e2b_request *request, const char *id)
{
    return code_exchange(request, id) || preview_is_valid(request, id);
}

/* --- logins ----------------------------------------------------------------------------------- */

bool port_access_is_login(const struct e2b_request *request)
{
    char id[SANDBOX_ID_MAX] = "";

    return port_access_has_code(request) || (e2b_id_to(request->to.sandbox, id) &&
                                             token_is_valid(request, login_token(request), id));
}

bool port_access_is_allowed(const struct e2b_request *request, const char *id)
{
    return token_is_valid(request, e2b_header(request, PORT_TOKEN_HEADER), id) ||
           preview_is_valid(request, id) ||
           token_is_valid(
               request,
               MHD_lookup_connection_value(request->connection, MHD_COOKIE_KIND, PORT_TOKEN_COOKIE),
               id) ||
           token_is_valid(request, login_token(request), id);
}

bool port_access_is_foreign(const struct e2b_request *request, const char *id)
{
    struct caller caller = { .role = ROLE_NONE };
    const char *shown = e2b_header(request, PORT_TOKEN_HEADER);

    if (!shown)
        shown =
            MHD_lookup_connection_value(request->connection, MHD_COOKIE_KIND, PORT_TOKEN_COOKIE);
    if (shown)
        token_store_match_port(request->exchange->listener->tokens, shown, id, &caller);
    return caller.role != ROLE_NONE && !sandbox_is_seen(request, id, &caller);
}

/* A token that has expired or was removed is a secret as well: its form is enough. */
static bool is_token(const struct e2b_request *request, const char *text)
{
    struct caller caller;

    if (strncmp(text, "holt_", 5) == 0)
        return true;
    token_store_match_key(request->exchange->listener->tokens, text, &caller);
    return caller.role != ROLE_NONE;
}

bool port_access_is_credential(const struct e2b_request *request, const char *name,
                               const char *value)
{
    const char *envd = e2b_metadata_text(request->metadata, "accessToken");

    if (strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION) == 0) {
        value += strcspn(value, " ");
        value += strspn(value, " ");
    } else if (strcasecmp(name, "X-API-Key") != 0 && strcasecmp(name, "X-Access-Token") != 0) {
        return false;
    }
    return is_token(request, value) || (envd && *envd && strcmp(value, envd) == 0);
}

/* Whether a parameter has a secret of Holt. */
static bool is_own_parameter(const char *text, size_t len)
{
    static const char *const names[] = { PORT_TOKEN_QUERY, PREVIEW_QUERY };
    size_t name = strcspn(text, "=");

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if ((name < len ? name : len) == strlen(names[i]) &&
            strncmp(text, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Writes the target without the token. A target of two slashes would be another host. */
static int location_write(const char *target, struct buf *out)
{
    /* Browsers read a backslash as a slash, and "//name" as another host. */
    size_t path = strcspn(target, "?"), slashes = strspn(target, "/\\");
    const char *at = target + path;
    char mark = '?';
    int r = buf_printf(out, "/%.*s", (int)(path - slashes), target + slashes);

    while (r == 0 && *at != '\0') {
        size_t len = strcspn(++at, "&");

        if (len > 0 && !is_own_parameter(at, len)) {
            r = buf_printf(out, "%c%.*s", mark, (int)len, at);
            mark = '&';
        }
        at += len;
    }
    return r;
}

/* Returns NULL if the browser has its cookie. It must be sent when the link is opened from a page
 * of another site, as the console is, so it is not SameSite=Strict. */
static char *cookie_make(const struct e2b_request *request)
{
    bool has_tls = is_secure(request);

    if (request->preview[0] != '\0')
        return xasprintf("%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%s",
                         has_tls ? PREVIEW_COOKIE_TLS : PREVIEW_COOKIE, request->preview,
                         PREVIEW_MS / 1000, has_tls ? "; Secure" : "");
    if (port_access_has_code(request))
        return NULL;
    return xasprintf(PORT_TOKEN_COOKIE "=%s; Path=/; HttpOnly; SameSite=Lax%s",
                     login_token(request), has_tls ? "; Secure" : "");
}

enum MHD_Result port_access_login(struct e2b_request *request)
{
    cleanup_with(buf_done) struct buf location = BUF_INIT(LOCATION_MAX);
    cleanup_free char *cookie = NULL;

    if (location_write(request->target, &location) < 0)
        return e2b_reply_error(request, MHD_HTTP_URI_TOO_LONG, "the URL is too long");
    cookie = cookie_make(request);
    if (cookie)
        e2b_header_add(request, MHD_HTTP_HEADER_SET_COOKIE, cookie);
    e2b_header_add(request, MHD_HTTP_HEADER_LOCATION, location.data);
    e2b_header_add(request, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    e2b_header_add(request, "Referrer-Policy", "no-referrer");
    return e2b_reply_empty(request, MHD_HTTP_SEE_OTHER);
}

/* --- origins ---------------------------------------------------------------------------------- */

/* Whether an origin is this preview, or another port of the same sandbox under the same name. */
static bool origin_is_own(const struct e2b_request *request, const char *origin)
{
    const char *host = e2b_header(request, MHD_HTTP_HEADER_HOST);
    const char *scheme = strstr(origin, "://");
    char theirs[SANDBOX_ID_MAX], ours[SANDBOX_ID_MAX];
    const char *their_name, *our_name;
    uint16_t port;

    if (!scheme || !host)
        return false;
    origin = scheme + strlen("://");
    if (strcasecmp(origin, host) == 0)
        return true;
    their_name = e2b_host_parse(origin, &port, theirs);
    our_name = e2b_host_parse(host, &port, ours);
    return their_name && strcmp(theirs, request->to.sandbox) == 0 &&
           strcasecmp(their_name, our_name ? our_name : host) == 0;
}

bool port_origin_is_allowed(const struct e2b_request *request)
{
    const struct origin_rules *rules = &request->exchange->listener->origin_rules;
    const char *origin = e2b_header(request, MHD_HTTP_HEADER_ORIGIN);
    bool changes = !reads_only(request) && strcmp(request->verb, MHD_HTTP_METHOD_OPTIONS) != 0;
    bool upgrades = e2b_header(request, MHD_HTTP_HEADER_UPGRADE) != NULL;

    return (!changes && !upgrades) || origin_rules_allow_origin(rules, origin) ||
           origin_is_own(request, origin);
}
