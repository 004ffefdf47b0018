// SPDX-License-Identifier: Apache-2.0
#include "host/machine/channel.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/lock.h"
#include "kernel/fds.h"

enum { RECEIVE_CHUNK = 256 * 1024 };

static struct channel *channel_of(struct reactor_source *source)
{
    return (struct channel *)(void *)((char *)source - offsetof(struct channel, source));
}

/* Passes on every complete frame in the buffer. A frame with descriptors is an error: guests send
 * none. */
static bool channel_deliver(struct channel *channel)
{
    size_t done = 0;
    struct frame frame;
    long used;

    while ((used = frame_parse(channel->in.data + done, channel->in.len - done,
                               FRAME_FROM_GUEST_MAX, &frame)) > 0) {
        if (frame.fds != 0 || !channel->events->frame(channel, &frame))
            return false;
        done += (size_t)used;
    }
    buf_consume(&channel->in, done);
    return used == 0;
}

static bool channel_on_ready(struct reactor_source *source)
{
    struct channel *channel = channel_of(source);
    ssize_t n;

    if (buf_reserve(&channel->in, RECEIVE_CHUNK) < 0)
        return false;
    n = recv(source->fd, channel->in.data + channel->in.len, RECEIVE_CHUNK, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0)
        return false;
    channel->in.len += (size_t)n;
    return channel_deliver(channel);
}

static void channel_on_gone(struct reactor_source *source)
{
    struct channel *channel = channel_of(source);

    /* The failing socket stops all senders. */
    (void)shutdown(source->fd, SHUT_RDWR);
    channel->events->gone(channel);
}

int channel_start(struct channel *channel, struct reactor *reactor, int fd,
                  const struct channel_events *events)
{
    channel->source =
        (struct reactor_source){ .fd = fd, .ready = channel_on_ready, .gone = channel_on_gone };
    channel->events = events;
    channel->in = (struct buf)BUF_INIT(FRAME_FROM_GUEST_MAX + FRAME_HEADER_SIZE + RECEIVE_CHUNK);
    channel->rest = (struct buf)BUF_INIT(FRAME_FROM_DAEMON_MAX);
    lock_init(&channel->send_lock, LOCK_CHANNEL);
    return reactor_add(reactor, &channel->source);
}

static int channel_send_all(int fd, const struct buf *frames, const int *fds, size_t fd_count)
{
    size_t done = 0;

    while (done < frames->len) {
        ssize_t n =
            fds_send(fd, frames->data + done, frames->len - done, 0, fds, done == 0 ? fd_count : 0);

        if (n < 0)
            return (int)n;
        done += (size_t)n;
    }
    return 0;
}

int channel_send(struct channel *channel, const struct buf *frames, const int *fds, size_t fd_count)
{
    int r;

    lock_take(&channel->send_lock);
    r = channel_send_all(channel->source.fd, &channel->rest, NULL, 0);
    buf_clear(&channel->rest);
    if (r == 0)
        r = channel_send_all(channel->source.fd, frames, fds, fd_count);
    /* A partial frame cannot be continued; the reactor sees the end of the stream and cleans up. */
    if (r < 0)
        (void)shutdown(channel->source.fd, SHUT_RDWR);
    lock_release(&channel->send_lock);
    return r;
}

/* Sends as much as fits; keeps the rest of a frame that was sent in part. The caller holds the
 * lock. */
static int channel_send_now(struct channel *channel, const struct buf *frames)
{
    ssize_t n;

    if (frames->len == 0)
        return 0;
    do {
        n = send(channel->source.fd, frames->data, frames->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return buf_add(&channel->rest, frames->data + n, frames->len - (size_t)n);
}

static int channel_send_rest(struct channel *channel)
{
    struct buf rest = channel->rest;
    int r;

    if (rest.len == 0)
        return 0;
    channel->rest = (struct buf)BUF_INIT(rest.max);
    r = channel_send_now(channel, &rest);
    if (r == -EAGAIN) {
        channel->rest = rest;
        return r;
    }
    buf_done(&rest);
    return r == 0 && channel->rest.len > 0 ? -EAGAIN : r;
}

int channel_offer(struct channel *channel, const struct buf *frames)
{
    int r;

    if (!lock_try(&channel->send_lock))
        return -EAGAIN;
    r = channel_send_rest(channel);
    if (r == 0)
        r = channel_send_now(channel, frames);
    if (r == 0 && channel->rest.len > 0)
        r = 1;
    if (r < 0 && r != -EAGAIN)
        (void)shutdown(channel->source.fd, SHUT_RDWR);
    lock_release(&channel->send_lock);
    return r;
}

void channel_done(struct channel *channel)
{
    channel->source.fd = fd_close(channel->source.fd);
    buf_done(&channel->in);
    buf_done(&channel->rest);
    lock_destroy(&channel->send_lock);
}
