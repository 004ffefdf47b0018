// SPDX-License-Identifier: Apache-2.0
#include "egress/http/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "egress/http/session_internal.h"
#include "egress/tls/authority.h"
#include "egress/tls/trust.h"

enum {
    ROUNDS = 64,
    FAREWELL_MS = 2000,
    HEAD_MS = 10000,
    CONNECT_MS = 10000,
    GUEST_SESSIONS_MAX = 256,
    SESSIONS_MAX = 8192,
};

bool session_is_needed(const struct guest *guest, const char *name, uint16_t port)
{
    return guest->egress->authority && name[0] &&
           (broker_secrets_name(guest->secrets, name, port) ||
            net_policy_reads_https(&guest->policy, name, port));
}

static void wiped_done(struct buf *buf)
{
    if (buf->data)
        explicit_bzero(buf->data, buf->cap);
    buf_done(buf);
}

int session_start(struct connection *connection)
{
    struct guest *guest = connection->guest;
    struct egress *egress = guest->egress;
    struct session *session;

    if (guest->sessions >= GUEST_SESSIONS_MAX ||
        !owner_may_use(egress, guest->owner->sessions, egress->sessions, SESSIONS_MAX))
        return -EMFILE;
    session = xcalloc(1, sizeof(*session));
    if (channel_open(&session->client, authority_accept(egress->authority, connection->name),
                     connection->client.watch.fd, connection->in.data, connection->in.len) < 0) {
        free(session);
        return -ENOMEM;
    }
    session->connection = connection;
    session->server.fd = -EBADF;
    session->from_client = session->from_server = (struct buf)BUF_INIT((size_t)2 * SESSION_BUFFER);
    session->to_server = session->to_client = (struct buf)BUF_INIT((size_t)4 * SESSION_BUFFER);
    session->upload = (struct buf)BUF_INIT((size_t)2 * SESSION_BUFFER);
    rewrite_init(&session->rewrite);
    connection->session = session;
    connection->deadline_ms = egress->now_ms + HEAD_MS;
    buf_done(&connection->in);
    connection->cleared = 0;
    guest->sessions++;
    guest->owner->sessions++;
    egress->sessions++;
    return 0;
}

static void server_drop(struct session *session)
{
    struct connection *connection = session->connection;

    channel_close(&session->server);
    h2_free(TAKE_PTR(session->h2));
    buf_clear(&session->from_server);
    buf_clear(&session->to_server);
    watch_close(connection->guest->egress, &connection->server.watch);
}

void session_leave(struct session *session)
{
    struct guest *guest = session->connection->guest;

    guest->sessions--;
    guest->owner->sessions--;
    guest->egress->sessions--;
}

void session_free(struct session *session)
{
    if (!session)
        return;
    channel_close(&session->client);
    channel_close(&session->server);
    h2_free(session->h2);
    wiped_done(&session->from_client);
    wiped_done(&session->to_server);
    wiped_done(&session->from_server);
    wiped_done(&session->to_client);
    wiped_done(&session->upload);
    wiped_done(&session->collected);
    sieve_done(&session->up_sieve);
    sieve_done(&session->down_sieve);
    rewrite_done(&session->rewrite);
    broker_secrets_unref(session->secrets);
    free(session);
}

int session_refuse(struct session *session, unsigned status, const char *reason)
{
    struct connection *connection = session->connection;
    cleanup_with(buf_done) struct buf page = BUF_INIT(2048);

    connection->guest->egress->counters.denied++;
    connection->is_allowed = false;
    (void)snprintf(connection->rule, sizeof(connection->rule), "%s", reason);
    (void)buf_printf(&page, "Holt: the request to '%s' was refused: %s\n", connection->name,
                     reason);
    if (session->phase < SESSION_IDLE || session->has_reply_head ||
        buf_printf(&session->to_client,
                   "HTTP/1.1 %u Refused\r\nContent-Type: text/plain; charset=utf-8\r\n"
                   "X-Holt-Reason: policy\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                   status, page.len,
                   session->head.method[0] && strcmp(session->head.method, "HEAD") == 0
                       ? ""
                       : page.data) < 0) {
        connection_end(connection, true, "denied");
        return -EACCES;
    }
    server_drop(session);
    session->phase = SESSION_CLOSE;
    return -EACCES;
}

int session_leak(struct session *session, size_t secret, const char *where, const char *reason)
{
    const struct connection *connection = session->connection;
    const struct broker_secret *seen = &session->secrets->items[secret];

    report_leak(connection->guest, &(struct egress_leak){ .secret = seen->name,
                                                          .id = seen->id,
                                                          .host = connection->name,
                                                          .port = connection->port,
                                                          .where = where });
    return session_refuse(session, 403, reason);
}

long session_read(struct channel *channel, struct buf *into)
{
    long n;

    if (buf_reserve(into, CHANNEL_RECORD_MAX) < 0)
        return -ENOMEM;
    n = channel_read(channel, into->data + into->len, CHANNEL_RECORD_MAX);
    if (n > 0)
        into->len += (size_t)n;
    return n;
}

/* --- steps --- */

static int shake_step(struct session *session)
{
    char how[160];
    const char *why = "";
    int r = channel_shake(&session->client, &why);

    if (r < 0) {
        (void)snprintf(how, sizeof(how), "TLS with the sandbox: %s", why);
        connection_end(session->connection, true, how);
        return -EACCES;
    }
    if (r > 0)
        session->phase = SESSION_IDLE;
    return r;
}

/* The server is connected; its certificate is checked in the handshake. */
static int server_open(struct session *session)
{
    struct connection *connection = session->connection;
    struct guest *guest = connection->guest;
    struct egress *egress = guest->egress;
    struct trust **trust = guest->ca_bundle ? &guest->trust : &egress->trust;

    if (!*trust)
        *trust = trust_new(egress->trust_fd, guest->ca_bundle);
    if (!*trust)
        return session_refuse(session, 502, "the host has no certificate authorities");
    if (channel_open(&session->server, trust_connect(*trust, connection->name, session->is_upgrade),
                     connection->server.watch.fd, NULL, 0) < 0)
        return session_refuse(session, 502, "out of memory");
    session->phase = SESSION_CONNECT;
    connection->deadline_ms = egress->now_ms + CONNECT_MS;
    return 1;
}

static int connect_step(struct session *session)
{
    struct connection *connection = session->connection;
    char reason[200];
    const char *why = "";
    int r;

    if (!session->server.ssl)
        return server_open(session);
    r = channel_shake(&session->server, &why);
    if (r == 0)
        return 0;
    if (r < 0) {
        (void)snprintf(reason, sizeof(reason), "TLS with the server: %s", why);
        connection->guest->egress->counters.failed_dials++;
        return session_refuse(session, 502, reason);
    }
    connection->deadline_ms = 0;
    if (channel_is_http2(&session->server)) {
        session->h2 = h2_new();
        if (!session->h2 || session->is_upgrade)
            return session_refuse(session, 502, "the server speaks HTTP/2 only");
    }
    if (session_request_send(session) < 0)
        return session_refuse(session, 502, "the request cannot be sent");
    session->phase = SESSION_EXCHANGE;
    return 1;
}

/* Sends what is buffered. Returns 1 if something went, 0, or -errno. */
static long buffer_flush(struct channel *channel, struct buf *from, uint64_t *total)
{
    long sent = 0;

    while (from->len > 0 && channel->ssl) {
        long n = channel_write(channel, from->data, from->len);

        if (n <= 0)
            return n < 0 ? n : sent > 0;
        buf_consume(from, (size_t)n);
        *total += (uint64_t)n;
        sent += n;
    }
    return sent > 0;
}

/* The exchange is over: the next request may come, on the same server's connection if it can. */
static int exchange_end(struct session *session)
{
    if (session->closes || !session->is_request_over) {
        server_drop(session);
        session->phase = SESSION_CLOSE;
        return 1;
    }
    if (session->server_closes || (session->h2 && !h2_is_usable(session->h2)))
        server_drop(session);
    session->phase = SESSION_IDLE;
    return 1;
}

static int exchange_step(struct session *session)
{
    int up = session->is_request_over ? 0 : session_upload_step(session), down;

    if (up < 0)
        return up;
    if (session->h2 && h2_send(session->h2, &session->to_server, SESSION_BUFFER) < 0)
        return session_refuse(session, 502, "the server's HTTP/2 is malformed");
    down = session_reply_step(session);
    if (down < 0)
        return down;
    if (session->phase == SESSION_EXCHANGE && session->is_reply_over && session->to_client.len == 0)
        return exchange_end(session);
    return up > 0 || down > 0;
}

/* The client has got the last bytes: it closes. */
static int close_step(struct session *session)
{
    struct connection *connection = session->connection;

    if (session->to_client.len > 0)
        return 0;
    channel_shut(&session->client);
    (void)shutdown(connection->client.watch.fd, SHUT_WR);
    connection->deadline_ms = connection->guest->egress->now_ms + FAREWELL_MS;
    connection->state = CONNECTION_FAREWELL;
    watch_set(connection->guest->egress, &connection->client.watch, EPOLLIN);
    return -EACCES;
}

/* Between requests a server may close: the next request then dials anew. */
static int idle_step(struct session *session)
{
    if (session->server.ssl && !session->server.is_dry) {
        long n = session_read(&session->server, &session->from_server);

        if (n > 0 && session->h2 &&
            h2_receive(session->h2, session->from_server.data, session->from_server.len) == 0 &&
            h2_send(session->h2, &session->to_server, SESSION_BUFFER) == 0)
            buf_clear(&session->from_server);
        else if (n != 0)
            server_drop(session);
    }
    return session_request_step(session);
}

static int session_step(struct session *session)
{
    switch (session->phase) {
    case SESSION_SHAKE:
        return shake_step(session);
    case SESSION_IDLE:
        return idle_step(session);
    case SESSION_COLLECT:
        return session_collect_step(session);
    case SESSION_CONNECT:
        return connect_step(session);
    case SESSION_EXCHANGE:
        return exchange_step(session);
    case SESSION_TUNNEL:
        return session_tunnel_step(session);
    case SESSION_CLOSE:
        return close_step(session);
    case SESSION_DIAL:
        break;
    }
    return 0;
}

static void session_watch(struct session *session)
{
    struct connection *connection = session->connection;
    struct egress *egress = connection->guest->egress;
    enum session_phase phase = session->phase;
    /* It is watched on while it is silent: one change of the loop less for each request. */
    bool reads_client = phase <= SESSION_COLLECT || !session->is_client_early ||
                        (phase == SESSION_TUNNEL && session->to_server.len < SESSION_BUFFER) ||
                        (phase == SESSION_EXCHANGE && !session->is_request_over &&
                         session->to_server.len + session->upload.len < SESSION_BUFFER);
    bool reads_server = phase == SESSION_IDLE || phase == SESSION_CONNECT ||
                        session->to_client.len < SESSION_BUFFER;

    if (phase == SESSION_DIAL)
        return;
    watch_set(egress, &connection->client.watch,
              (reads_client ? EPOLLIN : 0U) | EPOLLRDHUP |
                  (session->client.is_full || session->is_busy ? EPOLLOUT : 0U));
    watch_set(egress, &connection->server.watch,
              (reads_server ? EPOLLIN : 0U) |
                  (session->server.is_full || session->is_busy ? EPOLLOUT : 0U));
}

void session_pump(struct connection *connection)
{
    struct session *session = connection->session;
    uint64_t up_before = connection->up.total, down_before = connection->down.total;
    long r = 1;

    if (session->phase == SESSION_DIAL && connection->state == CONNECTION_RELAY)
        session->phase = SESSION_CONNECT;
    for (int i = 0; i < ROUNDS && r > 0 && (i == 0 || !slice_is_over(connection->guest->egress));
         i++) {
        r = session_step(session);
        if (connection->is_dead)
            return;
        if (r < 0 && session->phase == SESSION_CLOSE && connection->state == CONNECTION_RELAY)
            r = 1;
        /* Head and body go in one record where both are there. */
        if (connection->state == CONNECTION_RELAY &&
            (r == 0 || session->to_server.len >= CHANNEL_RECORD_MAX ||
             session->to_client.len >= CHANNEL_RECORD_MAX)) {
            long up = buffer_flush(&session->server, &session->to_server, &connection->up.total);
            long down =
                buffer_flush(&session->client, &session->to_client, &connection->down.total);

            if (down < 0) {
                connection_end(connection, true, "reset");
                return;
            }
            if (up < 0) /* its reply may still be there */
                buf_clear(&session->to_server);
            r = r > 0 || up > 0 || down > 0;
        }
    }
    session->is_busy = r > 0; /* others have their turn; a socket that can be written wakes it */
    if (!relay_note(connection, up_before, down_before))
        return;
    if (connection->state == CONNECTION_RELAY)
        session_watch(session);
}

void session_ready(struct connection *connection, bool is_client, uint32_t events)
{
    struct session *session = connection->session;

    channel_wake(is_client ? &session->client : &session->server);
    session->is_client_early |= is_client && (events & EPOLLIN);
    if (is_client && (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) && !(events & EPOLLIN)) {
        connection_end(connection, session->phase != SESSION_IDLE, "closed");
        return;
    }
    session_pump(connection);
}
