// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include "api/service.h"
#include "auth/token_store.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/observe/event.h"
#include "host/sandbox/sandbox.h"

_Static_assert(MSG_TOKEN_CREATE_REQUEST_LABEL_MAX_BYTES == TOKEN_LABEL_MAX, "a label has room");

static struct msg_token token_message(const struct token_info *info)
{
    return (struct msg_token){
        .id = info->id,
        .label = info->label,
        .read_only = info->role == ROLE_READ,
        .created_at_ms = info->created_ms,
        .expires_at_ms = info->expires_ms,
        .last_used_at_ms = info->used_ms,
    };
}

/* Finds the sandbox whose ports a token is for; ret stays "" if the request names none. */
static int ports_owner_find(const struct call *call, const struct msg_token_create_request *request,
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

int token_service_create(const struct call *call, const struct msg_token_create_request *request,
                         struct err *err)
{
    const struct token_spec spec = {
        .label = text_or_null(request->label),
        .owner = call->caller->owner,
        .role = request->read_only ? ROLE_READ : call->caller->role,
        .scope = call->caller->scope,
        .scope_count = call->caller->scope_count,
        .ttl_ms = request->ttl_ms,
    };
    char secret[TOKEN_SECRET_SIZE] = "", port_token[TOKEN_PORT_SIZE] = "", owner[SANDBOX_ID_MAX];
    struct token_info info = { 0 };
    struct msg_token token;
    int r = ports_owner_find(call, request, owner, err);

    if (r == 0)
        r = token_store_create(call->tokens, &spec, &info, secret, err);
    if (r < 0)
        return r;
    if (owner[0] != '\0')
        token_port_derive(&info, secret, owner, port_token);
    host_event(call->host, EVENT_TOKEN_CREATED,
               json_pack("{s:s, s:o, s:b}", "token", info.id, "label", json_text(info.label),
                         "readOnly", info.role == ROLE_READ));
    token = token_message(&info);
    return call_reply(call,
                      MESSAGE(msg_token_create_response, .token = &token,
                              .secret = owner[0] != '\0' ? port_token : secret),
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
        tokens[i] = token_message(&infos[i]);
    return call_reply(
        call, MESSAGE(msg_token_list_response, .tokens = tokens, .tokens_count = count), err);
}

int token_service_remove(const struct call *call, const struct msg_token_remove_request *request,
                         struct err *err)
{
    int r = token_store_remove(call->tokens, call->caller, request->id, err);

    if (r == 0)
        host_event(call->host, EVENT_TOKEN_REMOVED, json_pack("{s:s}", "token", request->id));
    return r;
}
