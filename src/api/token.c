// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "api/message/fields.h"
#include "api/service.h"
#include "auth/token_store.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/observe/event.h"

static json_t *moment_json(uint64_t ms)
{
    return ms ? json_time(ms) : NULL;
}

static json_t *token_json(const struct token_info *info)
{
    return json_pack("{s:s, s:s, s:b, s:o, s:o*, s:o*}", "id", info->id, "label", info->label,
                     "readOnly", info->is_read_only, "createdAt", json_time(info->created_ms),
                     "expiresAt", moment_json(info->expires_ms), "lastUsedAt",
                     moment_json(info->used_ms));
}

static int reply_check(const json_t *reply, struct err *err)
{
    return reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}

int token_service_create(const struct call *call, const json_t *request, json_t **ret_reply,
                         struct err *err)
{
    static const char *const fields[] = { "label", "readOnly", "ttlMs", NULL };
    struct token_spec spec = { 0 };
    char secret[TOKEN_SECRET_SIZE] = "";
    struct token_info info = { 0 };
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = field_word(request, "label", TOKEN_LABEL_MAX, &spec.label, err);
    if (r == 0)
        r = json_get_bool(request, "readOnly", &spec.is_read_only, err);
    if (r == 0)
        r = field_duration(request, "ttlMs", &spec.ttl_ms, err);
    if (r == 0)
        r = token_store_create(call->tokens, &spec, &info, secret, err);
    if (r < 0)
        return r;
    host_event(call->host, EVENT_TOKEN_CREATED,
               json_pack("{s:s, s:o, s:b}", "token", info.id, "label", json_text(info.label),
                         "readOnly", info.is_read_only));
    *ret_reply = json_pack("{s:o, s:s}", "token", token_json(&info), "secret", secret);
    return reply_check(*ret_reply, err);
}

int token_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                       struct err *err)
{
    static const char *const fields[] = { NULL };
    cleanup_free struct token_info *tokens = NULL;
    size_t count = 0;
    json_t *list;
    int r = json_only_fields(request, fields, err);

    if (r < 0)
        return r;
    token_store_list(call->tokens, &tokens, &count);
    list = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(list, token_json(&tokens[i]));
    *ret_reply = json_pack("{s:o}", "tokens", list);
    return reply_check(*ret_reply, err);
}

int token_service_remove(const struct call *call, const json_t *request, json_t **ret_reply,
                         struct err *err)
{
    static const char *const fields[] = { "id", NULL };
    const char *id = NULL;
    int r = json_only_fields(request, fields, err);

    (void)ret_reply;
    if (r == 0)
        r = field_needed(request, "id", &id, err);
    if (r == 0)
        r = token_store_remove(call->tokens, id, err);
    if (r == 0)
        host_event(call->host, EVENT_TOKEN_REMOVED, json_pack("{s:s}", "token", id));
    return r;
}
