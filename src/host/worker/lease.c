// SPDX-License-Identifier: Apache-2.0
#include "host/worker/lease.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "host/sandbox/sandbox_internal.h"

static bool client_is_gone(int watch_fd)
{
    struct pollfd wait = { .fd = watch_fd, .events = POLLRDHUP };

    return watch_fd >= 0 && poll(&wait, 1, 0) > 0;
}

static bool is_late(const struct worker_loan *loan)
{
    return loan->deadline_ms > 0 && clock_ms() >= loan->deadline_ms;
}

/* A place in the gate is only held while a worker is on its way: waiting for one to come back may
 * take long, and a pause or a rollback must not wait for that. */
static int take_worker(struct worker_loan *loan, const struct worker_request *wish, struct err *err)
{
    for (;;) {
        struct machine *machine = NULL;
        struct file_pool *pool;
        int r = sandbox_pass(loan->sandbox, &machine, err);

        if (r < 0)
            return r;
        (void)machine_ref(machine);
        pool = wish->is_of_tools ? &machine->tools : &machine->files;
        r = wish->is_watch
                ? file_hub_take(pool, loan->deadline_ms, &loan->worker, err)
                : file_pool_take(pool, wish->only_looks, loan->deadline_ms, &loan->worker, err);
        sandbox_passed(loan->sandbox, machine);
        if (r == 1) {
            loan->machine = machine;
            loan->pool = pool;
            return 0;
        }
        if (r == 0 && wish->is_watch)
            file_hub_wait(pool);
        else if (r == 0)
            file_pool_wait(pool, wish->only_looks);
        machine_unref(machine);
        if (r < 0)
            return r;
        if (client_is_gone(loan->watch_fd))
            return -ECANCELED;
        if (is_late(loan))
            return loan_refuse(loan, -ETIMEDOUT, err);
    }
}

int loan_begin(struct worker_loan *loan, struct sandbox *sandbox, const struct worker_request *wish,
               struct err *err)
{
    *loan = (struct worker_loan){
        .sandbox = sandbox,
        .worker = { .fd = -EBADF, .pidfd = -EBADF },
        .is_watch = wish->is_watch,
        .watch_fd = wish->watch_fd,
        .deadline_ms = wish->deadline_ms,
    };
    sandbox_attach(sandbox);
    return take_worker(loan, wish, err);
}

/* How long there is left to wait, in the terms of poll. */
static int left_ms(const struct worker_loan *loan, int timeout_ms)
{
    uint64_t now_ms, left;

    if (loan->deadline_ms == 0)
        return timeout_ms;
    now_ms = clock_ms();
    left = loan->deadline_ms > now_ms ? loan->deadline_ms - now_ms : 0;
    if (timeout_ms >= 0 && (uint64_t)timeout_ms < left)
        return timeout_ms;
    return left < INT_MAX ? (int)left : INT_MAX;
}

int loan_wait(const struct worker_loan *loan, short events, int timeout_ms)
{
    struct pollfd fds[] = {
        { .fd = loan->worker.fd, .events = events },
        { .fd = loan->watch_fd, .events = POLLRDHUP },
    };
    int n = poll(fds, loan->watch_fd >= 0 ? 2 : 1, left_ms(loan, timeout_ms));

    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -ETIMEDOUT;
    return fds[0].revents == 0 ? -ECANCELED : 0;
}

int loan_send(const struct worker_loan *loan, struct iovec *parts, size_t count)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };

    while (message.msg_iovlen > 0) {
        ssize_t n = sendmsg(loan->worker.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        int r = 0;

        if (n < 0 && errno == EAGAIN)
            r = loan_wait(loan, POLLOUT, -1);
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

int loan_receive(const struct worker_loan *loan, struct buf *in, size_t room)
{
    int r = buf_reserve(in, room);

    while (r == 0) {
        ssize_t n = recv(loan->worker.fd, in->data + in->len, room, MSG_DONTWAIT);

        if (n > 0) {
            in->len += (size_t)n;
            return 0;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return -EPIPE;
        if (errno == EAGAIN)
            r = loan_wait(loan, POLLIN, -1);
    }
    return r;
}

int loan_refuse(const struct worker_loan *loan, int r, struct err *err)
{
    const char *id = loan->sandbox->info.id;
    const char *what = loan->pool ? file_pool_what(loan->pool) : "worker";

    if (r == -ECANCELED)
        return r;
    if (r == -ETIMEDOUT)
        return err_set(err, ERR_DEADLINE, "the %s in sandbox '%s' took too long", what, id);
    /* It was killed, from inside or together with all that ran there. */
    if (r == -EPIPE)
        return err_set(err, ERR_BUSY,
                       "the %s in sandbox '%s' has ended; what it was doing may be half done", what,
                       id);
    return err_sys(err, r, "wait for a %s", what);
}

/* As sandbox_detach, but most calls are so short that nobody need look whether the sandbox is idle
 * now; unless it is to be, some time after the last. */
static void leave(struct sandbox *sandbox)
{
    bool has_idle_time;

    lock_take(&sandbox->lock);
    sandbox->attached--;
    sandbox->info.last_active_ms = clock_wall_ms();
    has_idle_time = sandbox->info.idle_timeout_ms > 0;
    lock_release(&sandbox->lock);
    if (has_idle_time)
        expiry_wake(sandbox->host->expiry);
}

void loan_end(struct worker_loan *loan, bool is_good)
{
    if (loan->machine) {
        if (loan->is_watch)
            file_hub_give(loan->pool, &loan->worker);
        else
            file_pool_give(loan->pool, &loan->worker, is_good);
        machine_unref(loan->machine);
    }
    leave(loan->sandbox);
}
