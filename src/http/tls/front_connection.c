// SPDX-License-Identifier: Apache-2.0
/* One connection of the TLS front: its handshake, what passes in both directions, its end. */
#include <errno.h>
#include <linux/sockios.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/xalloc.h"
#include "http/limits.h"
#include "http/tls/front_internal.h"

enum {
    CLOSING_MS = 2000, /* for the client to close after us */
    ROUNDS = 8,        /* buffers that one connection passes before the next one's turn */
    LATE_BYTES = CONNECTION_LATE_MS / 1000 * CONNECTION_BYTES_PER_S,
};

static void open_add(struct front_connection *connection)
{
    struct tls_front *front = connection->loop->front;
    lock_scope(&front->lock);

    connection->next_open = front->open;
    connection->slot_open = &front->open;
    if (front->open)
        front->open->slot_open = &connection->next_open;
    front->open = connection;
}

/* Returns whether the connection is to be reset. */
static bool open_remove(struct front_connection *connection)
{
    struct tls_front *front = connection->loop->front;
    lock_scope(&front->lock);

    if (connection->slot_open) {
        *connection->slot_open = connection->next_open;
        if (connection->next_open)
            connection->next_open->slot_open = connection->slot_open;
        connection->slot_open = NULL;
    }
    return connection->is_reset;
}

void front_connection_free(struct front_connection *connection)
{
    const struct linger at_once = { .l_onoff = 1 };
    bool is_unread = connection->stage == STAGE_CLOSING && connection->wants_write;

    if (open_remove(connection) || connection->is_late || is_unread)
        (void)setsockopt(connection->outer.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    *connection->slot = connection->next;
    if (connection->next)
        connection->next->slot = connection->slot;
    SSL_free(connection->ssl);
    (void)fd_close(connection->outer.fd);
    (void)fd_close(connection->inner.fd);
    free(connection->up.data);
    free(connection->down.data);
    free(connection);
}

/* The inner socket is not watched for nothing: if the server has closed its end, epoll would report
 * that again and again. */
static void side_watch(struct front_connection *connection, struct side *side, uint32_t mask)
{
    struct epoll_event event = { .events = mask, .data.ptr = side };
    bool is_wanted = mask != 0 || side == &connection->outer;
    int operation = !is_wanted ? EPOLL_CTL_DEL : side->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (side->is_watched ? is_wanted && side->mask == mask : !is_wanted)
        return;
    if (epoll_ctl(connection->loop->epoll_fd, operation, side->fd, &event) < 0)
        connection->is_dead = true;
    side->is_watched = is_wanted;
    side->mask = mask;
}

/* Handles a result of OpenSSL that is not success. Returns whether the connection goes on. */
static bool ssl_wait(struct front_connection *connection, int result)
{
    int why = SSL_get_error(connection->ssl, result);

    ERR_clear_error();
    if (why == SSL_ERROR_WANT_WRITE)
        connection->wants_write = true;
    else if (why == SSL_ERROR_ZERO_RETURN)
        connection->up.is_ended = true;
    else if (why != SSL_ERROR_WANT_READ)
        connection->is_dead = true;
    return !connection->is_dead;
}

static bool is_again(ssize_t result)
{
    return result < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Passes one buffer from the client to the server. Returns whether there was progress. */
static bool up_pass(struct front_connection *connection)
{
    struct pipe_half *up = &connection->up;
    ssize_t n;

    if (up->len == 0 && !up->is_ended) {
        int got = SSL_read(connection->ssl, up->data, TLS_FRONT_BUFFER);

        if (got <= 0 && (!ssl_wait(connection, got) || !up->is_ended))
            return false;
        up->at = 0;
        up->len = got > 0 ? (size_t)got : 0;
    }
    if (up->len > 0 && !up->is_shut) {
        n = send(connection->inner.fd, up->data + up->at, up->len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (is_again(n))
            return false;
        up->is_shut = n < 0; /* the server reads no more, but may still write */
        up->at += n < 0 ? 0 : (size_t)n;
        up->len -= n < 0 ? up->len : (size_t)n;
        return true;
    }
    if (up->is_ended && !up->is_shut) {
        up->is_shut = true;
        (void)shutdown(connection->inner.fd, SHUT_WR);
    }
    return false;
}

/* Passes one buffer from the server to the client. Returns whether there was progress. */
static bool down_pass(struct front_connection *connection)
{
    struct pipe_half *down = &connection->down;
    int sent;

    if (down->len == 0 && !down->is_ended) {
        ssize_t n = recv(connection->inner.fd, down->data, TLS_FRONT_BUFFER, MSG_DONTWAIT);

        if (is_again(n))
            return false;
        down->is_ended = n <= 0;
        down->at = 0;
        down->len = n > 0 ? (size_t)n : 0;
    }
    if (down->len == 0)
        return false;
    sent = SSL_write(connection->ssl, down->data + down->at, (int)down->len);
    if (sent <= 0) {
        (void)ssl_wait(connection, sent);
        return false;
    }
    down->at += (size_t)sent;
    down->len -= (size_t)sent;
    return true;
}

/* Says that everything was sent, once the socket has room for it: without this a client takes the
 * end for an attack. Then gives the client time to close, because closing a socket with unread
 * bytes would reset it. */
static void end_say(struct front_connection *connection)
{
    int said = SSL_shutdown(connection->ssl);

    connection->wants_write =
        said < 0 && SSL_get_error(connection->ssl, said) == SSL_ERROR_WANT_WRITE;
    ERR_clear_error();
    side_watch(connection, &connection->outer, EPOLLIN | (connection->wants_write ? EPOLLOUT : 0U));
    if (connection->wants_write)
        return;
    connection->deadline_ms = clock_after_ms(CLOSING_MS);
    (void)shutdown(connection->outer.fd, SHUT_WR);
}

static void connection_close(struct front_connection *connection)
{
    if (open_remove(connection)) {
        connection->is_dead = true;
        return;
    }
    connection->stage = STAGE_CLOSING;
    connection->deadline_ms = clock_after_ms(CONNECTION_LATE_MS);
    side_watch(connection, &connection->inner, 0);
    connection->inner.fd = fd_close(connection->inner.fd);
    end_say(connection);
}

static void connection_pass(struct front_connection *connection)
{
    struct pipe_half *up = &connection->up, *down = &connection->down;
    bool goes_up = true, goes_down = true;
    int rounds = 0;

    connection->wants_write = false;
    while ((goes_up || goes_down) && !connection->is_dead && rounds++ < ROUNDS) {
        goes_up = up_pass(connection);
        goes_down = !connection->is_dead && down_pass(connection);
    }
    if (connection->is_dead)
        return;
    if (down->is_ended && down->len == 0) {
        connection_close(connection);
        return;
    }
    /* After the last round the inner socket is watched for room, which it has: the next turn comes
     * even if OpenSSL still holds what epoll cannot see. */
    side_watch(connection, &connection->outer,
               (!up->is_shut && up->len == 0 && !up->is_ended ? EPOLLIN : 0U) |
                   (connection->wants_write ? EPOLLOUT : 0U));
    side_watch(connection, &connection->inner,
               (down->len == 0 ? EPOLLIN : 0U) |
                   ((up->len > 0 && !up->is_shut) || goes_up || goes_down ? EPOLLOUT : 0U));
}

/* Hands the server its end of the pair. */
static bool connection_open(struct front_connection *connection)
{
    const struct tls_front_options *options = &connection->loop->front->options;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return false;
    connection->inner.fd = pair[0];
    connection->server_fd = pair[1];
    connection->up.data = xcalloc(1, TLS_FRONT_BUFFER);
    connection->down.data = xcalloc(1, TLS_FRONT_BUFFER);
    connection->stage = STAGE_OPEN;
    connection->deadline_ms = CONNECTION_FOREVER;
    open_add(connection);
    return options->accept(options->context, connection->server_fd,
                           (const struct sockaddr *)&connection->address, connection->address_len);
}

void front_connection_shake(struct front_connection *connection)
{
    int done = SSL_accept(connection->ssl);

    connection->wants_write = false;
    if (done == 1) {
        connection->is_dead = !connection_open(connection);
        if (!connection->is_dead)
            connection_pass(connection);
        return;
    }
    if (ssl_wait(connection, done))
        side_watch(connection, &connection->outer, connection->wants_write ? EPOLLOUT : EPOLLIN);
    if (connection->up.is_ended)
        connection->is_dead = true;
}

/* Reads what the client still sends, until it closes. */
static void connection_discard(struct front_connection *connection)
{
    char rest[4096];
    ssize_t n = recv(connection->outer.fd, rest, sizeof(rest), MSG_DONTWAIT);

    connection->is_dead = n == 0 || (n < 0 && !is_again(n));
}

/* Returns the number of bytes from the server that the client has not taken. */
static size_t connection_left(const struct front_connection *connection)
{
    int outer = 0, inner = 0;

    (void)ioctl(connection->outer.fd, SIOCOUTQ, &outer);
    (void)ioctl(connection->inner.fd, FIONREAD, &inner);
    return (size_t)outer + (size_t)inner + connection->down.len;
}

void front_connection_check(struct front_connection *connection, uint64_t now_ms)
{
    struct pollfd inner = { .fd = connection->inner.fd };
    bool is_first = connection->deadline_ms == CONNECTION_FOREVER;
    size_t left;

    if (connection->stage != STAGE_OPEN || connection->is_dead)
        return;
    if (is_first
            ? connection->down.len == 0 || poll(&inner, 1, 0) != 1 || !(inner.revents & POLLHUP)
            : connection->deadline_ms > now_ms)
        return;
    left = connection_left(connection);
    if (!is_first && left + LATE_BYTES > connection->left) {
        connection->is_dead = connection->is_late = true;
        return;
    }
    connection->left = left;
    connection->deadline_ms = now_ms + CONNECTION_LATE_MS;
}

void front_side_handle(struct side *side, uint32_t events)
{
    struct front_connection *connection = side->connection;

    if (connection->is_dead)
        return;
    if (connection->stage == STAGE_HANDSHAKE)
        front_connection_shake(connection);
    else if (connection->stage == STAGE_OPEN)
        connection_pass(connection);
    else if (connection->wants_write && events & EPOLLOUT)
        end_say(connection);
    else
        connection_discard(connection);
    /* A side that is not watched for anything still reports that it has gone. */
    if (events & (EPOLLERR | EPOLLHUP) && side == &connection->outer)
        connection->is_dead = true;
}
