// SPDX-License-Identifier: Apache-2.0
/* What an exchange and holtd say to each other about budgets. */
#include "base/cleanup.h"
#include "egress/llm/exchange.h"

enum { RESERVE_MS = 10 * 1000 };

static struct egress *egress_of(const struct llm_exchange *exchange)
{
    return exchange->connection->guest->egress;
}

void llm_reserve(struct llm_exchange *exchange)
{
    struct egress *egress = egress_of(exchange);

    exchange->state = LLM_RESERVE;
    exchange->ticket = ++egress->last_ticket;
    exchange->connection->deadline_ms = egress->now_ms + RESERVE_MS;
    llm_client_watch(exchange);
    control_send(egress,
                 json_pack("{s:s, s:I, s:I, s:s, s:I, s:I}", "do", "llm-reserve", "machine",
                           (json_int_t)exchange->connection->guest->number, "ticket",
                           (json_int_t)exchange->ticket, "model", exchange->model->name, "input",
                           (json_int_t)exchange->input, "output", (json_int_t)exchange->output));
}

static void settled_tell(struct egress *egress, uint64_t machine, uint64_t reserved,
                         const struct token_counts *tokens)
{
    control_send(egress,
                 json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "do", "llm-settle", "machine",
                           (json_int_t)machine, "reserved", (json_int_t)reserved, "input",
                           (json_int_t)tokens->input, "cacheRead", (json_int_t)tokens->cache_read,
                           "cacheWrite", (json_int_t)tokens->cache_write, "output",
                           (json_int_t)tokens->output));
}

/* A request that the provider has, without a word of a reply, may have been served: to go away in
 * time must not be a way around a budget. */
static bool may_be_served(const struct llm_exchange *exchange)
{
    return exchange->state == LLM_REPLY && !exchange->reply_is_begun;
}

/* Bounds the output of a reply that does not say it. A token that is seen has a byte or more; those
 * that are not, of thoughts, take their time: no model writes more than one in a millisecond. */
static uint64_t output_bound(const struct llm_exchange *exchange)
{
    uint64_t most = exchange->reply_bytes + egress_of(exchange)->now_ms - exchange->sent_ms;

    return most < exchange->output ? most : exchange->output;
}

void llm_settle(struct llm_exchange *exchange)
{
    struct token_counts tokens;
    bool is_known = usage_reader_finish(&exchange->usage, &tokens);
    bool is_refused = !exchange->reply_is_begun || exchange->reply.status_code >= 400;

    if (exchange->reserved == 0)
        return;
    if (may_be_served(exchange)) {
        tokens = (struct token_counts){ .input = exchange->input, .output = exchange->output };
    } else if (is_refused) {
        tokens = (struct token_counts){ 0 };
    } else if (!is_known) {
        if (!exchange->usage.has_input)
            tokens.input = exchange->input;
        tokens.output = output_bound(exchange);
    }
    settled_tell(egress_of(exchange), exchange->connection->guest->number, exchange->reserved,
                 &tokens);
    exchange->reserved = 0;
}

static struct llm_exchange *exchange_find(struct egress *egress, uint64_t number, uint64_t ticket)
{
    struct guest *guest = egress_guest_find(egress, number);

    for (struct connection *each = guest ? guest->connections : NULL; each; each = each->next)
        if (each->llm && each->llm->state == LLM_RESERVE && each->llm->ticket == ticket)
            return each->llm;
    return NULL;
}

static void refused_answer(struct llm_exchange *exchange, const json_t *message)
{
    const char *text = json_string_value(json_object_get(message, "refusal"));
    uint64_t retry = (uint64_t)json_integer_value(json_object_get(message, "retry"));

    if (!text)
        llm_refuse(exchange, ERROR_SHORTAGE, "the budget cannot be recorded", 0);
    else
        llm_refuse(exchange,
                   json_is_true(json_object_get(message, "isBrief")) ? ERROR_RATE : ERROR_QUOTA,
                   text, retry);
}

void llm_reserved(struct egress *egress, const json_t *message)
{
    uint64_t number = (uint64_t)json_integer_value(json_object_get(message, "machine"));
    uint64_t ticket = (uint64_t)json_integer_value(json_object_get(message, "ticket"));
    uint64_t reserved = (uint64_t)json_integer_value(json_object_get(message, "reserved"));
    struct llm_exchange *exchange = exchange_find(egress, number, ticket);

    if (!exchange) { /* the client has gone meanwhile; nothing was sent */
        if (reserved > 0)
            settled_tell(egress, number, reserved, &(struct token_counts){ 0 });
        return;
    }
    exchange->connection->deadline_ms = 0;
    exchange->reserved = reserved;
    if (reserved > 0)
        llm_server_start(exchange);
    else
        refused_answer(exchange, message);
}
