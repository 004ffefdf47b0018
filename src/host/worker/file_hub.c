// SPDX-License-Identifier: Apache-2.0
#include "host/worker/file_hub.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "host/worker/file_error.h"
#include "host/worker/file_pool.h"
#include "kernel/fds.h"
#include "wire/file.h"

enum { BEGIN_MS = 10 * 1000 };

/* Turns a worker into a hub: sends the request and waits for the reply. */
static int hub_begin(const struct file_pool *pool, struct file_worker *worker, struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(FILE_HEADER_SIZE + FILE_WHOLE_MAX);
    const struct file_request request = { .type = FILE_HUB, .path = "/" };
    char data[FILE_HEADER_SIZE + 512];
    struct pollfd wait = { .fd = worker->fd, .events = POLLIN };
    struct file_failure failure;
    struct file_parser parser = { 0 };
    struct file_piece piece = { 0 };
    uint32_t number;
    ssize_t n = file_put_request(&out, &request);

    if (n == 0)
        n = send(worker->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n == (ssize_t)out.len && poll(&wait, 1, BEGIN_MS) == 1)
        n = recv(worker->fd, data, sizeof(data), MSG_DONTWAIT);
    else
        n = -1;
    if (n > 0 && file_next(&parser, data, (size_t)n, &piece) == n) {
        if (piece.type == FILE_END && file_get_number(&piece, &number))
            return 0;
        if (piece.type == FILE_FAILED && file_get_failure(&piece, &failure))
            return file_error_set(err, FILE_WATCH, &failure);
    }
    return err_set(err, ERR_BUSY, "the watch worker of sandbox '%s' does not respond",
                   file_pool_id(pool));
}

/* Starts the hub without holding the lock, as that may take seconds. */
static int hub_start(struct file_pool *pool, uint64_t deadline_ms, struct err *err)
{
    struct file_worker worker = { .fd = -EBADF, .pidfd = -EBADF };
    int r = file_worker_start(pool, deadline_ms, &worker, err);

    if (r == 0)
        r = hub_begin(pool, &worker, err);
    lock_take(&pool->lock);
    pool->hub.is_starting = false;
    if (r == 0 && !pool->is_closed) {
        pool->hub.fd = TAKE_FD(worker.fd);
        pool->hub.pidfd = TAKE_FD(worker.pidfd);
        pool->hub.idle_ms = clock_ms();
    }
    cond_broadcast(&pool->changed);
    lock_release(&pool->lock);
    file_worker_kill(&worker);
    return r;
}

/* Sends a socket to the hub. Returns 0, -EPIPE when the worker is gone, or another -errno. The
 * caller holds the lock. */
static int hub_send(const struct file_hub *hub, int fd)
{
    ssize_t n = fds_send(hub->fd, "", 1, MSG_DONTWAIT, &fd, 1);

    if (n == 1)
        return 0;
    return n == -EAGAIN || n == -ENOBUFS || n == -ETOOMANYREFS ? -EAGAIN : -EPIPE;
}

/* Opens a watch. Returns 1 with a socket, 0 when there is no hub, -EAGAIN, -EDQUOT or another
 * -errno. The caller holds the lock. */
static int hub_join(struct file_hub *hub, int *ret_fd)
{
    cleanup_close int theirs = -EBADF;
    int fds[2], r;

    if (hub->count >= FILE_HUB_MAX)
        return -EDQUOT;
    if (hub->fd < 0)
        return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    theirs = fds[1];
    r = hub_send(hub, theirs);
    if (r < 0) {
        (void)fd_close(fds[0]);
        return r;
    }
    hub->count++;
    *ret_fd = fds[0];
    return 1;
}

/* The caller holds the lock. */
static void hub_kill(struct file_hub *hub)
{
    struct file_worker worker = { .fd = TAKE_FD(hub->fd), .pidfd = TAKE_FD(hub->pidfd) };

    file_worker_kill(&worker);
}

static int hub_set_error(const struct file_pool *pool, int r, struct err *err)
{
    const char *id = file_pool_id(pool);

    if (r == -EDQUOT)
        return err_set(err, ERR_EXHAUSTED, "watch limit of sandbox '%s' reached (%d)", id,
                       FILE_HUB_MAX);
    if (r == -EAGAIN)
        return err_set(err, ERR_BUSY, "sandbox '%s' accepts no more watches now", id);
    return err_sys(err, r, "watch files of sandbox '%s'", id);
}

int file_hub_take(struct file_pool *pool, uint64_t deadline_ms, struct file_worker *ret,
                  struct err *err)
{
    bool starts = false, is_closed;
    int fd = -EBADF, r;

    lock_take(&pool->lock);
    is_closed = pool->is_closed;
    r = hub_join(&pool->hub, &fd);
    if (r == -EPIPE) {
        hub_kill(&pool->hub);
        r = 0;
    }
    if (r == 0 && !pool->hub.is_starting && !is_closed)
        starts = pool->hub.is_starting = true;
    lock_release(&pool->lock);
    if (r < 0)
        return hub_set_error(pool, r, err);
    if (r == 1)
        *ret = (struct file_worker){ .fd = fd, .pidfd = -EBADF };
    if (starts)
        r = hub_start(pool, deadline_ms, err);
    return r;
}

void file_hub_wait(struct file_pool *pool)
{
    lock_take(&pool->lock);
    if (pool->hub.is_starting && !pool->is_closed)
        file_pool_wait_change(pool);
    lock_release(&pool->lock);
}

void file_hub_give(struct file_pool *pool, struct file_worker *worker)
{
    worker->fd = fd_close(worker->fd);
    lock_take(&pool->lock);
    pool->hub.count--;
    pool->hub.idle_ms = clock_ms();
    lock_release(&pool->lock);
}
