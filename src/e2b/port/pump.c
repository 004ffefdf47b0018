// SPDX-License-Identifier: Apache-2.0
#include "e2b/port/pump.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/xalloc.h"

enum { PUMP_BYTES = 32 * 1024 };

/* One direction. */
struct way {
    int from, to;
    const struct port_side *side; /* from */
    const char *early;            /* to be written before anything is read */
    size_t start, end;            /* in bytes, or in early while there is some */
    bool is_read_out;             /* from has said its end of file */
    bool is_over;                 /* and `to` was shut down */
    char bytes[PUMP_BYTES];
};

static int way_read(struct way *way)
{
    ssize_t n = recv(way->from, way->bytes, PUMP_BYTES, MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    way->is_read_out = n == 0;
    way->start = 0;
    way->end = (size_t)n;
    return 0;
}

static int way_write(struct way *way)
{
    const char *data = way->early ? way->early : way->bytes;
    ssize_t n =
        send(way->to, data + way->start, way->end - way->start, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    way->start += (size_t)n;
    if (way->start == way->end)
        way->early = NULL;
    return 0;
}

static bool is_full(const struct way *way)
{
    return way->start < way->end;
}

/* Does what can be done now, without waiting. */
static int way_go(struct way *way)
{
    int r = 0;

    if (way->is_over)
        return 0;
    if (!is_full(way) && !way->is_read_out)
        r = way_read(way);
    if (r == 0 && is_full(way))
        r = way_write(way);
    if (r < 0 || is_full(way) || !way->is_read_out)
        return r;
    if (way->side->is_cut && way->side->is_cut(way->side->context))
        return -ECONNRESET;
    way->is_over = true;
    /* A side that has disconnected needs no shutdown. */
    return shutdown(way->to, SHUT_WR) < 0 && errno != ENOTCONN ? -errno : 0;
}

/* What a side is waited for: for its end too, once all it said was passed on. While that still
 * waits for the other side, an end would wake us for nothing. */
static struct pollfd interest(const struct way *out, const struct way *in)
{
    struct pollfd wait = { .fd = out->from };

    if (!out->is_over && !out->is_read_out && !is_full(out))
        wait.events |= POLLIN;
    if (!in->is_over && is_full(in))
        wait.events |= POLLOUT;
    if (wait.events == 0 && !out->is_over)
        wait.fd = -1;
    return wait;
}

static int way_wait(const struct way *up, const struct way *down)
{
    struct pollfd fds[2] = { interest(up, down), interest(down, up) };

    if (poll(fds, 2, -1) < 0)
        return errno == EINTR ? 0 : -errno;
    for (size_t i = 0; i < 2; i++)
        if ((fds[i].revents & (POLLERR | POLLNVAL)) ||
            ((fds[i].revents & POLLHUP) && fds[i].events == 0))
            return -ECONNRESET; /* no reader is left for the other direction */
    return 0;
}

static bool is_forbidden(const struct way *way)
{
    return way->side->is_over && way->side->is_over(way->side->context);
}

static int pump(struct way *up, struct way *down)
{
    while (!up->is_over || !down->is_over) {
        int r = is_forbidden(up) ? -ECONNRESET : way_go(up);

        if (r == 0)
            r = way_go(down);
        if (r == 0 && !(up->is_over && down->is_over))
            r = way_wait(up, down);
        if (r < 0)
            return r;
    }
    return 0;
}

static void way_init(struct way *way, const struct port_side *from, const struct port_side *to)
{
    way->side = from;
    way->from = from->fd;
    way->to = to->fd;
    way->early = from->early_len > 0 ? from->early : NULL;
    way->end = from->early_len;
}

int port_pump(const struct port_side *client, const struct port_side *server)
{
    struct way *ways = xcalloc(2, sizeof(*ways));
    int r;

    way_init(&ways[0], client, server);
    way_init(&ways[1], server, client);
    r = pump(&ways[0], &ways[1]);
    free(ways);
    return r;
}
