// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"
#include "base/cleanup.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "holt.h"

static void token_fill(void *result, struct holt_token *token, const struct msg_token *message)
{
    *token = (struct holt_token){
        .id = message->id,
        .label = message->label,
        .is_read_only = message->read_only,
        .created_ms = (int64_t)message->created_at_ms,
        .expires_ms = (int64_t)message->expires_at_ms,
        .last_used_ms = (int64_t)message->last_used_at_ms,
        .secret = "",
        .owner = message->owner,
        .role = message->role,
        .scope = result_labels(result, message->scope, message->scope_count),
        .scope_count = message->scope_count,
    };
}

static int created_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_token_create_response *reply = message;
    struct holt_token *token = result;

    if (!reply->token)
        return reply_lacks("token", error);
    token_fill(result, token, reply->token);
    token->secret = reply->secret;
    return 0;
}

int holt_token_create(struct holt *holt, const struct holt_token_options *options, int64_t deadline,
                      struct holt_token **ret, struct holt_error *error)
{
    struct holt_token_options given = HOLT_INIT(holt_token_options);
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct msg_token_create_request request;
    const struct client_call call = { &method_token_service_create, &request, false, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_token_create_request){
        .label = given.label,
        .read_only = given.is_read_only,
        .ttl_ms = given.ttl_ms,
        .ports_of = given.ports_of,
        .owner = given.owner,
        .role = given.role,
    };
    if (request_pairs(&arena, given.scope, &request.scope, &request.scope_count, error) < 0)
        return -1;
    return client_call_for(holt, &call, sizeof(**ret), created_fill, ret, error);
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_token_list_response *reply = message;
    struct holt_token_list *list = result;

    (void)error;
    list->count = reply->tokens_count;
    list->items =
        RESULT_LIST(result, struct holt_token, token_fill, reply->tokens, reply->tokens_count);
    return 0;
}

int holt_token_list(struct holt *holt, int64_t deadline, struct holt_token_list **ret,
                    struct holt_error *error)
{
    const struct msg_token_list_request request = { 0 };
    const struct client_call call = { &method_token_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

int holt_token_remove(struct holt *holt, const char *id, int64_t deadline, struct holt_error *error)
{
    const struct msg_token_remove_request request = { .id = id };
    const struct client_call call = { &method_token_service_remove, &request, false, deadline };

    return client_call_void(holt, &call, error);
}
