// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "client/client_internal.h"
#include "client/typed/request.h"
#include "holt.h"

static void token_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_token *token = into;

    token->id = read_text(reading, object, "id");
    token->label = read_text(reading, object, "label");
    token->is_read_only = read_bool(reading, object, "readOnly");
    token->created_ms = read_time(reading, object, "createdAt");
    token->expires_ms = read_time(reading, object, "expiresAt");
    token->last_used_ms = read_time(reading, object, "lastUsedAt");
    token->secret = "";
}

static void created_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_token *token = into;

    token_read(reading, read_object(reading, object, "token"), token);
    token->secret = read_text(reading, object, "secret");
}

int holt_token_create(struct holt *holt, const struct holt_token_options *options, int64_t deadline,
                      struct holt_token **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), created_read };
    struct holt_token_options given = HOLT_INIT(holt_token_options);
    struct client_call call = { .method = "TokenService/Create", .deadline = deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    call.request = request_text(json_object(), "label", given.label);
    call.request = request_true(call.request, "readOnly", given.is_read_only);
    call.request = request_u64(call.request, "ttlMs", given.ttl_ms);
    return client_call_for(holt, &call, &answer, ret, error);
}

static void list_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *tokens = read_array(reading, object, "tokens");
    struct holt_token_list *list = into;

    list->count = json_array_size(tokens);
    list->items = (const struct holt_token *const *)read_list(reading, tokens,
                                                              sizeof(**list->items), token_read);
}

int holt_token_list(struct holt *holt, int64_t deadline, struct holt_token_list **ret,
                    struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), list_read };
    const struct client_call call = { "TokenService/List", json_object(), true, deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

int holt_token_remove(struct holt *holt, const char *id, int64_t deadline, struct holt_error *error)
{
    const struct client_call call = { "TokenService/Remove", request_text(json_object(), "id", id),
                                      false, deadline };

    return client_call_void(holt, &call, error);
}
