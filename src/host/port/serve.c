// SPDX-License-Identifier: Apache-2.0
/* Relays one connection, on the ports' thread: bytes between the client's socket and frames.
 * Nothing here blocks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "host/machine/machine_internal.h"
#include "host/port/port_internal.h"
#include "host/sandbox/sandbox.h"
#include "wire/message.h"

enum {
    ACK_EVERY = FRAME_CONN_WINDOW / 4,
    READS_PER_TURN = 8, /* then other connections get their turn */
};

/* A copy of the state that frames from the guest set. */
struct connection_view {
    bool is_cut, is_connected, is_eof, is_ended;
    int errnum;
    const char *data;
    uint64_t received, room; /* room: bytes that the guest's window allows */
};

static struct connection_view connection_view_get(struct port_connection *connection)
{
    struct connection_view view;

    lock_take(&connection->ports->lock);
    view = (struct connection_view){
        .is_cut = connection->machine->ports.is_cut,
        .is_connected = connection->is_connected,
        .is_eof = connection->is_eof,
        .is_ended = connection->is_ended,
        .errnum = connection->errnum,
        .data = connection->data,
        .received = connection->received,
        .room = FRAME_CONN_WINDOW - (connection->sent - connection->taken),
    };
    lock_release(&connection->ports->lock);
    return view;
}

/* The forward counts one connection less, even if the guest still has to send its last frame. */
static void leave_forward(struct port_connection *connection)
{
    struct port_forward *forward = TAKE_PTR(connection->forward);

    if (forward->sandbox)
        sandbox_detach(forward->sandbox, NULL);
    lock_take(&forward->ports->lock);
    forward->connections--;
    lock_release(&forward->ports->lock);
}

/* A reset tells the client that the connection did not end in order. */
static void close_client(struct port_connection *connection, bool is_reset)
{
    const struct linger at_once = { .l_onoff = 1 };

    if (connection->source.fd < 0)
        return;
    port_unwatch(connection->ports, &connection->source);
    if (is_reset)
        (void)setsockopt(connection->source.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    connection->source.fd = fd_close(connection->source.fd);
    if (connection->forward)
        leave_forward(connection);
}

/* --- to the client --- */

/* A new socket has room for an int. */
static void send_outcome(struct port_connection *connection, const struct connection_view *view)
{
    int outcome = view->is_connected ? 0 : view->errnum;

    if (!connection->wants_outcome || connection->source.fd < 0 ||
        !(view->is_connected || view->is_ended))
        return;
    connection->wants_outcome = false;
    (void)send(connection->source.fd, &outcome, sizeof(outcome), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Returns the number of bytes that the client took, or -errno. */
static ssize_t write_some(const struct port_connection *connection,
                          const struct connection_view *view)
{
    size_t len = (size_t)(view->received - connection->written);
    size_t start = connection->written % FRAME_CONN_WINDOW;
    size_t first = len < FRAME_CONN_WINDOW - start ? len : FRAME_CONN_WINDOW - start;
    /* struct iovec has no const. */
    char *data = (char *)(uintptr_t)view->data;
    struct iovec parts[2] = {
        { .iov_base = data + start, .iov_len = first },
        { .iov_base = data, .iov_len = len - first },
    };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = len > first ? 2 : 1 };
    ssize_t n;

    do {
        n = sendmsg(connection->source.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static void client_write(struct port_connection *connection, const struct connection_view *view)
{
    ssize_t n = 1;

    while (connection->source.fd >= 0 && n > 0 && connection->written < view->received) {
        n = write_some(connection, view);
        if (n > 0)
            connection->written += (uint64_t)n;
    }
    if (n < 0 && n != -EAGAIN)
        connection->is_broken = true;
    if (!view->is_eof || connection->written < view->received || connection->is_shut ||
        connection->source.fd < 0)
        return;
    connection->is_shut = true;
    if (shutdown(connection->source.fd, SHUT_WR) < 0)
        connection->is_broken = true;
}

static void put_ack(struct port_connection *connection, const struct connection_view *view)
{
    uint64_t written = connection->written;

    /* `acked` can be read without the lock: this thread alone writes it. */
    if (view->is_eof || view->is_ended || written - connection->acked < ACK_EVERY)
        return;
    lock_take(&connection->ports->lock);
    connection->acked = written;
    lock_release(&connection->ports->lock);
    (void)message_put_numbers(&connection->ports->frames, FRAME_CONN_ACK, connection->number,
                              written, 0);
}

/* --- from the client --- */

static void put_data(struct port_connection *connection, size_t len)
{
    uint64_t offset = connection->sent;

    /* Before the frame is sent, so that no acknowledgement can come first. */
    lock_take(&connection->ports->lock);
    connection->sent += len;
    lock_release(&connection->ports->lock);
    (void)message_put_conn_data(&connection->ports->frames, connection->number, offset,
                                connection->ports->bytes, len);
}

static void put_eof(struct port_connection *connection)
{
    connection->is_read_out = true;
    lock_take(&connection->ports->lock);
    connection->is_eof_sent = true;
    lock_release(&connection->ports->lock);
    (void)message_put_numbers(&connection->ports->frames, FRAME_CONN_EOF, connection->number,
                              connection->sent, 0);
}

static bool can_read(const struct port_connection *connection, const struct connection_view *view)
{
    return connection->source.fd >= 0 && view->is_connected && !view->is_ended &&
           !connection->is_read_out && !connection->is_broken && connection->pending.len == 0 &&
           view->room > 0;
}

/* Reads data for one frame. Returns whether there may be more. */
static bool client_read(struct port_connection *connection, struct connection_view *view)
{
    size_t size = view->room < FRAME_DATA_MAX ? (size_t)view->room : FRAME_DATA_MAX;
    ssize_t n;

    if (!can_read(connection, view))
        return false;
    do {
        n = recv(connection->source.fd, connection->ports->bytes, size, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        put_data(connection, (size_t)n);
        view->room -= (uint64_t)n;
        return (size_t)n == size;
    }
    if (n == 0)
        put_eof(connection);
    else if (errno != EAGAIN)
        connection->is_broken = true;
    return false;
}

/* --- to the guest --- */

/* Returns whether the frames were sent, or are kept by the channel. */
static bool frames_offer(struct port_connection *connection, struct buf *frames)
{
    int r = channel_offer(&connection->machine->channel, frames);

    if (r == -EAGAIN || r == 1)
        port_await_guest(connection->machine);
    if (r == -EAGAIN)
        return false;
    /* The reactor reports a guest that is gone. */
    buf_clear(frames);
    return true;
}

static bool send_pending(struct port_connection *connection)
{
    if (connection->pending.len == 0)
        return true;
    if (!frames_offer(connection, &connection->pending))
        return false;
    buf_done(&connection->pending);
    return true;
}

/* Frames that do not fit into the channel wait with their connection, which reads nothing more
 * until they are sent. */
static bool send_frames(struct port_connection *connection)
{
    struct buf *frames = &connection->ports->frames;

    if (frames->len == 0)
        return true;
    if (frames_offer(connection, frames))
        return true;
    connection->pending.max = frames->max;
    (void)buf_add(&connection->pending, frames->data, frames->len);
    buf_clear(frames);
    return false;
}

/* --- one turn of a connection --- */

/* Returns whether nothing is left to do for the client, and closes its socket then. */
static bool is_client_done(struct port_connection *connection, const struct connection_view *view)
{
    if (connection->is_broken) {
        close_client(connection, true);
        return true;
    }
    if (!view->is_ended || connection->written < view->received)
        return false;
    close_client(connection, view->errnum != 0);
    return true;
}

static void put_end(struct port_connection *connection)
{
    if (connection->is_end_sent)
        return;
    lock_take(&connection->ports->lock);
    connection->is_end_sent = true;
    lock_release(&connection->ports->lock);
    (void)message_put_numbers(&connection->ports->frames, FRAME_CONN_END, connection->number,
                              connection->is_broken ? ECONNRESET : 0, 0);
}

static void connection_finish(struct port_connection *connection)
{
    struct ports *ports = connection->ports;
    struct port_table *table = &connection->machine->ports;

    close_client(connection, true);
    if (port_connection_remove(connection))
        port_unwatch(ports, &table->guest);
    connection->is_over = true;
    connection->next = ports->over;
    ports->over = connection;
}

/* Unwatches a socket that hung up when there is nothing to wait for: it would wake the thread again
 * and again. */
static void watch_client(struct port_connection *connection, const struct connection_view *view)
{
    uint32_t events = 0;

    if (connection->source.fd < 0)
        return;
    if (can_read(connection, view))
        events |= EPOLLIN;
    if (connection->written < view->received)
        events |= EPOLLOUT;
    if (events == 0 && (connection->is_hung || (connection->is_read_out && connection->is_shut)))
        port_unwatch(connection->ports, &connection->source);
    else
        port_watch(connection->ports, &connection->source, events);
}

void port_serve(struct port_connection *connection)
{
    struct connection_view view;
    bool is_done, is_sent, is_more = true;

    if (connection->is_over)
        return;
    view = connection_view_get(connection);
    if (view.is_cut) {
        connection_finish(connection);
        return;
    }
    is_sent = send_pending(connection);
    send_outcome(connection, &view);
    client_write(connection, &view);
    if (is_sent && !connection->is_asked) {
        connection->is_asked = true;
        (void)message_put_numbers(&connection->ports->frames, FRAME_CONNECT, connection->number,
                                  connection->port, 0);
    }
    for (int i = 0; is_sent && is_more && i < READS_PER_TURN; i++) {
        is_more = client_read(connection, &view);
        is_sent = send_frames(connection);
    }
    /* The client accepts nothing more, and all its data was read. */
    if (connection->is_hung && connection->is_read_out && !connection->is_shut)
        connection->is_broken = true;
    is_done = is_client_done(connection, &view);
    if (is_sent && !is_done)
        put_ack(connection, &view);
    if (is_sent && is_done)
        put_end(connection);
    if (is_sent)
        is_sent = send_frames(connection);
    if (is_sent && connection->is_end_sent && view.is_ended)
        connection_finish(connection);
    else
        watch_client(connection, &view);
}
