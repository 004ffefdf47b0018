// SPDX-License-Identifier: Apache-2.0
/* Moves bytes between both sides of a connection: by splice through a borrowed pipe, so that they
 * are not copied; plain HTTP from the client goes through a buffer, where it is looked at. When
 * there is no pipe, they are copied. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "egress/egress_internal.h"
#include "egress/http/session.h"

enum { SPLICE_BYTES = 256 * 1024, ROUNDS = 16, READ_MAX = 32 * 1024, COPY_BYTES = 16 * 1024 };

static const char upgraded[] = "HTTP/1.1 101";

static void flow_rest(struct guest *guest, struct flow *flow)
{
    if (flow->pipe && flow->len == 0)
        pipe_return(guest, TAKE_PTR(flow->pipe));
}

static bool flow_is_full(const struct flow *flow)
{
    return flow->len > 0 || flow->is_blocked;
}

/* Moves bytes without a pipe. They stay with the sender until the receiver has taken them, so that
 * none have to be kept here. Returns the bytes moved, 0 if there are none for now, or -errno. */
static long flow_copy(struct side *from, struct side *to, struct flow *flow)
{
    char data[COPY_BYTES];
    ssize_t n = recv(from->watch.fd, data, sizeof(data), MSG_PEEK | MSG_DONTWAIT), sent;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    from->is_eof = n == 0;
    if (n == 0)
        return 0;
    sent = send(to->watch.fd, data, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return -errno;
    flow->is_blocked = sent < n;
    if (sent <= 0)
        return 0;
    flow->total += (uint64_t)sent;
    n = recv(from->watch.fd, data, (size_t)sent, MSG_DONTWAIT);
    return n == sent ? (long)n : -EIO; /* the same bytes must not be sent twice */
}

/* Fills the pipe. Returns the bytes in it, 0 if there are none for now, or -errno. */
static long flow_fill(struct side *from, struct flow *flow)
{
    ssize_t n;

    n = splice(from->watch.fd, NULL, flow->pipe->fds[1], NULL, SPLICE_BYTES,
               SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    from->is_eof = n == 0;
    flow->len = (size_t)n;
    return (long)n;
}

/* Moves what there is. Returns 0 or -errno. */
static int flow_pump(struct guest *guest, struct side *from, struct side *to, struct flow *flow)
{
    flow->is_blocked = false;
    for (int i = 0; i < ROUNDS && !flow->is_blocked; i++) {
        ssize_t n;

        if (i > 0 && slice_is_over(guest->egress))
            break;
        if (flow->len == 0) {
            long moved = 0;

            if (!flow->pipe && !from->is_eof)
                flow->pipe = pipe_borrow(guest);
            if (!from->is_eof)
                moved = flow->pipe ? flow_fill(from, flow) : flow_copy(from, to, flow);
            if (moved < 0)
                return (int)moved;
            if (moved == 0)
                break;
            if (!flow->pipe)
                continue;
        }
        n = splice(flow->pipe->fds[0], NULL, to->watch.fd, NULL, flow->len,
                   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        flow->len -= (size_t)n;
        flow->total += (uint64_t)n;
    }
    flow_rest(guest, flow);
    return 0;
}

static int side_shut(struct side *to)
{
    if (to->is_shut)
        return 0;
    to->is_shut = true;
    return shutdown(to->watch.fd, SHUT_WR) < 0 ? -errno : 0;
}

/* Reads what the client sends into the buffer. Returns the bytes read, or -errno. */
static long client_read(struct connection *connection)
{
    struct buf *in = &connection->in;
    ssize_t n;

    if (connection->client.is_eof || in->len >= READ_MAX)
        return 0;
    if (buf_reserve(in, READ_MAX) < 0)
        return -ENOMEM;
    n = recv(connection->client.watch.fd, in->data + in->len, READ_MAX, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    connection->client.is_eof = n == 0;
    in->len += (size_t)n;
    return (long)n;
}

static int cleared_send(struct connection *connection)
{
    while (connection->cleared > 0) {
        ssize_t n = send(connection->server.watch.fd, connection->in.data, connection->cleared,
                         MSG_NOSIGNAL);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        buf_consume(&connection->in, (size_t)n);
        connection->cleared -= (size_t)n;
        connection->up.total += (uint64_t)n;
    }
    return 0;
}

/* Returns -EACCES when the connection has ended, otherwise 0 or -errno. */
static int up_buffered(struct connection *connection)
{
    for (int i = 0; i < ROUNDS; i++) {
        int r = cleared_send(connection);
        long n;

        if (r < 0 || connection->cleared > 0)
            return r;
        n = client_read(connection);
        if (n < 0)
            return (int)n;
        if (connection->in.len == 0 || connection->awaits_upgrade)
            break;
        r = connection_inspect(connection);
        if (r < 0)
            return r;
        if (connection->cleared == 0)
            break;
    }
    /* An incomplete head has nowhere to go any more. */
    if (connection->client.is_eof && connection->cleared == 0 && !connection->awaits_upgrade)
        buf_clear(&connection->in);
    return 0;
}

/* Passes the first bytes of the server's reply on and finds out whether it changes to another
 * protocol, after which nothing can be looked at. They may come one by one. Returns 0 or -errno. */
static int upgrade_look(struct connection *connection)
{
    char start[sizeof(upgraded) - 1];
    size_t left = sizeof(start) - connection->upgrade_seen;
    ssize_t n = recv(connection->server.watch.fd, start, left, MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    /* The client has got nothing before, so these few bytes always fit. */
    if (n > 0 && send(connection->client.watch.fd, start, (size_t)n, MSG_NOSIGNAL) != n)
        return -EPIPE;
    connection->down.total += (uint64_t)n;
    connection->awaits_upgrade =
        n > 0 && memcmp(start, upgraded + connection->upgrade_seen, (size_t)n) == 0;
    connection->upgrade_seen += (unsigned)n;
    if (!connection->awaits_upgrade || connection->upgrade_seen < sizeof(start))
        return 0;
    connection->awaits_upgrade = false;
    connection->is_raw = true;
    connection->cleared = connection->in.len;
    return 0;
}

static int up_pump(struct connection *connection)
{
    bool is_empty;
    int r = 0;

    if (!connection->is_raw || connection->in.len > 0)
        r = up_buffered(connection);
    if (r == 0 && connection->is_raw && connection->in.len == 0) {
        if (connection->in.data)
            buf_done(&connection->in);
        r = flow_pump(connection->guest, &connection->client, &connection->server, &connection->up);
    }
    is_empty = connection->up.len == 0 && connection->in.len == 0;
    if (r == 0 && connection->client.is_eof && is_empty)
        r = side_shut(&connection->server);
    return r;
}

static int down_pump(struct connection *connection)
{
    int r =
        flow_pump(connection->guest, &connection->server, &connection->client, &connection->down);

    if (r == 0 && connection->server.is_eof && connection->down.len == 0)
        r = side_shut(&connection->client);
    return r;
}

/* Each side is watched for what can be done next; a full pipe stops the reading. */
static void relay_watch(struct connection *connection)
{
    struct egress *egress = connection->guest->egress;
    bool is_up_full = flow_is_full(&connection->up) || connection->cleared > 0;
    bool is_down_full = flow_is_full(&connection->down);
    bool reads_client = !connection->client.is_eof && !is_up_full && !connection->awaits_upgrade &&
                        connection->in.len < READ_MAX;
    bool reads_server = !connection->server.is_eof && !is_down_full;

    watch_set(egress, &connection->client.watch,
              (reads_client ? EPOLLIN : 0U) | (is_down_full ? EPOLLOUT : 0U));
    watch_set(egress, &connection->server.watch,
              (reads_server ? EPOLLIN : 0U) | (is_up_full ? EPOLLOUT : 0U));
}

static bool bytes_note(struct connection *connection, uint64_t up_before, uint64_t down_before)
{
    struct guest *guest = connection->guest;
    struct egress *egress = guest->egress;
    uint64_t up = connection->up.total - up_before, down = connection->down.total - down_before;

    egress->counters.bytes_out += up;
    egress->counters.bytes_in += down;
    guest->bytes_out += up;
    if (up + down > 0)
        connection->active_ms = egress->now_ms;
    guest->is_active |= up + down > 0;
    return egress->bounds.bytes_out == 0 || guest->bytes_out <= egress->bounds.bytes_out;
}

bool relay_note(struct connection *connection, uint64_t up_before, uint64_t down_before)
{
    if (bytes_note(connection, up_before, down_before))
        return !connection->is_dead;
    connection->guest->egress->counters.limited++;
    report_limit(connection->guest, BOUND_BYTES_OUT);
    connection_end(connection, true, "the sandbox has sent as many bytes as it may");
    return false;
}

void relay_pump(struct connection *connection)
{
    uint64_t up_before = connection->up.total, down_before = connection->down.total;
    int r = connection->awaits_upgrade ? upgrade_look(connection) : 0;

    if (r == 0)
        r = up_pump(connection);
    if (connection->is_dead)
        return;
    if (r == 0 && !connection->awaits_upgrade)
        r = down_pump(connection);
    if (!relay_note(connection, up_before, down_before))
        return;
    if (r < 0)
        connection_end(connection, true, r == -ECONNRESET || r == -EPIPE ? "reset" : strerror(-r));
    else if (connection->client.is_shut && connection->server.is_shut)
        connection_end(connection, false, "closed");
    else
        relay_watch(connection);
}

void relay_start(struct connection *connection)
{
    if (connection->session)
        session_pump(connection);
    else
        relay_pump(connection);
}
