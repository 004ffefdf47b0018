// SPDX-License-Identifier: Apache-2.0
#include "http/feed.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "http/stream.h"
#include "wire/envelope.h"

enum {
    READY_ENOUGH = 64 * 1024,                       /* bytes in `ready` from which feed_put waits */
    READY_MAX = READY_ENOUGH + ENVELOPE_PAYLOAD_MAX /* and one more message */
};

struct feed {
    struct stream stream;
    const struct feed_ops *ops;
    void *context;
    struct thread thread;
    int watch_fd;  /* the client's connection */
    int filled_fd; /* readable when the reader waits and `ready` is not empty */

    struct lock lock; /* protects everything below */
    struct cond changed;
    struct buf ready; /* envelopes */
    bool is_closed;   /* the reader has gone */
    bool is_over;     /* run() has ended, with this result */
    int result;
    struct err err;
};

_Static_assert(READY_MAX >= READY_ENOUGH + ENVELOPE_PAYLOAD_MAX, "one message always fits");

/* Wakes the reader. */
static void reader_wake(struct feed *feed)
{
    (void)eventfd_write(feed->filled_fd, 1);
}

int feed_put(struct feed *feed, const struct schema *schema, const void *message,
             enum encode_mode mode)
{
    int r;

    lock_take(&feed->lock);
    while (feed->ready.len >= READY_ENOUGH && !feed->is_closed)
        cond_wait(&feed->changed, &feed->lock);
    r = feed->is_closed ? -ECANCELED : message_add_as(&feed->ready, schema, message, mode);
    if (!feed->is_closed)
        reader_wake(feed);
    lock_release(&feed->lock);
    return r;
}

static void feed_main(void *argument)
{
    struct feed *feed = argument;
    struct err err = { 0 };
    int r = feed->ops->run(feed, feed->context, &err);

    if (r < 0 && err.kind == ERR_NONE)
        (void)err_sys(&err, r, "write a message");
    lock_scope(&feed->lock);
    feed->is_over = true;
    feed->result = r;
    feed->err = err;
    reader_wake(feed);
}

/* Waits for messages: 0, or -ECANCELED when the client has gone. */
static int wait_filled(const struct feed *feed)
{
    struct pollfd fds[2] = {
        { .fd = feed->filled_fd, .events = POLLIN },
        { .fd = feed->watch_fd, .events = POLLRDHUP },
    };
    eventfd_t ignored;
    int r = poll(fds, 2, -1);

    if (r < 0)
        return errno == EINTR ? 0 : -errno;
    if (fds[1].revents && !fds[0].revents)
        return -ECANCELED;
    (void)eventfd_read(feed->filled_fd, &ignored);
    return 0;
}

/* Moves the messages to out: 1. Returns 0 if there are none yet, or sets *ret_end at the end. */
static int take_ready(struct feed *feed, struct buf *out, int *ret_end, struct err *err)
{
    int r = 0;

    lock_take(&feed->lock);
    if (feed->ready.len > 0) {
        r = buf_add(out, feed->ready.data, feed->ready.len);
        r = r < 0 ? err_sys(err, r, "write a message") : 1;
        buf_clear(&feed->ready);
        cond_signal(&feed->changed);
    } else if (feed->is_over) {
        *err = feed->err;
        *ret_end = feed->result < 0 ? -EIO : 0;
    }
    lock_release(&feed->lock);
    return r;
}

static int feed_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct feed *feed = (struct feed *)stream;
    int end = 1;
    int r;

    do {
        r = take_ready(feed, out, &end, err);
        if (r == 0 && end == 1)
            r = wait_filled(feed);
    } while (r == 0 && end == 1);
    return r != 0 ? r : end;
}

static void feed_free(struct feed *feed)
{
    feed->ops->free(feed->context);
    (void)fd_close(feed->filled_fd);
    cond_destroy(&feed->changed);
    lock_destroy(&feed->lock);
    buf_done(&feed->ready);
    free(feed);
}

static void feed_close(struct stream *stream)
{
    struct feed *feed = (struct feed *)stream;

    lock_take(&feed->lock);
    feed->is_closed = true;
    cond_signal(&feed->changed);
    lock_release(&feed->lock);
    thread_join(&feed->thread);
    feed_free(feed);
}

static const struct stream_ops feed_stream_ops = { feed_next, feed_close };

int feed_start(const struct feed_ops *ops, void *context, int watch_fd, struct stream **ret,
               struct err *err)
{
    struct feed *feed = xcalloc(1, sizeof(*feed));
    int r;

    feed->stream.ops = &feed_stream_ops;
    feed->ops = ops;
    feed->context = context;
    feed->ready.max = READY_MAX;
    feed->watch_fd = watch_fd;
    feed->filled_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    lock_init(&feed->lock, LOCK_FEED);
    cond_init(&feed->changed);
    r = feed->filled_fd < 0 ? -errno : thread_start(&feed->thread, "holt-feed", feed_main, feed);
    if (r < 0) {
        feed_free(feed);
        return err_sys(err, r, "start a thread for the stream");
    }
    *ret = &feed->stream;
    return 0;
}
