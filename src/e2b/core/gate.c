// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/gate.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "auth/peer.h"
#include "auth/token_store.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/core/signature.h"
#include "e2b/core/wake.h"
#include "e2b/port/access.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"

static bool is_local(const struct e2b_request *request)
{
    return request->exchange->listener->is_local;
}

/* The lookup has shown that the sandbox is one of the peer's. */
static bool is_allowed_peer(const struct e2b_request *request)
{
    return is_local(request) && caller_may_change(&request->exchange->caller);
}

static void peer_set(struct e2b_request *request)
{
    peer_find(request->exchange->listener->peers, request->connection_fd,
              &request->exchange->caller);
}

/* Compares in constant time. */
static bool token_matches(const char *shown, const char *wanted)
{
    size_t len = strlen(wanted);

    return shown && strlen(shown) == len && CRYPTO_memcmp(shown, wanted, len) == 0;
}

static unsigned control_refuse(struct err *err)
{
    (void)err_set(
        err, ERR_UNAUTHENTICATED,
        "a valid API key is required: a token of this host, as 'holt token create' prints "
        "it, in the header X-API-KEY");
    return MHD_HTTP_UNAUTHORIZED;
}

/* A read-only token may only use GET and HEAD. */
static unsigned control_check(struct e2b_request *request, struct err *err)
{
    struct exchange *exchange = request->exchange;
    const char *key = e2b_header(request, "X-API-KEY");

    if (is_local(request))
        peer_set(request);
    else if (key)
        token_store_match_key(exchange->listener->tokens, key, &exchange->caller);
    else
        token_store_match(exchange->listener->tokens,
                          e2b_header(request, MHD_HTTP_HEADER_AUTHORIZATION), &exchange->caller);
    request->is_read_only = !caller_may_change(&exchange->caller);
    if (request->route && request->route->is_open)
        return 0;
    if (exchange->caller.role == ROLE_NONE)
        return control_refuse(err);
    if (exchange->caller.role == ROLE_READ && strcmp(request->verb, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(request->verb, MHD_HTTP_METHOD_HEAD) != 0) {
        (void)err_set(err, ERR_DENIED, "this token is read-only");
        return MHD_HTTP_FORBIDDEN;
    }
    return 0;
}

static bool envd_token_matches(const struct e2b_request *request)
{
    const char *wanted = e2b_metadata_text(request->metadata, "accessToken");

    return is_allowed_peer(request) || e2b_metadata_is_open(request->metadata) ||
           (wanted && token_matches(e2b_header(request, "X-Access-Token"), wanted));
}

/* Ports of a sandbox that E2B's clients have made are public unless it has a traffic token. Those
 * of other sandboxes never are. */
static bool traffic_token_matches(struct e2b_request *request, const char *id)
{
    const char *wanted = e2b_metadata_text(request->metadata, "trafficToken");
    bool is_public = !wanted && (e2b_metadata_text(request->metadata, "accessToken") ||
                                 e2b_metadata_is_open(request->metadata));

    if (port_access_has_code(request))
        return port_access_take_code(request, id);
    return is_allowed_peer(request) || is_public ||
           (wanted && token_matches(e2b_header(request, "e2b-traffic-access-token"), wanted)) ||
           port_access_is_allowed(request, id);
}

static unsigned refuse_token(const struct e2b_request *request, struct err *err)
{
    if (port_access_has_code(request)) {
        (void)err_set(
            err, ERR_DENIED,
            "the link of this preview is not valid: it can be used once, within a minute; "
            "open the preview again");
        return MHD_HTTP_FORBIDDEN;
    }
    if (request->to.kind == E2B_PORT) {
        (void)err_set(err, ERR_DENIED,
                      "a valid traffic access token is required for this port; 'holt token create "
                      "--ports-of ID' makes one, and 'holt port --preview ID PORT' a link for a "
                      "browser");
        return MHD_HTTP_FORBIDDEN;
    }
    (void)err_set(err, ERR_UNAUTHENTICATED,
                  "unauthorized access, please provide a valid access token or method signing if "
                  "supported");
    return MHD_HTTP_UNAUTHORIZED;
}

static unsigned gone_refuse(struct err *err)
{
    (void)err_set(err, ERR_NOT_FOUND, "The sandbox was not found");
    return MHD_HTTP_BAD_GATEWAY;
}

/* A paused sandbox counts as gone, unless requests resume it. Then a caller without access is told
 * so and the sandbox stays paused; no path is public, as even its state is not. */
static unsigned paused_check(struct e2b_request *request, struct err *err)
{
    if (!e2b_metadata_bool(request->metadata, "autoResume"))
        return gone_refuse(err);
    if (!request->has_token) {
        (void)refuse_token(request, err);
        return MHD_HTTP_FORBIDDEN;
    }
    return e2b_wake_for_traffic(request, err) < 0 ? gone_refuse(err) : 0;
}

static unsigned sandbox_check(struct e2b_request *request, struct err *err)
{
    const struct caller *caller = &caller_root; /* its own token follows */
    char id[SANDBOX_ID_MAX];

    if (is_local(request)) {
        peer_set(request);
        caller = &request->exchange->caller;
    }
    if (!e2b_id_to(request->to.sandbox, id) ||
        sandbox_find(request->host, caller, id, &request->sandbox, err) < 0)
        return gone_refuse(err);
    request->metadata = e2b_metadata_read(request->sandbox);
    request->has_token = request->to.kind == E2B_PORT ? traffic_token_matches(request, id)
                                                      : envd_token_matches(request);
    if (request->to.kind == E2B_PORT && !request->has_token && port_access_is_foreign(request, id))
        return gone_refuse(err);
    if (!e2b_is_active(request->sandbox))
        return paused_check(request, err);
    if (!request->has_token && !(request->route && request->route->is_open))
        return refuse_token(request, err);
    return 0;
}

/* A pre-signed URL does not name its sandbox: it is the one whose token makes the same signature.
 */
static void signed_sandbox_find(struct e2b_request *request)
{
    struct sandbox_info *list = NULL;
    size_t count = 0;

    sandbox_list(request->host, &caller_root, NULL, 0, &list, &count);
    for (size_t i = 0; i < count; i++) {
        json_t *metadata = list[i].metadata ? json_loads(list[i].metadata, 0, NULL) : NULL;
        const char *token = e2b_metadata_text(metadata, "accessToken");

        if (token && e2b_signature_matches(request, token))
            (void)e2b_id_from(list[i].id, request->to.sandbox);
        json_decref(metadata);
        sandbox_info_done(&list[i]);
    }
    free(list);
    request->to.kind = E2B_ENVD;
}

/* The same reply as for an existing sandbox with another token. */
static unsigned signature_refuse(struct err *err)
{
    (void)err_set(err, ERR_UNAUTHENTICATED, "invalid signature");
    return MHD_HTTP_UNAUTHORIZED;
}

unsigned e2b_gate_check(struct e2b_request *request, struct err *err)
{
    if (request->to.kind == E2B_CONTROL)
        return control_check(request, err);
    if (request->to.kind == E2B_SIGNED) {
        signed_sandbox_find(request);
        if (request->to.sandbox[0] == '\0')
            return signature_refuse(err);
    }
    return sandbox_check(request, err);
}
