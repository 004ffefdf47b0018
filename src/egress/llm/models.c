// SPDX-License-Identifier: Apache-2.0
/* The models of a sandbox, and the calls that ask for them. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "egress/llm/exchange.h"

/* Returns whether the sandbox may use a model in the format of the request. */
static bool model_is_granted(const struct llm_exchange *exchange, const struct llm_model *model)
{
    const struct guest *guest = exchange->connection->guest;
    const struct llm_provider *provider = &exchange->table->providers[model->provider];

    return provider->kind == exchange->kind &&
           (!provider->owner[0] || strcmp(provider->owner, guest->owner->name) == 0) &&
           net_models_have(net_policy_models(&guest->policy), model->name);
}

const struct llm_model *llm_model_find(const struct llm_exchange *exchange, const char *name)
{
    const struct llm_table *table = exchange->table;

    for (size_t i = 0; i < table->model_count; i++)
        if (strcmp(table->models[i].name, name) == 0 &&
            model_is_granted(exchange, &table->models[i]))
            return &table->models[i];
    return NULL;
}

bool llm_is_granted(const struct connection *connection)
{
    const struct llm_exchange *exchange = connection->llm;

    return net_policy_models(&connection->guest->policy)[0] &&
           (!exchange->model || model_is_granted(exchange, exchange->model));
}

/* One form that the clients of both providers read. */
static json_t *entry_make(const struct llm_model *model)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s}", "id", model->name, "type", "model",
                     "object", "model", "display_name", model->name, "created", 0, "created_at",
                     "1970-01-01T00:00:00Z", "owned_by", "holt");
}

static void json_answer(struct llm_exchange *exchange, const json_t *reply)
{
    cleanup_free char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;

    if (!text || buf_printf(&exchange->to_client,
                            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                            "Content-Length: %zu\r\n\r\n%s",
                            strlen(text), text) < 0)
        connection_end(exchange->connection, true, "out of memory");
    else
        llm_exchange_end(exchange);
}

void llm_answer_list(struct llm_exchange *exchange)
{
    cleanup_json json_t *list = json_array(), *reply = NULL;

    for (size_t i = 0; i < exchange->table->model_count; i++) {
        const struct llm_model *model = &exchange->table->models[i];

        if (model_is_granted(exchange, model))
            (void)json_array_append_new(list, entry_make(model));
    }
    reply = json_pack("{s:s, s:O, s:b}", "object", "list", "data", list, "has_more", 0);
    json_answer(exchange, reply);
}

void llm_answer_entry(struct llm_exchange *exchange)
{
    char name[MODEL_NAME_MAX + 1];
    const struct llm_model *model =
        request_entry_name(exchange->target, name) == 0 ? llm_model_find(exchange, name) : NULL;
    cleanup_json json_t *reply = model ? entry_make(model) : NULL;

    if (model)
        json_answer(exchange, reply);
    else
        llm_refuse(exchange, ERROR_MODEL, "this sandbox has no such model", 0);
}
