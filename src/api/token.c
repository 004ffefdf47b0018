// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/service.h"
#include "auth/session_store.h"
#include "auth/token_store.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/observe/event.h"
#include "host/sandbox/sandbox.h"

_Static_assert(MSG_TOKEN_CREATE_REQUEST_LABEL_MAX_BYTES == TOKEN_LABEL_MAX, "a label has room");

_Static_assert(MSG_TOKEN_CREATE_REQUEST_OWNER_MAX_BYTES == OWNER_NAME_MAX, "an owner has room");

static struct msg_token token_message(const struct token_info *info, struct arena *arena)
{
    struct pair *scope = arena_take(arena, info->scope_count, sizeof(*scope));

    for (size_t i = 0; i < info->scope_count; i++)
        scope[i] = (struct pair){ info->scope[i].key, info->scope[i].value };
    return (struct msg_token){
        .id = info->id,
        .owner = info->owner,
        .role = role_name(info->role),
        .scope = scope,
        .scope_count = info->scope_count,
        .label = info->label,
        .read_only = info->role == ROLE_READ,
        .created_at_ms = info->created_ms,
        .expires_at_ms = info->expires_ms,
        .last_used_at_ms = info->used_ms,
    };
}

/* Finds the sandbox whose ports a token is for; ret stays "" if the request names none. */
static int ports_find(const struct call *call, const struct msg_token_create_request *request,
                      char ret[SANDBOX_ID_MAX], struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r;

    ret[0] = '\0';
    if (*request->ports_of == '\0')
        return 0;
    if (request->read_only)
        return err_set(err, ERR_INVALID, "a token for ports cannot be read-only");
    r = sandbox_find(call->host, call->caller, request->ports_of, &sandbox, err);
    if (r == 0)
        (void)snprintf(ret, SANDBOX_ID_MAX, "%s", sandbox_id(sandbox));
    return r;
}

/* A token never may do more than its creator. */
static int role_choose(const struct call *call, const struct msg_token_create_request *request,
                       enum role *ret, struct err *err)
{
    const struct caller *caller = call->caller;
    bool is_own = *request->owner == '\0' || strcmp(request->owner, caller->owner) == 0;

    if (!is_own && !caller_is_admin(caller))
        return err_set(err, ERR_DENIED, "only an admin creates tokens of other owners");
    *ret = is_own ? caller->role : ROLE_USER;
    if (*request->role)
        (void)role_parse(request->role, ret);
    else if (request->read_only)
        *ret = ROLE_READ;
    if (request->read_only && *ret != ROLE_READ)
        return err_set(err, ERR_INVALID, "a read-only token has the role read-only");
    if (*ret > caller->role)
        return err_set(err, ERR_DENIED, "a token with the role %s cannot create one with %s",
                       role_name(caller->role), role_name(*ret));
    return 0;
}

/* The scope of the creator, and the labels of the request. */
static int scope_choose(const struct call *call, const struct msg_token_create_request *request,
                        struct token_spec *spec, struct err *err)
{
    const struct caller *caller = call->caller;
    struct label *scope =
        arena_take(call->arena, caller->scope_count + request->scope_count, sizeof(*scope));
    size_t count = caller->scope_count;

    memcpy(scope, caller->scope, count * sizeof(*scope));
    for (size_t i = 0; i < request->scope_count; i++) {
        struct label label;

        (void)snprintf(label.key, sizeof(label.key), "%s", request->scope[i].key);
        (void)snprintf(label.value, sizeof(label.value), "%s", request->scope[i].value);
        if (labels_include(scope, count, &label, 1))
            continue;
        if (labels_find(scope, count, label.key))
            return err_set(err, ERR_DENIED, "this token is limited to another value of label '%s'",
                           label.key);
        scope[count++] = label;
    }
    if (count > CALLER_SCOPE_MAX)
        return err_set(err, ERR_INVALID, "the scope of a token has at most %d labels",
                       CALLER_SCOPE_MAX);
    spec->scope = scope;
    spec->scope_count = count;
    return 0;
}

/* Returns when the caller itself expires, since 1970; 0: it does not, as on the unix socket. */
static uint64_t caller_expiry(const struct call *call)
{
    struct token_info token = { .expires_ms = 0 };
    struct session_info session = { .expires_ms = 0 };

    (void)token_store_get(call->tokens, call->caller->token, &token);
    if (call->sessions)
        (void)session_store_get(call->sessions, call->caller->session, &session);
    if (session.expires_ms == 0 || (token.expires_ms && token.expires_ms < session.expires_ms))
        return token.expires_ms;
    return session.expires_ms;
}

static int spec_fill(const struct call *call, const struct msg_token_create_request *request,
                     struct token_spec *ret, struct err *err)
{
    int r;

    *ret = (struct token_spec){
        .label = text_or_null(request->label),
        .owner = *request->owner ? request->owner : call->caller->owner,
        .ttl_ms = request->ttl_ms,
        .expires_ms = caller_expiry(call),
    };
    r = owner_check_name(ret->owner, err);
    if (r == 0)
        r = role_choose(call, request, &ret->role, err);
    return r == 0 ? scope_choose(call, request, ret, err) : r;
}

int token_service_create(const struct call *call, const struct msg_token_create_request *request,
                         struct err *err)
{
    struct token_spec spec;
    char secret[TOKEN_SECRET_SIZE] = "", port_token[TOKEN_PORT_SIZE] = "",
         ports[SANDBOX_ID_MAX] = "";
    struct token_info info = { 0 };
    struct msg_token token;
    int r = spec_fill(call, request, &spec, err);

    if (r == 0)
        r = ports_find(call, request, ports, err);
    if (r == 0)
        r = token_store_create(call->tokens, &spec, &info, secret, err);
    if (r < 0)
        return r;
    if (ports[0] != '\0')
        token_port_derive(&info, secret, ports, port_token);
    owner_event(call->host, info.owner, EVENT_TOKEN_CREATED,
                json_pack("{s:s, s:o, s:b, s:s}", "token", info.id, "label", json_text(info.label),
                          "readOnly", info.role == ROLE_READ, "role", role_name(info.role)));
    token = token_message(&info, call->arena);
    return call_reply(call,
                      MESSAGE(msg_token_create_response, .token = &token,
                              .secret = ports[0] != '\0' ? port_token : secret),
                      err);
}

int token_service_list(const struct call *call, const struct msg_token_list_request *request,
                       struct err *err)
{
    cleanup_free struct token_info *infos = NULL;
    struct msg_token *tokens;
    size_t count = 0;

    (void)request;
    token_store_list(call->tokens, call->caller, &infos, &count);
    tokens = arena_take(call->arena, count, sizeof(*tokens));
    for (size_t i = 0; i < count; i++)
        tokens[i] = token_message(&infos[i], call->arena);
    return call_reply(
        call, MESSAGE(msg_token_list_response, .tokens = tokens, .tokens_count = count), err);
}

int token_service_remove(const struct call *call, const struct msg_token_remove_request *request,
                         struct err *err)
{
    struct token_info info;
    int r = token_store_remove(call->tokens, call->caller, request->id, &info, err);

    if (r == 0)
        owner_event(call->host, info.owner, EVENT_TOKEN_REMOVED,
                    json_pack("{s:s}", "token", request->id));
    return r;
}
