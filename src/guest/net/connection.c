// SPDX-License-Identifier: Apache-2.0
#include "guest/net/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "guest/guest.h"
#include "guest/ring.h"
#include "wire/message.h"

/* Limits the number of acknowledgement frames. */
enum { ACK_EVERY = FRAME_CONN_WINDOW / 4 };

struct connection {
    struct connection *next; /* in old_connections */
    uint32_t number;
    uint16_t port;
    struct watch watch; /* fd < 0: closed */
    bool is_ipv6;       /* 127.0.0.1 refused the connection */
    bool is_connected;
    bool is_connected_sent;

    struct ring out; /* from the socket to the daemon */
    uint64_t sent;
    bool is_eof_read; /* the socket has returned end of file */
    bool is_eof_sent;

    struct ring in;    /* from the daemon to the socket */
    uint64_t in_acked; /* offset acknowledged to the daemon */
    bool is_in_over;   /* the daemon has sent its end of file */
    bool is_shut;      /* and the socket has been shut down for writing */

    int broken; /* errno of a connection that ended early */
    bool is_end_sent;
    bool is_ended_by_daemon; /* the daemon has sent its last frame (FRAME_CONN_END) */
};

/* A reset tells the peer that the connection did not end properly. */
static void close_socket(struct guest *guest, struct connection *connection, bool is_reset)
{
    const struct linger at_once = { .l_onoff = 1 };

    watch_set(guest->epoll_fd, &connection->watch, 0);
    if (is_reset && connection->watch.fd >= 0)
        (void)setsockopt(connection->watch.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    connection->watch.fd = fd_close(connection->watch.fd);
    ring_done(&connection->in);
}

/* Ends the connection early. Data that was read is still sent. */
static void connection_abort(struct guest *guest, struct connection *connection, int r)
{
    connection->broken = -r;
    close_socket(guest, connection, true);
}

static void connection_forget(struct guest *guest, struct connection *connection)
{
    guest->connections[connection->number % FRAME_CONNECTIONS_MAX] = NULL;
    guest->connection_count--;
    close_socket(guest, connection, true);
    ring_done(&connection->out);
    connection->next = guest->old_connections;
    guest->old_connections = connection;
}

/* Starts to connect to the port. Returns 0, also while the connect is in progress, or -errno. */
static int connection_dial(struct connection *connection)
{
    const struct sockaddr_in ipv4 = { .sin_family = AF_INET,
                                      .sin_port = htons(connection->port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct sockaddr_in6 ipv6 = { .sin6_family = AF_INET6,
                                       .sin6_port = htons(connection->port),
                                       .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    cleanup_close int fd = socket(connection->is_ipv6 ? AF_INET6 : AF_INET,
                                  SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    r = connection->is_ipv6 ? connect(fd, (const struct sockaddr *)&ipv6, sizeof(ipv6))
                            : connect(fd, (const struct sockaddr *)&ipv4, sizeof(ipv4));
    if (r < 0 && errno != EINPROGRESS)
        return -errno;
    connection->watch.fd = TAKE_FD(fd);
    return 0;
}

/* Tries ::1 after 127.0.0.1 refused: a server on "localhost" may listen on either. */
static int connection_dial_ipv6(struct guest *guest, struct connection *connection)
{
    if (connection->is_ipv6)
        return -ECONNREFUSED;
    close_socket(guest, connection, true);
    connection->is_ipv6 = true;
    return connection_dial(connection) < 0 ? -ECONNREFUSED : 0;
}

static int socket_error(const struct connection *connection)
{
    int errnum = 0;
    socklen_t size = sizeof(errnum);

    if (getsockopt(connection->watch.fd, SOL_SOCKET, SO_ERROR, &errnum, &size) < 0)
        return -errno;
    return -errnum;
}

/* Returns 0 once connected, -EAGAIN while in progress (the socket has no peer name yet), or
 * -errno. */
static int check_connected(struct connection *connection)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    int r = socket_error(connection);

    if (r < 0)
        return r;
    if (getpeername(connection->watch.fd, (struct sockaddr *)&peer, &size) < 0)
        return errno == ENOTCONN ? -EAGAIN : -errno;
    connection->is_connected = true;
    return 0;
}

static int connection_continue(struct guest *guest, struct connection *connection)
{
    int r = check_connected(connection);

    if (r != -ECONNREFUSED)
        return r;
    r = connection_dial_ipv6(guest, connection);
    if (r == 0)
        r = check_connected(connection);
    return r;
}

static int move_out(struct connection *connection)
{
    long n = 1;

    while (!connection->is_eof_read && n > 0 && !ring_is_full(&connection->out))
        n = ring_fill(&connection->out, connection->watch.fd);
    if (n == 0)
        connection->is_eof_read = true;
    return n < 0 && n != -EAGAIN ? (int)n : 0;
}

/* Returns -EAGAIN if the socket buffer is full. */
static int move_in(struct connection *connection)
{
    long n = 1;

    while (n > 0)
        n = ring_drain(&connection->in, connection->watch.fd);
    if (n < 0)
        return (int)n;
    if (!connection->is_in_over || connection->is_shut)
        return 0;
    if (shutdown(connection->watch.fd, SHUT_WR) < 0)
        return -errno;
    connection->is_shut = true;
    return 0;
}

/* Only events that can be acted on, because a reset socket would wake the loop forever. With
 * nothing left to read or write, a reset is the only event that can still come. */
static uint32_t wanted_events(const struct connection *connection, bool is_blocked)
{
    uint32_t events = is_blocked ? EPOLLOUT : 0;

    if (!connection->is_eof_read && !ring_is_full(&connection->out))
        events |= EPOLLIN;
    if (connection->is_eof_read && !connection->is_shut)
        events |= EPOLLERR;
    return events;
}

void connection_ready(struct guest *guest, struct connection *connection)
{
    int r = 0;
    bool is_blocked;

    if (connection->watch.fd < 0)
        return;
    if (!connection->is_connected)
        r = connection_continue(guest, connection);
    if (r == -EAGAIN) {
        watch_set(guest->epoll_fd, &connection->watch, EPOLLOUT);
        return;
    }
    if (r == 0)
        r = connection->is_eof_read ? socket_error(connection) : move_out(connection);
    if (r == 0)
        r = move_in(connection);
    is_blocked = r == -EAGAIN;
    if (r < 0 && !is_blocked) {
        connection_abort(guest, connection, r);
        return;
    }
    watch_set(guest->epoll_fd, &connection->watch, wanted_events(connection, is_blocked));
}

static bool connection_open(struct guest *guest, uint32_t number, uint16_t port)
{
    struct connection **slot = &guest->connections[number % FRAME_CONNECTIONS_MAX];
    struct connection *connection;
    int r;

    if (number == 0 || *slot)
        return false;
    connection = xcalloc(1, sizeof(*connection));
    connection->number = number;
    connection->port = port;
    connection->watch =
        (struct watch){ .kind = WATCH_CONNECTION, .fd = -EBADF, .owner = connection };
    ring_init(&connection->out, FRAME_CONN_WINDOW);
    ring_init(&connection->in, FRAME_CONN_WINDOW);
    *slot = connection;
    guest->connection_count++;
    r = connection_dial(connection);
    if (r == -ECONNREFUSED)
        r = connection_dial_ipv6(guest, connection);
    if (r < 0)
        connection->broken = -r;
    connection_ready(guest, connection);
    return true;
}

/* Discards data for a broken connection: the daemon sent it before it knew. */
static bool handle_data(struct guest *guest, struct connection *connection,
                        const struct frame *frame)
{
    uint64_t offset;
    const char *data;
    size_t len;

    if (!message_get_input(frame, &offset, &data, &len) || offset != connection->in.produced ||
        connection->is_in_over)
        return false;
    if (connection->watch.fd < 0) {
        connection->in.produced += len;
        return true;
    }
    if (ring_put(&connection->in, data, len) < 0)
        return false;
    connection_ready(guest, connection);
    return true;
}

static bool handle_eof(struct guest *guest, struct connection *connection, uint64_t offset)
{
    if (connection->is_in_over || offset != connection->in.produced)
        return false;
    connection->is_in_over = true;
    connection_ready(guest, connection);
    return true;
}

static bool handle_ack(struct guest *guest, struct connection *connection, uint64_t offset)
{
    if (offset > connection->sent || !ring_ack(&connection->out, offset))
        return false;
    connection_ready(guest, connection);
    return true;
}

static bool handle_end(struct guest *guest, struct connection *connection, int errnum)
{
    connection->is_ended_by_daemon = true;
    close_socket(guest, connection, errnum != 0);
    ring_done(&connection->out);
    if (connection->is_end_sent)
        connection_forget(guest, connection);
    return true;
}

bool connection_handle(struct guest *guest, const struct frame *frame)
{
    struct connection *connection = guest->connections[frame->process % FRAME_CONNECTIONS_MAX];
    uint64_t number, none;

    if (!guest->is_rooted)
        return false;
    if (frame->type == FRAME_CONNECT)
        return message_get_numbers(frame, &number, &none) &&
               connection_open(guest, frame->process, (uint16_t)number);
    if (!connection || connection->number != frame->process || connection->is_ended_by_daemon)
        return false;
    if (frame->type == FRAME_CONN_DATA)
        return handle_data(guest, connection, frame);
    if (!message_get_numbers(frame, &number, &none))
        return false;
    if (frame->type == FRAME_CONN_EOF)
        return handle_eof(guest, connection, number);
    if (frame->type == FRAME_CONN_ACK)
        return handle_ack(guest, connection, number);
    return frame->type == FRAME_CONN_END && handle_end(guest, connection, (int)number);
}

/* Sends one frame per turn, so that all connections progress. */
static void pump_out(struct guest *guest, struct connection *connection)
{
    struct buf *out = &guest->link.out;
    const char *data;
    size_t len;

    if (out->len >= LINK_OUT_BUSY)
        return;
    len = ring_peek(&connection->out, connection->sent, &data);
    if (len > FRAME_DATA_MAX)
        len = FRAME_DATA_MAX;
    if (len > 0 && message_put_conn_data(out, connection->number, connection->sent, data, len) == 0)
        connection->sent += len;
}

static void pump_eof(struct guest *guest, struct connection *connection)
{
    if (connection->is_eof_read && !connection->is_eof_sent &&
        connection->sent == connection->out.produced)
        connection->is_eof_sent = message_put_numbers(&guest->link.out, FRAME_CONN_EOF,
                                                      connection->number, connection->sent, 0) == 0;
}

static void pump_ack(struct guest *guest, struct connection *connection)
{
    uint64_t taken = connection->in.acked;

    if (taken - connection->in_acked >= ACK_EVERY &&
        message_put_numbers(&guest->link.out, FRAME_CONN_ACK, connection->number, taken, 0) == 0)
        connection->in_acked = taken;
}

/* Returns whether everything that had to be sent has been sent. */
static bool is_finished(const struct connection *connection)
{
    if (connection->is_ended_by_daemon)
        return true;
    if (connection->broken)
        return connection->sent == connection->out.produced;
    return connection->is_eof_sent && connection->is_shut;
}

static void pump_end(struct guest *guest, struct connection *connection)
{
    if (connection->is_end_sent || !is_finished(connection))
        return;
    connection->is_end_sent =
        message_put_numbers(&guest->link.out, FRAME_CONN_END, connection->number,
                            (uint64_t)connection->broken, 0) == 0;
    if (!connection->is_end_sent)
        return;
    close_socket(guest, connection, false);
    ring_done(&connection->out);
    if (connection->is_ended_by_daemon)
        connection_forget(guest, connection);
}

static void pump_one(struct guest *guest, struct connection *connection)
{
    if (connection->is_end_sent)
        return;
    if (connection->is_connected && !connection->is_connected_sent)
        connection->is_connected_sent =
            message_put_numbers(&guest->link.out, FRAME_CONNECTED, connection->number, 0, 0) == 0;
    if (connection->is_connected_sent && !connection->is_ended_by_daemon) {
        pump_out(guest, connection);
        pump_eof(guest, connection);
        pump_ack(guest, connection);
    }
    pump_end(guest, connection);
}

void connection_pump(struct guest *guest)
{
    unsigned left = guest->connection_count;
    unsigned first = guest->next_connection++;

    for (unsigned i = 0; i < FRAME_CONNECTIONS_MAX && left > 0; i++) {
        struct connection *connection = guest->connections[(first + i) % FRAME_CONNECTIONS_MAX];

        if (!connection)
            continue;
        left--;
        pump_one(guest, connection);
    }
}

void connection_end_all(struct guest *guest)
{
    for (unsigned i = 0; i < FRAME_CONNECTIONS_MAX && guest->connection_count > 0; i++)
        if (guest->connections[i])
            connection_forget(guest, guest->connections[i]);
}

void connection_free_old(struct guest *guest)
{
    while (guest->old_connections) {
        struct connection *connection = guest->old_connections;

        guest->old_connections = connection->next;
        free(connection);
    }
}
