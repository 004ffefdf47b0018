// SPDX-License-Identifier: Apache-2.0
/* The side of an exchange to the provider: connect, TLS, the request, the reply. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "egress/llm/exchange.h"
#include "egress/tls/trust.h"

enum { CONNECT_MS = 10000, CHUNK_HEAD_SIZE = 24 };

static struct egress *egress_of(const struct llm_exchange *exchange)
{
    return exchange->connection->guest->egress;
}

void llm_server_close(struct llm_exchange *exchange)
{
    SSL_free(exchange->ssl);
    exchange->ssl = NULL;
    watch_close(egress_of(exchange), &exchange->connection->server.watch);
    exchange->connected = NULL;
    llm_table_unref(TAKE_PTR(exchange->connected_table));
}

/* --- bytes --- */

static ssize_t ssl_result(struct llm_exchange *exchange, int n)
{
    int error = n > 0 ? SSL_ERROR_NONE : SSL_get_error(exchange->ssl, n);

    ERR_clear_error();
    if (n > 0)
        return n;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        exchange->wants_write |= error == SSL_ERROR_WANT_WRITE;
        return -EAGAIN;
    }
    return error == SSL_ERROR_ZERO_RETURN ? 0 : -ECONNRESET;
}

static ssize_t server_write(struct llm_exchange *exchange, const char *data, size_t len)
{
    ssize_t n;

    if (exchange->ssl)
        return ssl_result(exchange,
                          SSL_write(exchange->ssl, data, (int)(len > 65536 ? 65536 : len)));
    n = send(exchange->connection->server.watch.fd, data, len, MSG_NOSIGNAL);
    return n < 0 ? -errno : n;
}

static ssize_t server_read(struct llm_exchange *exchange, char *data, size_t len)
{
    ssize_t n;

    if (exchange->ssl)
        return ssl_result(exchange, SSL_read(exchange->ssl, data, (int)len));
    n = recv(exchange->connection->server.watch.fd, data, len, 0);
    return n < 0 ? -errno : n;
}

/* --- the reply --- */

static struct llm_exchange *exchange_of(const http_parser *parser)
{
    return parser->data;
}

/* A server that sends back what it was asked would give the key to the sandbox. */
static int key_seen(struct llm_exchange *exchange)
{
    const struct llm_provider *provider = exchange->connected;

    exchange->has_key = true;
    report_leak(exchange->connection->guest,
                &(struct egress_leak){ .secret = provider->name,
                                       .host = provider->upstream->proxy.host,
                                       .port = provider->upstream->proxy.port,
                                       .where = "reply" });
    return -EACCES;
}

static int reply_field_end(struct llm_exchange *exchange)
{
    struct llm_field *field = &exchange->reply_field;
    const struct needles *needles = exchange->connected->needles;
    const char *value = field->value.len > 0 ? field->value.data : "";
    int r = 0;

    if (needles && needles_find(needles, value, strlen(value)) >= 0)
        return key_seen(exchange);
    if (strcasecmp(field->name, "content-type") == 0)
        exchange->usage.is_stream = strncasecmp(value, "text/event-stream", 17) == 0;
    if (field->name[0] && llm_reply_field_passes(field->name))
        r = buf_printf(&exchange->reply_fields, "%s: %s\r\n", field->name, value);
    field->name[0] = '\0';
    buf_clear(&field->value);
    return r;
}

static int field_name_add(struct llm_field *field, const char *data, size_t len)
{
    size_t used = strlen(field->name);

    if (used + len >= sizeof(field->name))
        return -1;
    memcpy(field->name + used, data, len);
    field->name[used + len] = '\0';
    return 0;
}

static int reply_name_take(http_parser *parser, const char *data, size_t len)
{
    struct llm_exchange *exchange = exchange_of(parser);

    if (exchange->reply_field.is_value && reply_field_end(exchange) < 0)
        return -1;
    exchange->reply_field.is_value = false;
    return field_name_add(&exchange->reply_field, data, len);
}

static int reply_value_take(http_parser *parser, const char *data, size_t len)
{
    struct llm_exchange *exchange = exchange_of(parser);

    exchange->reply_field.is_value = true;
    return buf_add(&exchange->reply_field.value, data, len) < 0 ? -1 : 0;
}

static int reply_head_end(http_parser *parser)
{
    struct llm_exchange *exchange = exchange_of(parser);
    struct buf *out = &exchange->to_client;
    bool has_length = parser->content_length != UINT64_MAX && !(parser->flags & F_CHUNKED);
    bool has_body = parser->status_code != 204 && parser->status_code != 304;
    int r = reply_field_end(exchange);

    if (parser->status_code < 200) { /* nothing that was asked for */
        buf_clear(&exchange->reply_fields);
        return 0;
    }
    exchange->reply_has_length = has_length || !has_body;
    if (r == 0)
        r = sieve_start(&exchange->sieve, exchange->connected->needles, (struct http_text){ "", 0 },
                        !exchange->reply_has_length && !exchange->is_old);
    if (r == 0)
        r = buf_printf(out, "HTTP/1.1 %u %s\r\n", parser->status_code,
                       http_status_str((enum http_status)parser->status_code));
    if (r == 0)
        r = buf_add(out, exchange->reply_fields.data ? exchange->reply_fields.data : "",
                    exchange->reply_fields.len);
    if (r == 0 && has_length)
        r = buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)parser->content_length);
    else if (r == 0 && has_body && !exchange->is_old)
        r = buf_add_str(out, "Transfer-Encoding: chunked\r\n");
    if (exchange->is_old && !exchange->reply_has_length)
        exchange->keeps_client = false;
    if (r == 0)
        r = buf_printf(out, "%s\r\n", exchange->keeps_client ? "" : "Connection: close\r\n");
    exchange->reply_is_begun = true;
    return r < 0 ? -1 : 0;
}

static int reply_body_take(http_parser *parser, const char *data, size_t len)
{
    struct llm_exchange *exchange = exchange_of(parser);
    int r;

    usage_reader_feed(&exchange->usage, data, len);
    exchange->reply_bytes += len;
    r = sieve_push(&exchange->sieve, data, len, &exchange->to_client);
    if (r == -EACCES)
        r = key_seen(exchange);
    return r < 0 ? -1 : 0;
}

static int reply_end(http_parser *parser)
{
    struct llm_exchange *exchange = exchange_of(parser);

    if (parser->status_code < 200)
        return 0;
    exchange->reply_is_whole = true;
    exchange->reply_keeps = http_should_keep_alive(parser);
    if (sieve_end(&exchange->sieve, &exchange->to_client) < 0)
        return -1;
    http_parser_pause(parser, 1);
    return 0;
}

static const http_parser_settings reply_settings = {
    .on_header_field = reply_name_take,
    .on_header_value = reply_value_take,
    .on_headers_complete = reply_head_end,
    .on_body = reply_body_take,
    .on_message_complete = reply_end,
};

/* --- the end --- */

/* A reply that has begun is cut, so that the client sees that bytes are missing. */
static void server_fail(struct llm_exchange *exchange, const char *what)
{
    bool is_begun = exchange->reply_is_begun;
    bool is_old = exchange->is_old && !exchange->reply_has_length;

    llm_server_close(exchange);
    if (is_begun) {
        llm_settle(exchange);
        /* The last chunk or bytes of the length are missing, which tells the client; a reset would
         * destroy what it has not read yet. */
        if (llm_client_flush(exchange))
            connection_end(exchange->connection, is_old, what);
        return;
    }
    exchange->reply_bytes = 0;
    llm_settle(exchange);
    llm_refuse(exchange, ERROR_PROVIDER, what, 0);
}

/* --- sending and receiving --- */

static void server_watch(struct llm_exchange *exchange)
{
    uint32_t events = 0;

    if (exchange->state == LLM_CONNECT)
        events = EPOLLOUT;
    else if (exchange->to_client.len < LLM_TO_CLIENT_FULL)
        events = EPOLLIN | EPOLLRDHUP; /* as when it is idle */
    if (exchange->wants_write || (exchange->state == LLM_SEND && !exchange->ssl))
        events |= EPOLLOUT;
    watch_set(egress_of(exchange), &exchange->connection->server.watch, events);
}

/* Returns 0, -EAGAIN or another -errno. */
static int request_send(struct llm_exchange *exchange)
{
    while (exchange->sent < exchange->to_server.len) {
        ssize_t n = server_write(exchange, exchange->to_server.data + exchange->sent,
                                 exchange->to_server.len - exchange->sent);

        if (n < 0)
            return (int)n;
        exchange->sent += (size_t)n;
        exchange->connection->active_ms = egress_of(exchange)->now_ms;
        exchange->connection->up.total += (uint64_t)n;
        exchange->connection->guest->egress->counters.bytes_out += (uint64_t)n;
    }
    if (exchange->state == LLM_SEND)
        exchange->sent_ms = egress_of(exchange)->now_ms;
    exchange->state = LLM_REPLY;
    if (!exchange->is_reused) /* it may have to be sent again */
        llm_request_drop(exchange);
    return 0;
}

/* Returns 1 when the reply is whole, 0 to wait, or -errno. */
static int reply_receive(struct llm_exchange *exchange)
{
    char data[LLM_READ_BYTES];

    while (exchange->to_client.len < LLM_TO_CLIENT_FULL) {
        ssize_t n = server_read(exchange, data, sizeof(data));
        size_t used;

        if (n == -EAGAIN || n == -EINTR)
            return 0;
        if (n < 0)
            return (int)n;
        exchange->connection->down.total += (uint64_t)n;
        exchange->connection->active_ms = egress_of(exchange)->now_ms;
        if (n > 0 && exchange->state == LLM_REPLY)
            llm_request_drop(exchange);
        egress_of(exchange)->counters.bytes_in += (uint64_t)n;
        used = http_parser_execute(&exchange->reply, &reply_settings, data, (size_t)n);
        if (exchange->reply_is_whole) {
            exchange->reply_keeps = exchange->reply_keeps && used == (size_t)n;
            return 1;
        }
        if (n == 0)
            return -ECONNRESET;
        if (used != (size_t)n)
            return -EBADMSG;
        if (!exchange->ssl && (size_t)n < sizeof(data)) /* there is no more */
            return 0;
    }
    return 0;
}

static void exchange_reply(struct llm_exchange *exchange)
{
    bool was_sending = exchange->state == LLM_SEND;
    int r = was_sending ? request_send(exchange) : 0;

    if (r == -EAGAIN || !was_sending) /* a reply takes longer than the end of its request */
        r = reply_receive(exchange);
    if (r == -ECONNRESET && exchange->is_reused && !exchange->reply_is_begun &&
        exchange->connection->down.total == exchange->down_before) {
        /* The provider has closed a connection that was idle, and has read nothing. */
        llm_server_close(exchange);
        exchange->sent = 0;
        llm_server_start(exchange);
        return;
    }
    if (r < 0 && exchange->has_key) {
        server_fail(exchange, "the reply of the provider has its key");
        return;
    }
    if (r < 0) {
        server_fail(exchange, "the provider has ended the connection before its reply was whole");
        return;
    }
    exchange->connection->guest->is_active = true;
    if (r > 0) {
        /* A provider that answers early waits for the rest of the request. */
        if (!exchange->reply_keeps || exchange->state == LLM_SEND)
            llm_server_close(exchange);
        llm_exchange_end(exchange);
        return;
    }
    if (llm_client_flush(exchange))
        server_watch(exchange);
}

/* --- connecting --- */

static bool tls_start(struct llm_exchange *exchange)
{
    const struct llm_provider *provider = exchange->connected;

    exchange->ssl = trust_connect(provider->trust, provider->upstream->proxy.host, true);
    if (!exchange->ssl) {
        server_fail(exchange, "TLS to the provider cannot be started");
        return false;
    }
    (void)SSL_set_fd(exchange->ssl, exchange->connection->server.watch.fd);
    exchange->state = LLM_HANDSHAKE;
    return true;
}

static void handshake_pump(struct llm_exchange *exchange)
{
    int n = SSL_connect(exchange->ssl);
    ssize_t r = ssl_result(exchange, n);
    long verified = SSL_get_verify_result(exchange->ssl);

    if (r == -EAGAIN) {
        server_watch(exchange);
        return;
    }
    if (n != 1) {
        server_fail(exchange, verified != X509_V_OK
                                  ? "the certificate of the provider is not valid"
                                  : "the provider does not complete the TLS handshake");
        return;
    }
    exchange->state = LLM_SEND;
    exchange->connection->deadline_ms = 0;
    exchange_reply(exchange);
}

static bool server_dial(struct llm_exchange *exchange)
{
    struct egress *egress = egress_of(exchange);
    const struct upstream *upstream = exchange->connected->upstream;
    struct watch *watch = &exchange->connection->server.watch;

    watch_close(egress, watch);
    while (exchange->address_next < upstream->address_count) {
        const struct net_address *address = &upstream->addresses[exchange->address_next++];
        struct sockaddr_storage to;
        socklen_t len;
        int fd = socket(address->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (fd < 0)
            return false;
        address_to_socket(address, upstream->proxy.port, &to, &len);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        if (connect(fd, (const struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS) {
            (void)fd_close(fd);
            continue;
        }
        watch->fd = fd;
        exchange->state = LLM_CONNECT;
        exchange->connection->deadline_ms = egress->now_ms + CONNECT_MS;
        server_watch(exchange);
        return true;
    }
    return false;
}

static void connect_pump(struct llm_exchange *exchange)
{
    int error = 0;
    socklen_t len = sizeof(error);

    (void)getsockopt(exchange->connection->server.watch.fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) {
        if (!server_dial(exchange))
            server_fail(exchange, "the provider cannot be reached");
        return;
    }
    if (exchange->connected->is_tls) {
        if (tls_start(exchange))
            handshake_pump(exchange);
        return;
    }
    exchange->state = LLM_SEND;
    exchange->connection->deadline_ms = 0;
    exchange_reply(exchange);
}

void llm_server_start(struct llm_exchange *exchange)
{
    const struct llm_provider *provider = &exchange->table->providers[exchange->model->provider];

    http_parser_init(&exchange->reply, HTTP_RESPONSE);
    exchange->reply.data = exchange;
    usage_reader_init(&exchange->usage, false);
    exchange->down_before = exchange->connection->down.total;
    if (exchange->connected != provider)
        llm_server_close(exchange);
    exchange->is_reused = exchange->connected != NULL;
    if (exchange->is_reused) {
        exchange->state = LLM_SEND;
        exchange_reply(exchange);
        return;
    }
    if (!upstream_is_known(provider->upstream)) {
        exchange->state = LLM_LOOKUP;
        return;
    }
    exchange->connected = provider;
    exchange->connected_table = llm_table_ref(exchange->table);
    exchange->address_next = 0;
    if (provider->is_tls && !provider->trust)
        server_fail(exchange, "the certificates of authorities of this host cannot be read");
    else if (!server_dial(exchange))
        server_fail(exchange, "the provider cannot be reached");
}

void llm_server_pump(struct llm_exchange *exchange)
{
    exchange->wants_write = false;
    if (exchange->state == LLM_CONNECT)
        connect_pump(exchange);
    else if (exchange->state == LLM_HANDSHAKE)
        handshake_pump(exchange);
    else if (exchange->state == LLM_SEND || exchange->state == LLM_REPLY)
        exchange_reply(exchange);
    else /* an idle provider has closed the connection, or says what nobody has asked */
        llm_server_close(exchange);
}
