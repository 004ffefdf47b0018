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
    REQUEST_MS = 120 * 1000, /* from the first byte of a request to its last */
    IDLE_MS = 600 * 1000,
    SHORTAGE_SECONDS = 5,
    PENDING_MAX = LLM_READ_BYTES,
    MS_PER_SECOND = 1000,
};

static struct egress *egress_of(const struct llm_exchange *exchange)
{
    return exchange->connection->guest->egress;
}

/* --- replies --- */

/* What a client sends before its turn stays in the socket. Few do, so the events change only when
 * one does. A request that is here already waits for the next turn of the loop: answered at once,
 * thousands of small ones would be calls within calls. */
void llm_client_watch(struct llm_exchange *exchange)
{
    bool has_next = exchange->state == LLM_IDLE && exchange->pending.len > 0;
    uint32_t events = EPOLLRDHUP;

    exchange->is_early &= exchange->state != LLM_IDLE;
    if (!exchange->is_early)
        events |= EPOLLIN;
    if (exchange->to_client.len > 0 || has_next)
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
    llm_client_watch(exchange);
    return true;
}

/* --- what is held of requests --- */

/* Counts bytes of a request that is not sent yet. Returns whether there is room for them: a sandbox
 * cannot use up the memory of holt-net, nor an owner all of the room. */
static bool held_add(struct llm_exchange *exchange, size_t len)
{
    struct guest *guest = exchange->connection->guest;
    struct egress *egress = guest->egress;

    if (guest->llm_held + len > LLM_HELD_GUEST_MAX ||
        !owner_may_use(egress, guest->owner->llm_held, egress->llm_held, LLM_HELD_MAX))
        return false;
    exchange->held += len;
    guest->llm_held += len;
    guest->owner->llm_held += len;
    egress->llm_held += len;
    return true;
}

static void body_drop(struct llm_exchange *exchange)
{
    buf_done(&exchange->body);
    exchange->body = (struct buf)BUF_INIT(LLM_BODY_MAX);
}

void llm_request_drop(struct llm_exchange *exchange)
{
    struct guest *guest = exchange->connection->guest;

    body_drop(exchange);
    buf_done(&exchange->to_server);
    exchange->to_server = (struct buf)BUF_INIT(LLM_BODY_MAX + LLM_HEADERS_MAX * 2);
    guest->llm_held -= exchange->held;
    guest->owner->llm_held -= exchange->held;
    guest->egress->llm_held -= exchange->held;
    exchange->held = 0;
}

static void fields_drop(struct llm_exchange *exchange)
{
    buf_done(&exchange->fields);
    buf_done(&exchange->field.value);
    exchange->fields = exchange->field.value = (struct buf)BUF_INIT(LLM_HEADERS_MAX);
}

static void request_begin(struct llm_exchange *exchange)
{
    http_parser_init(&exchange->request, HTTP_REQUEST);
    exchange->request.data = exchange;
    exchange->target[0] = exchange->token[0] = '\0';
    exchange->is_anthropic = exchange->is_too_long = exchange->is_short = false;
    exchange->drops_body = exchange->expects = false;
    exchange->keeps_client = true;
    fields_drop(exchange);
    buf_done(&exchange->reply_fields);
    exchange->reply_fields = (struct buf)BUF_INIT(LLM_HEADERS_MAX);
    llm_request_drop(exchange);
    exchange->call = CALL_UNKNOWN;
    exchange->reply_is_begun = exchange->reply_is_whole = exchange->has_key = false;
    sieve_done(&exchange->sieve);
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
    (void)llm_client_flush(exchange);
}

void llm_refuse(struct llm_exchange *exchange, enum request_error error, const char *message,
                uint64_t retry_seconds)
{
    if (request_put_error(exchange->kind, error, message, retry_seconds, &exchange->to_client) < 0)
        connection_end(exchange->connection, true, "out of memory");
    else
        llm_exchange_end(exchange);
}

/* --- the head of a request --- */

static struct llm_exchange *exchange_of(const http_parser *parser)
{
    return parser->data;
}

/* The parser also takes tabs and other bytes that end a target for some servers. */
static bool target_is_plain(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (data[i] <= ' ' || data[i] > '~' || data[i] == '#')
            return false;
    return true;
}

static int target_take(http_parser *parser, const char *data, size_t len)
{
    struct llm_exchange *exchange = exchange_of(parser);
    size_t used = strlen(exchange->target);

    if (used + len >= sizeof(exchange->target) || !target_is_plain(data, len))
        return -1;
    memcpy(exchange->target + used, data, len);
    exchange->target[used + len] = '\0';
    return 0;
}

static void token_take(struct llm_exchange *exchange, const char *value)
{
    static const char bearer[] = "Bearer ";

    if (strncasecmp(value, bearer, sizeof(bearer) - 1) == 0)
        value += sizeof(bearer) - 1;
    if (exchange->token[0] == '\0')
        (void)snprintf(exchange->token, sizeof(exchange->token), "%s", value);
}

/* The parser lets names have blanks, which servers pass over, or read as the rest of the line
 * before. */
static int request_field_end(struct llm_exchange *exchange)
{
    struct llm_field *field = &exchange->field;
    const char *value = field->value.len > 0 ? field->value.data : "";
    int r = 0;

    if (strchr(field->name, ' '))
        return -1;
    if (strcasecmp(field->name, "x-api-key") == 0 || strcasecmp(field->name, "authorization") == 0)
        token_take(exchange, value);
    if (strcasecmp(field->name, "anthropic-version") == 0)
        exchange->is_anthropic = true;
    if (strcasecmp(field->name, "expect") == 0)
        exchange->expects = strcasecmp(value, "100-continue") == 0;
    if (field->name[0] && llm_request_field_passes(field->name))
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
    if (exchange->is_short)
        return 0;
    return buf_add(&exchange->field.value, data, len) < 0 ? -1 : 0;
}

static bool token_is_right(const struct llm_exchange *exchange)
{
    const char *token = exchange->connection->guest->llm_token;
    size_t len = token ? strlen(token) : 0;

    return len > 0 && strlen(exchange->token) == len &&
           CRYPTO_memcmp(token, exchange->token, len) == 0;
}

static int head_end(http_parser *parser)
{
    struct llm_exchange *exchange = exchange_of(parser);

    if (request_field_end(exchange) < 0)
        return -1;
    exchange->is_old = parser->http_major == 1 && parser->http_minor == 0;
    exchange->call = request_classify(http_method_str((enum http_method)parser->method),
                                      exchange->target, exchange->is_anthropic, &exchange->kind);
    request_body_init(&exchange->scan, exchange->call);
    exchange->drops_body = exchange->call < CALL_COUNT || !token_is_right(exchange);
    if (parser->content_length != UINT64_MAX && parser->content_length > LLM_BODY_MAX)
        exchange->is_too_long = true;
    if (exchange->expects && !exchange->drops_body && !exchange->is_too_long)
        return buf_add_str(&exchange->to_client, "HTTP/1.1 100 Continue\r\n\r\n") < 0 ? -1 : 0;
    return 0;
}

/* What is refused is read and dropped, so that the client reads the reply. */
static int body_take(http_parser *parser, const char *data, size_t len)
{
    struct llm_exchange *exchange = exchange_of(parser);

    if (exchange->drops_body || exchange->is_too_long || exchange->is_short)
        return 0;
    if (buf_add(&exchange->body, data, len) < 0) {
        exchange->is_too_long = true;
        body_drop(exchange);
        return 0;
    }
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
        r = buf_printf(out,
                       "Content-Type: application/json\r\nAccept-Encoding: identity\r\n"
                       "Content-Length: %zu\r\n\r\n",
                       length);
    if (r == 0)
        r = request_body_rename(&exchange->scan, exchange->body.data, exchange->body.len,
                                exchange->model->upstream, out);
    body_drop(exchange);
    fields_drop(exchange);
    return r;
}

static bool has_key(const struct llm_exchange *exchange)
{
    return exchange->table->providers[exchange->model->provider].key[0] != '\0';
}

static void request_reserve(struct llm_exchange *exchange)
{
    uint64_t choices = exchange->scan.choices > 0 ? exchange->scan.choices : 1;

    exchange->input = request_estimate_input(exchange->body.len);
    exchange->output = choices * (exchange->scan.max_output > 0 ? exchange->scan.max_output
                                                                : exchange->model->max_output);
    if (exchange->call == CALL_COUNT)
        exchange->input = exchange->output = 0;
    if (request_write(exchange) < 0)
        llm_refuse(exchange, ERROR_SIZE, "the request is too large", 0);
    else
        llm_reserve(exchange);
}

/* A whole request that runs a model. */
static void run_handle(struct llm_exchange *exchange)
{
    char message[MODEL_NAME_MAX + 80];

    exchange->model = llm_model_find(exchange, exchange->scan.model);
    (void)snprintf(message, sizeof(message), "this sandbox has no model '%s'",
                   exchange->scan.model);
    if (!exchange->model)
        llm_refuse(exchange, ERROR_MODEL, message, 0);
    else if (has_key(exchange))
        request_reserve(exchange);
    else
        llm_refuse(exchange, ERROR_SHORTAGE,
                   "the provider of this model has no key: its secret is missing", 0);
}

static void body_handle(struct llm_exchange *exchange)
{
    if (exchange->is_too_long)
        llm_refuse(exchange, ERROR_SIZE, "the request is too large", 0);
    else if (!request_body_is_whole(&exchange->scan) || exchange->scan.scan.has_odd_name)
        llm_refuse(exchange, ERROR_MALFORMED, "the body is not a JSON object that names one model",
                   0);
    else if (exchange->scan.is_background)
        llm_refuse(exchange, ERROR_MALFORMED,
                   "this gateway has no replies in the background: leave out \"background\"", 0);
    else
        run_handle(exchange);
}

static void request_handle(struct llm_exchange *exchange)
{
    struct egress *egress = egress_of(exchange);

    exchange->table = egress->llm ? llm_table_ref(egress->llm) : NULL;
    if (exchange->is_short) {
        llm_refuse(exchange, ERROR_SHORTAGE,
                   "too many large requests at once: send this one again later", SHORTAGE_SECONDS);
    } else if (exchange->call == CALL_PROBE) {
        (void)buf_add_str(&exchange->to_client, "HTTP/1.1 200 OK\r\n\r\n");
        llm_exchange_end(exchange);
    } else if (!token_is_right(exchange)) {
        llm_refuse(exchange, ERROR_KEY, "invalid key: use the one in this sandbox's environment",
                   0);
    } else if (!exchange->table || exchange->call == CALL_UNKNOWN) {
        llm_refuse(exchange, ERROR_PATH, "this gateway has no such path", 0);
    } else if (exchange->call == CALL_MODELS) {
        llm_answer_list(exchange);
    } else if (exchange->call == CALL_ENTRY) {
        llm_answer_entry(exchange);
    } else {
        body_handle(exchange);
    }
}

/* The rest of such a connection cannot be understood. */
static void request_fail(struct llm_exchange *exchange)
{
    exchange->keeps_client = false;
    (void)request_put_error(exchange->kind, ERROR_MALFORMED, "malformed HTTP request", 0,
                            &exchange->to_client);
    (void)llm_client_flush(exchange);
}

static void request_feed(struct llm_exchange *exchange, const char *data, size_t len)
{
    enum http_errno error;
    size_t used;

    if (!exchange->is_short && !exchange->drops_body && !held_add(exchange, len)) {
        exchange->is_short = true;
        body_drop(exchange);
    }
    used = http_parser_execute(&exchange->request, &request_settings, data, len);
    error = HTTP_PARSER_ERRNO(&exchange->request);
    if (error == HPE_PAUSED) { /* whole; the bytes after it wait */
        exchange->connection->deadline_ms = 0;
        if (used < len && buf_add(&exchange->pending, data + used, len - used) < 0)
            connection_end(exchange->connection, true, "out of memory");
        else
            request_handle(exchange);
    } else if (error != HPE_OK || exchange->request.upgrade) {
        request_fail(exchange);
    } else if (exchange->to_client.len > 0) {
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
    exchange->to_client = (struct buf)BUF_INIT(LLM_TO_CLIENT_MAX);
    connection->llm = exchange;
    connection->deadline_ms = 0;
    connection->protocol = NET_HTTP;
    connection->is_allowed = true;
    (void)snprintf(connection->name, sizeof(connection->name), "llm.holt");
    (void)snprintf(connection->rule, sizeof(connection->rule), "models (sandbox)");
    request_begin(exchange);
    llm_client_watch(exchange);
}

/* The client is ready while its request is under way. */
static void busy_ready(struct llm_exchange *exchange, uint32_t events)
{
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        connection_end(exchange->connection, true, "closed by the sandbox");
        return;
    }
    if (events & EPOLLIN) {
        exchange->is_early = true;
        llm_client_watch(exchange);
    }
    if ((events & EPOLLOUT) && exchange->state == LLM_REPLY) /* there may be room again */
        llm_server_pump(exchange);
}

void llm_client_ready(struct connection *connection, uint32_t events)
{
    struct llm_exchange *exchange = connection->llm;
    char data[LLM_READ_BYTES];
    ssize_t n;

    if ((events & EPOLLOUT) && !llm_client_flush(exchange))
        return;
    if (exchange->state != LLM_IDLE) {
        busy_ready(exchange, events);
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
    if (connection->deadline_ms == 0)
        connection->deadline_ms = connection->active_ms + REQUEST_MS;
    request_feed(exchange, data, (size_t)n);
}

void llm_server_ready(struct connection *connection)
{
    llm_server_pump(connection->llm);
}

/* A deadline has passed: of the request, of holtd or of the provider. */
static void deadline_end(struct llm_exchange *exchange)
{
    llm_server_close(exchange);
    llm_settle(exchange);
    exchange->keeps_client = false; /* an answer of holtd may still come for the old ticket */
    if (exchange->state == LLM_IDLE)
        llm_refuse(exchange, ERROR_LATE, "the request was not whole in time", 0);
    else if (exchange->state == LLM_RESERVE)
        llm_refuse(exchange, ERROR_SHORTAGE, "the budget could not be checked in time", 0);
    else
        llm_refuse(exchange, ERROR_PROVIDER, "the provider does not answer in time", 0);
}

void llm_tick(struct connection *connection)
{
    struct llm_exchange *exchange = connection->llm;
    const struct egress *egress = egress_of(exchange);
    uint64_t idle_ms = egress->now_ms - connection->active_ms;

    if (exchange->state == LLM_LOOKUP)
        llm_server_start(exchange);
    else if (connection->deadline_ms > 0 && egress->now_ms >= connection->deadline_ms)
        deadline_end(exchange);
    else if (exchange->state == LLM_IDLE && idle_ms >= IDLE_MS)
        connection_end(connection, false, "idle for too long");
    else if (idle_ms >= (uint64_t)egress->bounds.idle_seconds * MS_PER_SECOND)
        connection_end(connection, true, "idle for too long");
}

void llm_forget(struct connection *connection)
{
    struct llm_exchange *exchange = connection->llm;

    if (!exchange)
        return;
    llm_settle(exchange);
    llm_server_close(exchange);
    llm_request_drop(exchange);
}

void llm_free(struct connection *connection)
{
    struct llm_exchange *exchange = TAKE_PTR(connection->llm);

    if (!exchange)
        return;
    llm_table_unref(exchange->table);
    sieve_done(&exchange->sieve);
    buf_done(&exchange->fields);
    buf_done(&exchange->reply_fields);
    buf_done(&exchange->field.value);
    buf_done(&exchange->reply_field.value);
    buf_done(&exchange->pending);
    buf_done(&exchange->to_server);
    buf_done(&exchange->to_client);
    free(exchange);
}
