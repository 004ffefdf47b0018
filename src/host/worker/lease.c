// SPDX-License-Identifier: Apache-2.0
#include "host/worker/lease.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/sandbox/expiry.h"
#include "host/sandbox/sandbox_internal.h"

enum {
    STOPPED_CHECK_MS = 2000, /* how long a stopped worker may hold up its call */
    STOPPED_MOST = 3,        /* times that a worker is resumed while a call waits for it */
};

static bool client_is_gone(int watch_fd)
{
    struct pollfd wait = { .fd = watch_fd, .events = POLLRDHUP };

    return watch_fd >= 0 && poll(&wait, 1, 0) > 0;
}

static bool lease_is_late(const struct worker_lease *lease)
{
    return lease->deadline_ms > 0 && clock_ms() >= lease->deadline_ms;
}

/* Holds the machine only while a worker starts: waiting for one to be returned may take long, and a
 * pause or a rollback must not wait for that. */
static int lease_take_worker(struct worker_lease *lease, const struct worker_request *request,
                             struct err *err)
{
    for (;;) {
        struct machine *machine = NULL;
        struct file_pool *pool;
        int r = sandbox_hold_machine(lease->sandbox, &machine, err);

        if (r < 0)
            return r;
        (void)machine_ref(machine);
        pool = request->is_of_tools ? &machine->tools : &machine->files;
        r = request->is_watch ? file_hub_take(pool, lease->deadline_ms, &lease->worker, err)
                              : file_pool_take(pool, request->is_read_only, lease->deadline_ms,
                                               &lease->worker, err);
        sandbox_release_machine(lease->sandbox, machine);
        if (r == 1) {
            lease->machine = machine;
            lease->pool = pool;
            return 0;
        }
        if (r == 0 && request->is_watch)
            file_hub_wait(pool);
        else if (r == 0)
            file_pool_wait(pool, request->is_read_only);
        machine_unref(machine);
        if (r < 0)
            return r;
        if (client_is_gone(lease->watch_fd))
            return -ECANCELED;
        if (lease_is_late(lease))
            return lease_set_error(lease, -ETIMEDOUT, err);
    }
}

int lease_begin(struct worker_lease *lease, struct sandbox *sandbox,
                const struct worker_request *request, struct err *err)
{
    *lease = (struct worker_lease){
        .sandbox = sandbox,
        .worker = { .fd = -EBADF, .pidfd = -EBADF },
        .is_watch = request->is_watch,
        .watch_fd = request->watch_fd,
        .deadline_ms = request->deadline_ms,
    };
    sandbox_attach(sandbox);
    return lease_take_worker(lease, request, err);
}

/* Returns the timeout for poll. */
static int lease_left_ms(const struct worker_lease *lease, int timeout_ms)
{
    uint64_t now_ms, left;

    if (lease->deadline_ms == 0)
        return timeout_ms;
    now_ms = clock_ms();
    left = lease->deadline_ms > now_ms ? lease->deadline_ms - now_ms : 0;
    if (timeout_ms >= 0 && (uint64_t)timeout_ms < left)
        return timeout_ms;
    return left < INT_MAX ? (int)left : INT_MAX;
}

/* Waits once, for at most this time (-1: no limit). */
static int lease_poll(const struct worker_lease *lease, short events, int timeout_ms)
{
    struct pollfd fds[] = {
        { .fd = lease->worker.fd, .events = events },
        { .fd = lease->watch_fd, .events = POLLRDHUP },
    };
    int n = poll(fds, lease->watch_fd >= 0 ? 2 : 1, timeout_ms);

    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -ETIMEDOUT;
    return fds[0].revents == 0 ? -ECANCELED : 0;
}

/* Resumes a worker that a process of the sandbox has stopped. One that is stopped again and again
 * is killed, so that no call waits for it for ever. */
static int lease_resume(const struct worker_lease *lease, unsigned *stops)
{
    if (!file_worker_is_stopped(&lease->worker))
        return 0;
    if (++*stops > STOPPED_MOST) {
        file_worker_signal(&lease->worker, SIGKILL);
        return -EPIPE;
    }
    file_worker_signal(&lease->worker, SIGCONT);
    return 0;
}

int lease_wait(const struct worker_lease *lease, short events, int timeout_ms)
{
    int left_ms = lease_left_ms(lease, timeout_ms);
    unsigned stops = 0;

    for (;;) {
        bool is_last = lease->worker.pidfd < 0 || (left_ms >= 0 && left_ms <= STOPPED_CHECK_MS);
        int r = lease_poll(lease, events, is_last ? left_ms : STOPPED_CHECK_MS);

        if (r != -ETIMEDOUT || is_last)
            return r;
        r = lease_resume(lease, &stops);
        if (r < 0)
            return r;
        if (left_ms >= 0)
            left_ms -= STOPPED_CHECK_MS;
    }
}

int lease_send(const struct worker_lease *lease, struct iovec *parts, size_t count)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };

    while (message.msg_iovlen > 0) {
        ssize_t n = sendmsg(lease->worker.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        int r = 0;

        if (n < 0 && errno == EAGAIN)
            r = lease_wait(lease, POLLOUT, -1);
        else if (n < 0 && errno != EINTR)
            r = -EPIPE;
        if (r < 0)
            return r;
        if (n < 0)
            continue;
        iov_advance(&message, (size_t)n);
    }
    return 0;
}

int lease_receive(const struct worker_lease *lease, struct buf *in, size_t room)
{
    int r = buf_reserve(in, room);

    while (r == 0) {
        ssize_t n = recv(lease->worker.fd, in->data + in->len, room, MSG_DONTWAIT);

        if (n > 0) {
            in->len += (size_t)n;
            return 0;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return -EPIPE;
        if (errno == EAGAIN)
            r = lease_wait(lease, POLLIN, -1);
    }
    return r;
}

int lease_set_error(const struct worker_lease *lease, int r, struct err *err)
{
    const char *id = lease->sandbox->info.id;
    const char *what = lease->pool ? file_pool_worker_name(lease->pool) : "worker";

    if (r == -ECANCELED)
        return r;
    if (r == -ETIMEDOUT)
        return err_set(err, ERR_DEADLINE,
                       "the %s in sandbox '%s' did not finish before the deadline", what, id);
    /* The worker was killed, by a process inside or together with all processes. */
    if (r == -EPIPE)
        return err_set(err, ERR_BUSY,
                       "the %s in sandbox '%s' was killed; its operation may be incomplete", what,
                       id);
    return err_sys(err, r, "wait for a %s", what);
}

/* Does what sandbox_detach does, but wakes the expiry thread only if the sandbox has an idle
 * timeout, since most calls are short. */
static void lease_detach(struct sandbox *sandbox)
{
    bool has_idle_time;

    lock_take(&sandbox->lock);
    sandbox->attached--;
    sandbox_touch(sandbox);
    has_idle_time = sandbox->info.idle_timeout_ms > 0;
    lock_release(&sandbox->lock);
    if (has_idle_time)
        expiry_wake(sandbox->host->expiry);
}

void lease_end(struct worker_lease *lease, bool is_good)
{
    if (lease->machine) {
        if (lease->is_watch)
            file_hub_give(lease->pool, &lease->worker);
        else
            file_pool_give(lease->pool, &lease->worker, is_good);
        machine_unref(lease->machine);
    }
    lease_detach(lease->sandbox);
}
