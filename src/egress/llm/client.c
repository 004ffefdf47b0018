// SPDX-License-Identifier: Apache-2.0
/* The side of an exchange to the sandbox: reads requests, checks them, and sends replies. */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "egress/llm/exchange.h"

enum {
    REQUEST_MS = 120 * 1000, /* for a head and what follows it until it is whole, per read */
    RESERVE_MS = 10 * 1000,
    IDLE_MS = 600 * 1000,
    PENDING_MAX = LLM_READ_BYTES,
};

static size_t bodies; /* bytes of all bodies that are held */

static struct egress *egress_of(const struct llm_exchange *exchange)
{
    return exchange->connection->guest->egress;
}

/* --- settling --- */

/* A request that the provider has, without a word of a reply, may have been served: to go away in
 * time must not be a way around a budget. */
static bool may_be_served(const struct llm_exchange *exchange)
{
    return exchange->state == LLM_REPLY && !exchange->reply_is_begun;
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
        /* Every token has a byte or more, so the output is not more than the bytes that came. */
        if (!exchange->usage.has_input)
            tokens.input = exchange->input;
        tokens.output =
            exchange->reply_bytes < exchange->output ? exchange->reply_bytes : exchange->output;
    }
    control_send(egress_of(exchange),
                 json_pack("{s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I}", "do", "llm-settle",
                           "machine", (json_int_t)exchange->connection->guest->number, "model",
                           exchange->model->name, "reserved", (json_int_t)exchange->reserved,
                           "input", (json_int_t)tokens.input, "cacheRead",
                           (json_int_t)tokens.cache_read, "cacheWrite",
                           (json_int_t)tokens.cache_write, "output", (json_int_t)tokens.output));
    exchange->reserved = 0;
}

/* --- replies --- */

static void client_watch(struct llm_exchange *exchange)
{
    uint32_t events = exchange->state == LLM_IDLE ? EPOLLIN : EPOLLRDHUP;

    if (exchange->to_client.len > 0)
        events |= EPOLLOUT;
    watch_set(egress_of(exchange), &exchange->connection->client.watch, events);
}

bool llm_client_flush(struct llm_exchange *exchange)
{
    struct buf *out = &exchange->to_client;

    while (out->len > 0) {
        ssize_t n = send(exchange->connection->client.watch.fd, out->data, out->len, MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0) {
            connection_end(exchange->connection, true, "closed by the sandbox");
            return false;
        }
        exchange->connection->active_ms = egress_of(exchange)->now_ms;
        buf_consume(out, (size_t)n);
    }
    if (out->len == 0 && exchange->state == LLM_IDLE && !exchange->keeps_client) {
        connection_end(exchange->connection, false, "closed");
        return false;
    }
    client_watch(exchange);
    return true;
}

static void body_drop(struct llm_exchange *exchange)
{
    bodies -= exchange->counted;
    exchange->counted = 0;
    buf_done(&exchange->body);
    exchange->body = (struct buf)BUF_INIT(LLM_BODY_MAX);
}

static void request_begin(struct llm_exchange *exchange)
{
    http_parser_init(&exchange->request, HTTP_REQUEST);
    exchange->request.data = exchange;
    exchange->target[0] = exchange->token[0] = '\0';
    exchange->is_anthropic = exchange->is_too_long = false;
    exchange->keeps_client = true;
    buf_clear(&exchange->fields);
    buf_clear(&exchange->reply_fields);
    body_drop(exchange);
    request_body_init(&exchange->scan);
    exchange->reply_is_begun = exchange->reply_is_whole = false;
    exchange->reply_bytes = 0;
    exchange->ticket = 0;
    exchange->model = NULL;
    llm_table_unref(TAKE_PTR(exchange->table));
    exchange->state = LLM_IDLE;
}

void llm_exchange_end(struct llm_exchange *exchange)
{
    bool keeps = exchange->keeps_client;
    struct connection *connection = exchange->connection;

    llm_settle(exchange);
    request_begin(exchange);
    exchange->keeps_client = keeps;
    connection->deadline_ms = 0;
    if (connection->server.watch.fd >= 0) /* its end is noticed */
        watch_set(egress_of(exchange), &connection->server.watch, EPOLLIN | EPOLLRDHUP);
    if (llm_client_flush(exchange) && exchange->pending.len > 0)
        llm_client_ready(connection, 0);
}

void llm_refuse(struct llm_exchange *exchange, int status, const char *message,
                uint64_t retry_seconds)
{
    if (request_put_error(exchange->kind, status, message, retry_seconds, &exchange->to_client) < 0)
        connection_end(exchange->connection, true, "out of memory");
    else
        llm_exchange_end(exchange);
}

/* --- the head of a request --- */

static struct llm_exchange *exchange_of(const http_parser *parser)
{
    return parser->data;
}

static int target_take(http_parser *parser, const char *data, size_t len)
{
    struct llm_exchange *exchange = exchange_of(parser);
    size_t used = strlen(exchange->target);

    if (used + len >= sizeof(exchange->target))
        return -1;
    memcpy(exchange->target + used, data, len);
    exchange->target[used + len] = '\0';
    return 0;
}

/* Keys, framing and what Holt decides itself; a compressed reply could not be read. */
static bool request_field_passes(const char *name)
{
    static const char *const dropped[] = {
        "host",          "connection", "keep-alive", "transfer-encoding", "content-length",
        "authorization", "x-api-key",  "cookie",     "accept-encoding",   "expect",
        "upgrade",       "te",         "trailer",    "proxy-connection",  "proxy-authorization",
        "forwarded",     "via",
    };

    for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
        if (strcasecmp(name, dropped[i]) == 0)
            return false;
    return strncasecmp(name, "x-forwarded-", 12) != 0;
}

static void token_take(struct llm_exchange *exchange, const char *value)
{
    static const char bearer[] = "Bearer ";

    if (strncasecmp(value, bearer, sizeof(bearer) - 1) == 0)
        value += sizeof(bearer) - 1;
    if (exchange->token[0] == '\0')
        (void)snprintf(exchange->token, sizeof(exchange->token), "%s", value);
}

static int request_field_end(struct llm_exchange *exchange)
{
    struct llm_field *field = &exchange->field;
    const char *value = field->value.len > 0 ? field->value.data : "";
    int r = 0;

    if (strcasecmp(field->name, "x-api-key") == 0 || strcasecmp(field->name, "authorization") == 0)
        token_take(exchange, value);
    if (strcasecmp(field->name, "anthropic-version") == 0)
        exchange->is_anthropic = true;
    if (field->name[0] && request_field_passes(field->name))
        r = buf_printf(&exchange->fields, "%s: %s\r\n", field->name, value);
    field->name[0] = '\0';
    buf_clear(&field->value);
    return r;
}

static int name_take(http_parser *parser, const char *data, size_t len)
{
    struct llm_exchange *exchange = exchange_of(parser);
    struct llm_field *field = &exchange->field;
    size_t used;

    if (field->is_value && request_field_end(exchange) < 0)
        return -1;
    field->is_value = false;
    used = strlen(field->name);
    if (used + len >= sizeof(field->name))
        return -1;
    memcpy(field->name + used, data, len);
    field->name[used + len] = '\0';
    return 0;
}

static int value_take(http_parser *parser, const char *data, size_t len)
{
    struct llm_exchange *exchange = exchange_of(parser);

    exchange->field.is_value = true;
    return buf_add(&exchange->field.value, data, len) < 0 ? -1 : 0;
}

static int head_end(http_parser *parser)
{
    struct llm_exchange *exchange = exchange_of(parser);

    if (request_field_end(exchange) < 0)
        return -1;
    exchange->is_old = parser->http_major == 1 && parser->http_minor == 0;
    exchange->call = request_classify(http_method_str((enum http_method)parser->method),
                                      exchange->target, exchange->is_anthropic, &exchange->kind);
    return 0;
}

/* Beyond the limits the rest is read and dropped, so that the client reads the reply. */
static int body_take(http_parser *parser, const char *data, size_t len)
{
    struct llm_exchange *exchange = exchange_of(parser);

    if (exchange->is_too_long)
        return 0;
    if (bodies + len > LLM_BODIES_MAX || buf_add(&exchange->body, data, len) < 0) {
        exchange->is_too_long = true;
        body_drop(exchange);
        return 0;
    }
    bodies += len;
    exchange->counted += len;
    (void)request_body_feed(&exchange->scan, data, len);
    return 0;
}

static int message_end(http_parser *parser)
{
    exchange_of(parser)->keeps_client = http_should_keep_alive(parser);
    http_parser_pause(parser, 1);
    return 0;
}

static const http_parser_settings request_settings = {
    .on_url = target_take,
    .on_header_field = name_take,
    .on_header_value = value_take,
    .on_headers_complete = head_end,
    .on_body = body_take,
    .on_message_complete = message_end,
};

/* --- a whole request --- */

/* Returns whether the sandbox may use a model in the format of the request. */
static bool model_is_granted(const struct llm_exchange *exchange, const struct llm_model *model)
{
    const struct guest *guest = exchange->connection->guest;
    const struct llm_provider *provider = &exchange->table->providers[model->provider];

    return provider->kind == exchange->kind &&
           (!provider->owner[0] || strcmp(provider->owner, guest->owner->name) == 0) &&
           net_models_have(net_policy_models(&guest->policy), model->name);
}

static const struct llm_model *model_find(const struct llm_exchange *exchange, const char *name)
{
    const struct llm_table *table = exchange->table;

    for (size_t i = 0; i < table->model_count; i++)
        if (strcmp(table->models[i].name, name) == 0 &&
            model_is_granted(exchange, &table->models[i]))
            return &table->models[i];
    return NULL;
}

static bool token_is_right(const struct llm_exchange *exchange)
{
    const char *token = exchange->connection->guest->llm_token;
    size_t len = token ? strlen(token) : 0;

    return len > 0 && strlen(exchange->token) == len &&
           CRYPTO_memcmp(token, exchange->token, len) == 0;
}

static json_t *model_entry(const struct llm_model *model)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s}", "id", model->name, "type", "model",
                     "object", "model", "display_name", model->name, "created", 0, "created_at",
                     "1970-01-01T00:00:00Z", "owned_by", "holt");
}

/* Lists the models of the sandbox, in a form that the clients of both providers read. */
static void models_answer(struct llm_exchange *exchange)
{
    cleanup_json json_t *list = json_array(), *reply = NULL;
    cleanup_free char *text = NULL;

    for (size_t i = 0; i < exchange->table->model_count; i++) {
        const struct llm_model *model = &exchange->table->models[i];

        if (model_is_granted(exchange, model))
            (void)json_array_append_new(list, model_entry(model));
    }
    reply = json_pack("{s:s, s:O, s:b}", "object", "list", "data", list, "has_more", 0);
    text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;
    if (!text || buf_printf(&exchange->to_client,
                            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                            "Content-Length: %zu\r\n\r\n%s",
                            strlen(text), text) < 0)
        connection_end(exchange->connection, true, "out of memory");
    else
        llm_exchange_end(exchange);
}

/* Writes the request to the provider anew: its host, its key, its name of the model. */
static int request_write(struct llm_exchange *exchange)
{
    const struct llm_provider *provider = &exchange->table->providers[exchange->model->provider];
    const struct net_proxy *target = &provider->upstream->proxy;
    struct buf *out = &exchange->to_server;
    size_t name_bytes = (size_t)(exchange->scan.model_end - exchange->scan.model_start);
    size_t length = exchange->body.len - name_bytes + strlen(exchange->model->upstream) + 2;
    int r;

    buf_clear(out);
    exchange->sent = 0;
    r = buf_printf(out, "POST %s%s HTTP/1.1\r\nHost: %s:%u\r\n", provider->prefix, exchange->target,
                   target->host, target->port);
    if (r == 0)
        r = buf_add(out, exchange->fields.data ? exchange->fields.data : "", exchange->fields.len);
    if (r == 0)
        r = buf_printf(out,
                       provider->kind == PROVIDER_ANTHROPIC ? "x-api-key: %s\r\n"
                                                            : "Authorization: Bearer %s\r\n",
                       provider->key);
    if (r == 0)
        r = buf_printf(out, "Accept-Encoding: identity\r\nContent-Length: %zu\r\n\r\n", length);
    if (r == 0)
        r = request_body_rename(&exchange->scan, exchange->body.data, exchange->body.len,
                                exchange->model->upstream, out);
    body_drop(exchange);
    return r;
}

static bool has_key(const struct llm_exchange *exchange)
{
    return exchange->table->providers[exchange->model->provider].key[0] != '\0';
}

static void request_reserve(struct llm_exchange *exchange)
{
    struct egress *egress = egress_of(exchange);
    uint64_t choices = exchange->scan.choices > 0 ? exchange->scan.choices : 1;

    exchange->input = request_estimate_input(exchange->body.len);
    exchange->output = choices * (exchange->scan.max_output > 0 ? exchange->scan.max_output
                                                                : exchange->model->max_output);
    if (exchange->call == CALL_COUNT)
        exchange->input = exchange->output = 0;
    if (request_write(exchange) < 0) {
        llm_refuse(exchange, 413, "the request is too large", 0);
        return;
    }
    exchange->state = LLM_RESERVE;
    exchange->ticket = ++egress->last_ticket;
    exchange->connection->deadline_ms = egress->now_ms + RESERVE_MS;
    client_watch(exchange);
    control_send(egress,
                 json_pack("{s:s, s:I, s:I, s:s, s:I, s:I}", "do", "llm-reserve", "machine",
                           (json_int_t)exchange->connection->guest->number, "ticket",
                           (json_int_t)exchange->ticket, "model", exchange->model->name, "input",
                           (json_int_t)exchange->input, "output", (json_int_t)exchange->output));
}

static void request_handle(struct llm_exchange *exchange)
{
    struct egress *egress = egress_of(exchange);
    char message[MODEL_NAME_MAX + 80];

    exchange->table = egress->llm ? llm_table_ref(egress->llm) : NULL;
    if (exchange->call == CALL_PROBE) {
        (void)buf_add_str(&exchange->to_client, "HTTP/1.1 200 OK\r\n\r\n");
        llm_exchange_end(exchange);
    } else if (!token_is_right(exchange)) {
        llm_refuse(exchange, 401, "invalid key: use the one in this sandbox's environment", 0);
    } else if (!exchange->table || exchange->call == CALL_UNKNOWN) {
        llm_refuse(exchange, 404, "this gateway has no such path", 0);
    } else if (exchange->call == CALL_MODELS) {
        models_answer(exchange);
    } else if (exchange->is_too_long) {
        llm_refuse(exchange, 413, "the request is too large", 0);
    } else if (!request_body_is_whole(&exchange->scan) || exchange->scan.scan.has_odd_name) {
        llm_refuse(exchange, 400, "the body is not a JSON object that names one model", 0);
    } else {
        exchange->model = model_find(exchange, exchange->scan.model);
        (void)snprintf(message, sizeof(message), "this sandbox has no model '%s'",
                       exchange->scan.model);
        if (!exchange->model)
            llm_refuse(exchange, 404, message, 0);
        else if (has_key(exchange))
            request_reserve(exchange);
        else
            llm_refuse(exchange, 503,
                       "the provider of this model has no key: its secret is missing", 0);
    }
}

static void request_feed(struct llm_exchange *exchange, const char *data, size_t len)
{
    size_t used = http_parser_execute(&exchange->request, &request_settings, data, len);
    enum http_errno error = HTTP_PARSER_ERRNO(&exchange->request);

    if (error == HPE_PAUSED) { /* whole; the bytes after it wait */
        if (used < len && buf_add(&exchange->pending, data + used, len - used) < 0)
            connection_end(exchange->connection, true, "out of memory");
        else
            request_handle(exchange);
    } else if (error != HPE_OK || exchange->request.upgrade) {
        exchange->keeps_client = false;
        (void)request_put_error(exchange->kind, 400, "malformed HTTP request", 0,
                                &exchange->to_client);
        (void)llm_client_flush(exchange);
    }
}

/* --- what connection.c calls --- */

void llm_accept(struct connection *connection)
{
    struct llm_exchange *exchange = xcalloc(1, sizeof(*exchange));

    exchange->connection = connection;
    exchange->fields = exchange->reply_fields = (struct buf)BUF_INIT(LLM_HEADERS_MAX);
    exchange->field.value = exchange->reply_field.value = (struct buf)BUF_INIT(LLM_HEADERS_MAX);
    exchange->pending = (struct buf)BUF_INIT(PENDING_MAX);
    exchange->to_server = (struct buf)BUF_INIT(LLM_BODY_MAX + LLM_HEADERS_MAX * 2);
    exchange->to_client = (struct buf)BUF_INIT(LLM_TO_CLIENT_MAX);
    connection->llm = exchange;
    connection->deadline_ms = 0;
    connection->protocol = NET_HTTP;
    connection->is_allowed = true;
    (void)snprintf(connection->name, sizeof(connection->name), "llm.holt");
    (void)snprintf(connection->rule, sizeof(connection->rule), "models (sandbox)");
    request_begin(exchange);
    client_watch(exchange);
}

void llm_client_ready(struct connection *connection, uint32_t events)
{
    struct llm_exchange *exchange = connection->llm;
    char data[LLM_READ_BYTES];
    ssize_t n;

    if ((events & EPOLLOUT) && !llm_client_flush(exchange))
        return;
    if (exchange->state != LLM_IDLE) {
        if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
            connection_end(connection, true, "closed by the sandbox");
        else if (exchange->state == LLM_REPLY) /* there may be room again */
            llm_server_pump(exchange);
        return;
    }
    if (exchange->pending.len > 0) {
        n = (ssize_t)exchange->pending.len;
        memcpy(data, exchange->pending.data, exchange->pending.len);
        buf_clear(&exchange->pending);
    } else {
        n = recv(connection->client.watch.fd, data, sizeof(data), 0);
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        connection_end(connection, n < 0, "closed");
        return;
    }
    connection->active_ms = egress_of(exchange)->now_ms;
    connection->guest->is_active = true;
    connection->guest->bytes_out += (uint64_t)n;
    request_feed(exchange, data, (size_t)n);
}

void llm_server_ready(struct connection *connection)
{
    llm_server_pump(connection->llm);
}

void llm_tick(struct connection *connection)
{
    struct llm_exchange *exchange = connection->llm;
    uint64_t now_ms = egress_of(exchange)->now_ms;

    if (exchange->state == LLM_LOOKUP) {
        llm_server_start(exchange);
    } else if (connection->deadline_ms > 0 && now_ms >= connection->deadline_ms) {
        llm_server_close(exchange);
        llm_settle(exchange);
        exchange->keeps_client = false; /* an answer of holtd may still come for the old ticket */
        llm_refuse(exchange, exchange->state == LLM_RESERVE ? 503 : 502,
                   exchange->state == LLM_RESERVE ? "the budget could not be checked in time"
                                                  : "the provider does not answer in time",
                   0);
    } else if (exchange->state == LLM_IDLE && now_ms - connection->active_ms >= IDLE_MS) {
        connection_end(connection, false, "idle for too long");
    }
}

void llm_forget(struct connection *connection)
{
    struct llm_exchange *exchange = connection->llm;

    if (!exchange)
        return;
    llm_settle(exchange);
    llm_server_close(exchange);
    body_drop(exchange);
}

void llm_free(struct connection *connection)
{
    struct llm_exchange *exchange = TAKE_PTR(connection->llm);

    if (!exchange)
        return;
    llm_table_unref(exchange->table);
    buf_done(&exchange->fields);
    buf_done(&exchange->reply_fields);
    buf_done(&exchange->field.value);
    buf_done(&exchange->reply_field.value);
    buf_done(&exchange->pending);
    buf_done(&exchange->to_server);
    buf_done(&exchange->to_client);
    free(exchange);
}

static struct llm_exchange *exchange_find(struct egress *egress, uint64_t number, uint64_t ticket)
{
    struct guest *guest = egress_guest_find(egress, number);

    for (struct connection *each = guest ? guest->connections : NULL; each; each = each->next)
        if (each->llm && each->llm->state == LLM_RESERVE && each->llm->ticket == ticket)
            return each->llm;
    return NULL;
}

void llm_reserved(struct egress *egress, const json_t *message)
{
    uint64_t number = (uint64_t)json_integer_value(json_object_get(message, "machine"));
    uint64_t ticket = (uint64_t)json_integer_value(json_object_get(message, "ticket"));
    uint64_t reserved = (uint64_t)json_integer_value(json_object_get(message, "reserved"));
    const char *text = json_string_value(json_object_get(message, "refusal"));
    struct llm_exchange *exchange = exchange_find(egress, number, ticket);

    if (!exchange) { /* the client has gone meanwhile; nothing was sent */
        if (reserved > 0)
            control_send(egress,
                         json_pack("{s:s, s:I, s:I, s:i, s:i, s:i, s:i}", "do", "llm-settle",
                                   "machine", (json_int_t)number, "reserved", (json_int_t)reserved,
                                   "input", 0, "cacheRead", 0, "cacheWrite", 0, "output", 0));
        return;
    }
    exchange->connection->deadline_ms = 0;
    exchange->reserved = reserved;
    if (reserved > 0)
        llm_server_start(exchange);
    else
        llm_refuse(exchange, text ? 429 : 503, text ? text : "the budget cannot be recorded",
                   (uint64_t)json_integer_value(json_object_get(message, "retry")));
}
