// SPDX-License-Identifier: Apache-2.0
/* DNS over TCP, from the sandbox: each message has its length in front. */
#include <errno.h>
#include <sys/socket.h>

#include "egress/egress_internal.h"
#include "egress/resolver.h"

enum {
    QUERIES_MAX = 16, /* of one connection, under way */
    IDLE_MS = 10000,
};

/* Returns whether the buffer has a whole message, or one that is too long. */
static bool tcp_has_message(const struct buf *in)
{
    size_t len = in->len < 2 ? 0 : (size_t)(uint8_t)in->data[0] << 8 | (uint8_t)in->data[1];

    return in->len >= 2 && (len > DNS_UDP_MAX || in->len >= 2 + len);
}

static void tcp_watch(struct connection *connection)
{
    bool reads = !connection->client.is_eof && connection->guest->query_tokens > 0 &&
                 connection->dns_pending < QUERIES_MAX && connection->out.len < DNS_MESSAGE_MAX;

    watch_set(connection->guest->egress, &connection->client.watch,
              (reads ? EPOLLIN : 0U) | (connection->out.len > 0 ? EPOLLOUT : 0U));
}

/* Ends a connection that has nothing more to do. */
static void tcp_settle(struct connection *connection)
{
    if (connection->client.is_eof && connection->out.len == 0 && connection->dns_pending == 0 &&
        !tcp_has_message(&connection->in))
        connection_end(connection, false, NULL);
    else
        tcp_watch(connection);
}

/* Sends what waits. */
static void tcp_send(struct connection *connection)
{
    struct buf *out = &connection->out;
    ssize_t n = 0;

    if (out->len > 0)
        n = send(connection->client.watch.fd, out->data, out->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        connection_end(connection, true, NULL);
        return;
    }
    if (n > 0)
        buf_consume(out, (size_t)n);
    tcp_settle(connection);
}

void resolver_tcp_send(struct connection *connection, const struct buf *message)
{
    const uint8_t len[2] = { (uint8_t)(message->len >> 8), (uint8_t)message->len };

    /* A length without its message would make the rest of the stream unreadable. */
    if (buf_reserve(&connection->out, sizeof(len) + message->len) < 0) {
        connection_end(connection, true, NULL);
        return;
    }
    (void)buf_add(&connection->out, len, sizeof(len));
    (void)buf_add(&connection->out, message->data, message->len);
    tcp_send(connection);
}

/* Handles the whole messages in the buffer, each with its length in front. */
static void tcp_handle(struct connection *connection)
{
    const struct asker asker = { .guest = connection->guest, .connection = connection };
    struct buf *in = &connection->in;

    while (!connection->is_dead && tcp_has_message(in) && connection->guest->query_tokens > 0 &&
           connection->dns_pending < QUERIES_MAX && connection->out.len < DNS_MESSAGE_MAX) {
        size_t len = (size_t)(uint8_t)in->data[0] << 8 | (uint8_t)in->data[1];

        if (len > DNS_UDP_MAX) {
            connection_end(connection, true, NULL);
            return;
        }
        asker_handle(&asker, in->data + 2, len);
        if (!connection->is_dead)
            buf_consume(in, 2 + len);
    }
}

void resolver_tcp_advance(struct connection *connection)
{
    size_t before;

    if (connection->is_dead || connection->is_handled)
        return;
    connection->is_handled = true;
    do {
        tcp_send(connection);
        before = connection->in.len;
        tcp_handle(connection);
    } while (!connection->is_dead && connection->in.len != before);
    connection->is_handled = false;
    if (!connection->is_dead)
        tcp_settle(connection);
}

void resolver_tcp_ready(struct connection *connection)
{
    const size_t in_max = 2 + DNS_UDP_MAX; /* a whole message fits */
    struct buf *in = &connection->in;
    ssize_t n = 0;

    if (!connection->client.is_eof && in->len < in_max) {
        if (buf_reserve(in, in_max - in->len) < 0) {
            connection_end(connection, true, NULL);
            return;
        }
        n = recv(connection->client.watch.fd, in->data + in->len, in_max - in->len, MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            connection_end(connection, true, NULL);
            return;
        }
        connection->client.is_eof = n == 0;
    }
    if (n > 0) {
        in->len += (size_t)n;
        connection->deadline_ms = connection->guest->egress->now_ms + IDLE_MS;
    }
    resolver_tcp_advance(connection);
}
