// SPDX-License-Identifier: Apache-2.0
#include "e2b/port/access.h"

#include <string.h>
#include <strings.h>

#include "auth/token_store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/port/header.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"
#include "http/origin.h"

enum { LOCATION_MAX = 32 * 1024 };

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

static bool token_is_valid(const struct e2b_request *request, const char *text, const char *id)
{
    struct caller caller = { .role = ROLE_NONE };

    if (text)
        token_store_match_port(request->exchange->listener->tokens, text, id, &caller);
    if (!caller_may_change(&caller) || !sandbox_is_seen(request, id, &caller))
        return false;
    request->exchange->caller = caller; /* whose connection ends with the token */
    return true;
}

bool port_access_is_login(const struct e2b_request *request)
{
    char id[SANDBOX_ID_MAX] = "";

    return e2b_id_to(request->to.sandbox, id) && token_is_valid(request, login_token(request), id);
}

bool port_access_is_allowed(const struct e2b_request *request, const char *id)
{
    return token_is_valid(request, e2b_header(request, PORT_TOKEN_HEADER), id) ||
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

static bool is_token_parameter(const char *text)
{
    static const char name[] = PORT_TOKEN_QUERY "=";

    return strncmp(text, name, strlen(name)) == 0;
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

        if (len > 0 && !is_token_parameter(at)) {
            r = buf_printf(out, "%c%.*s", mark, (int)len, at);
            mark = '&';
        }
        at += len;
    }
    return r;
}

enum MHD_Result port_access_login(struct e2b_request *request)
{
    cleanup_with(buf_done) struct buf location = BUF_INIT(LOCATION_MAX);
    cleanup_free char *cookie = NULL;

    if (location_write(request->target, &location) < 0)
        return e2b_reply_error(request, MHD_HTTP_URI_TOO_LONG, "the URL is too long");
    cookie = xasprintf(PORT_TOKEN_COOKIE "=%s; Path=/; HttpOnly; SameSite=Lax%s",
                       login_token(request), request->exchange->listener->is_tls ? "; Secure" : "");
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
