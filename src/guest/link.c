// SPDX-License-Identifier: Apache-2.0
#include "guest/link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/fds.h"

enum { RECEIVE_CHUNK = 64 * 1024 };

void link_init(struct link *link, int fd)
{
    memset(link, 0, sizeof(*link));
    link->watch = (struct watch){ .kind = WATCH_LINK, .fd = fd };
    link->in.max = FRAME_FROM_DAEMON_MAX + FRAME_HEADER_SIZE + RECEIVE_CHUNK;
    link->out.max = LINK_OUT_MAX;
}

void link_drop(struct link *link)
{
    for (size_t i = 0; i < link->fd_count; i++)
        (void)close(link->fds[i]);
    link->fd_count = 0;
    link->watch.fd = fd_close(link->watch.fd);
    link->watch.events = 0;
    buf_done(&link->in);
    buf_done(&link->out);
}

/* Descriptors beyond the limit are closed; the frame that claims them then fails in link_next. */
static void keep_fds(struct link *link, const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (link->fd_count < LINK_FDS_MAX)
            link->fds[link->fd_count++] = fds[i];
        else
            (void)close(fds[i]);
    }
}

int link_receive(struct link *link)
{
    int fds[FDS_MAX];
    size_t count;
    ssize_t n;
    int r = buf_reserve(&link->in, RECEIVE_CHUNK);

    if (r < 0)
        return r;
    n = fds_receive(link->watch.fd, link->in.data + link->in.len, RECEIVE_CHUNK, MSG_DONTWAIT, fds,
                    &count);
    if (n <= 0)
        return n == -EAGAIN ? 0 : n < 0 ? (int)n : -EPIPE;
    link->in.len += (size_t)n;
    keep_fds(link, fds, count);
    return 1;
}

int link_next(struct link *link, struct frame *ret, int *ret_fds)
{
    long used = frame_parse(link->in.data, link->in.len, FRAME_FROM_DAEMON_MAX, ret);

    if (used <= 0)
        return (int)used;
    if (ret->fds > link->fd_count)
        return -EPROTO;
    memcpy(ret_fds, link->fds, ret->fds * sizeof(int));
    link->fd_count -= ret->fds;
    memmove(link->fds, link->fds + ret->fds, link->fd_count * sizeof(int));
    return 1;
}

void link_consume(struct link *link, const struct frame *frame)
{
    buf_consume(&link->in, FRAME_HEADER_SIZE + frame->size);
}

int link_flush(struct link *link)
{
    while (link->out.len > 0) {
        ssize_t n =
            send(link->watch.fd, link->out.data, link->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        buf_consume(&link->out, (size_t)n);
    }
    return 0;
}
