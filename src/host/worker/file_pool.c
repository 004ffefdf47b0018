// SPDX-License-Identifier: Apache-2.0
#include "host/worker/file_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/core/descriptors.h"
#include "host/core/host_internal.h"
#include "host/machine/channel.h"
#include "host/machine/machine_internal.h"
#include "kernel/cgroup/cgroup.h"
#include "wire/file.h"
#include "wire/frame.h"

/* Since Linux 6.5; older headers lack it. */
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif
#ifndef SCM_PIDFD
#define SCM_PIDFD 4
#endif

enum {
    HELLO_SIZE = FILE_HEADER_SIZE + 4,
    START_MS = 10 * 1000,
    SOCKET_BYTES = 1024 * 1024, /* send buffer in each direction */
    WAIT_MS = 50,
};

#define GROUP "files"

void file_pool_init(struct file_pool *pool, struct machine *machine, bool is_of_tools)
{
    *pool = (struct file_pool){
        .machine = machine,
        .is_of_tools = is_of_tools,
        .hub = { .fd = -EBADF, .pidfd = -EBADF },
    };
    lock_init(&pool->lock, LOCK_FILE_POOL);
    cond_init(&pool->changed);
}

const char *file_pool_worker_name(const struct file_pool *pool)
{
    return pool->is_of_tools ? "tool worker" : "file worker";
}

const char *file_pool_id(const struct file_pool *pool)
{
    return pool->machine->id;
}

/* Closing the socket is not enough: a stopped worker does not notice. */
void file_worker_kill(struct file_worker *worker)
{
    if (worker->pidfd >= 0)
        (void)pidfd_send_signal(worker->pidfd, SIGKILL, NULL, 0);
    worker->pidfd = fd_close(worker->pidfd);
    worker->fd = fd_close(worker->fd);
}

void file_worker_signal(const struct file_worker *worker, int signal)
{
    if (worker->pidfd >= 0)
        (void)pidfd_send_signal(worker->pidfd, signal, NULL, 0);
}

/* Reads a file of /proc that describes a process. */
static int proc_read(const char *path, char *ret, size_t size)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, ret, size - 1) : -1;

    if (n < 0)
        return -errno;
    ret[n] = '\0';
    return 0;
}

/* A pid that is reused meanwhile does no harm: the worker is only signalled by its pidfd. */
bool file_worker_is_stopped(const struct file_worker *worker)
{
    char path[64], text[1024];
    const char *at;
    int pid;

    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", worker->pidfd);
    if (worker->pidfd < 0 || proc_read(path, text, sizeof(text)) < 0)
        return false;
    at = strstr(text, "\nPid:");
    pid = at ? (int)strtol(at + strlen("\nPid:"), NULL, 10) : -1;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (pid <= 0 || proc_read(path, text, sizeof(text)) < 0)
        return false;
    at = strrchr(text, ')'); /* the name before it may contain anything */
    return at && strncmp(at, ") T ", 4) == 0;
}

/* The caller holds the lock. */
static void pool_end_hub(struct file_pool *pool)
{
    struct file_worker hub = { .fd = TAKE_FD(pool->hub.fd), .pidfd = TAKE_FD(pool->hub.pidfd) };

    file_worker_kill(&hub);
}

void file_pool_close(struct file_pool *pool)
{
    lock_take(&pool->lock);
    pool->is_closed = true;
    while (pool->idle_count > 0) {
        file_worker_kill(&pool->idle[--pool->idle_count]);
        pool->count--;
    }
    pool_end_hub(pool);
    cond_broadcast(&pool->changed);
    lock_release(&pool->lock);
}

void file_pool_done(struct file_pool *pool)
{
    file_pool_close(pool);
    cond_destroy(&pool->changed);
    lock_destroy(&pool->lock);
}

/* A worker that sent something unasked, or has closed its socket, cannot be reused. */
static bool worker_is_idle(const struct file_worker *worker)
{
    char byte;

    return recv(worker->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Returns 1 with an idle worker, 0 when one may be started (it is counted already), -EAGAIN when
 * the limit is reached. */
static int pool_claim(struct file_pool *pool, bool is_read_only, struct file_worker *ret)
{
    bool may_be;
    int r = -EAGAIN;

    lock_take(&pool->lock);
    may_be = !is_read_only || pool->read_only_count < FILE_READ_ONLY_MAX;
    while (may_be && r == -EAGAIN && pool->idle_count > 0) {
        *ret = pool->idle[--pool->idle_count];
        if (worker_is_idle(ret)) {
            r = 1;
        } else {
            file_worker_kill(ret);
            pool->count--;
        }
    }
    if (may_be && r == -EAGAIN && pool->count < FILE_WORKERS_MAX) {
        pool->count++;
        r = 0;
    }
    pool->read_only_count += is_read_only && r != -EAGAIN;
    lock_release(&pool->lock);
    return r;
}

static int worker_make_sockets(int ret[2])
{
    const int on = 1, bytes = SOCKET_BYTES;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret) < 0)
        return -errno;
    (void)setsockopt(ret[0], SOL_SOCKET, SO_PASSPIDFD, &on, sizeof(on));
    for (int i = 0; i < 2; i++)
        (void)setsockopt(ret[i], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
    return 0;
}

static int worker_send_start(const struct file_pool *pool, int socket_fd, struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64);
    cleanup_close int cgroup_fd = -EBADF;
    struct machine *machine = pool->machine;
    uint16_t fds = pool->is_of_tools ? 3 : 2;
    size_t start;
    int r = descriptors_check_process(err);

    if (r == 0)
        r = cgroup_open_child(machine->host->cgroups, machine->id, GROUP, machine->guest.first_uid,
                              &cgroup_fd, err);

    if (r < 0)
        return r;
    start = frame_begin(&out, FRAME_FILES, 0, fds);
    r = frame_end(&out, start, true);
    if (r == 0)
        r = channel_send(&machine->channel, &out,
                         (int[]){ cgroup_fd, socket_fd, machine->host->tools_fd }, fds);
    return r < 0 ? err_sys(err, r, "send machine '%s' a request for a %s", machine->id,
                           file_pool_worker_name(pool))
                 : 0;
}

/* Takes the sender's pidfd from the kernel, and closes descriptors that the sender has passed
 * without being asked. */
static void worker_take_control(const struct cmsghdr *header, struct file_worker *worker)
{
    bool has_fds = header && header->cmsg_level == SOL_SOCKET &&
                   (header->cmsg_type == SCM_PIDFD || header->cmsg_type == SCM_RIGHTS);
    size_t count = has_fds ? (header->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

    for (size_t i = 0; i < count; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        if (header->cmsg_type == SCM_PIDFD)
            worker->pidfd = fd;
        else
            (void)fd_close(fd);
    }
}

/* Receives the first message, and the pidfd of its sender. */
static ssize_t worker_receive_hello(struct file_worker *worker, uint64_t deadline_ms,
                                    char data[HELLO_SIZE])
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = { .iov_base = data, .iov_len = HELLO_SIZE };
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    struct pollfd wait = { .fd = worker->fd, .events = POLLIN };
    uint64_t now_ms = clock_ms();
    const int off = 0;
    ssize_t n;

    n = poll(&wait, 1,
             deadline_ms == 0 || deadline_ms > now_ms + START_MS ? START_MS
             : deadline_ms > now_ms                              ? (int)(deadline_ms - now_ms)
                                                                 : 0);
    if (n <= 0)
        return n < 0 ? -errno : -ETIMEDOUT;
    n = recvmsg(worker->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0)
        return -errno;
    worker_take_control(CMSG_FIRSTHDR(&message), worker);
    (void)setsockopt(worker->fd, SOL_SOCKET, SO_PASSPIDFD, &off, sizeof(off));
    return n;
}

/* Converts the errno with which holt-init refused to start a worker. */
static int worker_set_start_error(const struct file_pool *pool, uint32_t errnum, struct err *err)
{
    const char *id = pool->machine->id, *what = file_pool_worker_name(pool);

    if (errnum == EAGAIN || errnum == ENOMEM)
        return err_set(err, ERR_EXHAUSTED,
                       "sandbox '%s' cannot start a %s: its process or memory limit is reached", id,
                       what);
    return err_sys(err, -(int)(errnum < 4096 ? errnum : EIO), "start a %s in '%s'", what, id);
}

/* A holt-init that knows no tool workers closes the socket. */
static int worker_set_silent_error(const struct file_pool *pool, struct err *err)
{
    (void)err_set(err, ERR_BUSY, "the %s of sandbox '%s' ended at its start",
                  file_pool_worker_name(pool), pool->machine->id);
    if (pool->is_of_tools)
        (void)err_remedy(err, "stop and start the sandbox if an older Holt started it");
    return -EBUSY;
}

static int worker_wait_hello(const struct file_pool *pool, struct file_worker *worker,
                             uint64_t deadline_ms, struct err *err)
{
    const char *id = pool->machine->id;
    struct file_parser parser = { 0 };
    struct file_piece piece = { 0 };
    char data[HELLO_SIZE];
    uint32_t errnum = 0;
    ssize_t n = worker_receive_hello(worker, deadline_ms, data);

    if (n == -ETIMEDOUT && deadline_ms > 0 && clock_ms() >= deadline_ms)
        return err_set(err, ERR_DEADLINE, "sandbox '%s' did not start a %s before the deadline", id,
                       file_pool_worker_name(pool));
    if (n == -ETIMEDOUT)
        return err_set(err, ERR_BUSY, "sandbox '%s' did not start a %s within %d s", id,
                       file_pool_worker_name(pool), START_MS / 1000);
    if (n <= 0)
        return worker_set_silent_error(pool, err);
    if (n != HELLO_SIZE || file_next(&parser, data, (size_t)n, &piece) != n ||
        piece.type != FILE_HELLO || !file_get_number(&piece, &errnum))
        return err_set(err, ERR_INTERNAL, "malformed hello of a worker of sandbox '%s'", id);
    /* holt-init sends the failure itself: the pidfd is its own. */
    if (errnum != 0)
        worker->pidfd = fd_close(worker->pidfd);
    return errnum == 0 ? 0 : worker_set_start_error(pool, errnum, err);
}

int file_worker_start(const struct file_pool *pool, uint64_t deadline_ms, struct file_worker *ret,
                      struct err *err)
{
    struct file_worker worker = { .fd = -EBADF, .pidfd = -EBADF };
    cleanup_close int theirs = -EBADF;
    int sockets[2], r = worker_make_sockets(sockets);

    if (r < 0)
        return err_sys(err, r, "create a socket for a %s", file_pool_worker_name(pool));
    worker.fd = sockets[0];
    theirs = sockets[1];
    r = worker_send_start(pool, theirs, err);
    (void)fd_close(TAKE_FD(theirs)); /* otherwise the end of the worker would go unnoticed */
    if (r == 0)
        r = worker_wait_hello(pool, &worker, deadline_ms, err);
    if (r < 0) {
        file_worker_kill(&worker);
        return r;
    }
    *ret = worker;
    return 0;
}

static void pool_uncount(struct file_pool *pool, bool is_read_only)
{
    lock_take(&pool->lock);
    pool->count--;
    pool->read_only_count -= is_read_only;
    cond_signal(&pool->changed);
    lock_release(&pool->lock);
}

int file_pool_take(struct file_pool *pool, bool is_read_only, uint64_t deadline_ms,
                   struct file_worker *ret, struct err *err)
{
    int r = pool_claim(pool, is_read_only, ret);

    if (r == -EAGAIN)
        return 0;
    if (r == 0)
        r = file_worker_start(pool, deadline_ms, ret, err);
    if (r < 0) {
        pool_uncount(pool, is_read_only);
        return r;
    }
    ret->is_read_only = is_read_only;
    return 1;
}

/* The caller holds the lock. */
static bool pool_is_full(const struct file_pool *pool, bool is_read_only)
{
    return (pool->count >= FILE_WORKERS_MAX && pool->idle_count == 0) ||
           (is_read_only && pool->read_only_count >= FILE_READ_ONLY_MAX);
}

void file_pool_wait_change(struct file_pool *pool)
{
    (void)cond_wait_until(&pool->changed, &pool->lock, clock_after_ms(WAIT_MS));
}

void file_pool_wait(struct file_pool *pool, bool is_read_only)
{
    lock_take(&pool->lock);
    if (pool_is_full(pool, is_read_only) && !pool->is_closed)
        file_pool_wait_change(pool);
    lock_release(&pool->lock);
}

void file_pool_prune(struct file_pool *pool, uint64_t now_ms)
{
    unsigned old = 0;

    lock_take(&pool->lock);
    while (old < pool->idle_count && pool->idle[old].idle_ms + FILE_IDLE_MS < now_ms)
        file_worker_kill(&pool->idle[old++]);
    pool->idle_count -= old;
    pool->count -= old;
    if (pool->hub.count == 0 && pool->hub.idle_ms + FILE_IDLE_MS < now_ms)
        pool_end_hub(pool);
    memmove(pool->idle, pool->idle + old, pool->idle_count * sizeof(pool->idle[0]));
    lock_release(&pool->lock);
}

void file_pool_give(struct file_pool *pool, struct file_worker *worker, bool is_good)
{
    lock_take(&pool->lock);
    pool->read_only_count -= worker->is_read_only;
    worker->is_read_only = false;
    if (is_good && !pool->is_closed && pool->idle_count < FILE_WORKERS_MAX) {
        worker->idle_ms = clock_ms();
        pool->idle[pool->idle_count++] = *worker;
    } else {
        file_worker_kill(worker);
        pool->count--;
    }
    cond_signal(&pool->changed);
    lock_release(&pool->lock);
}
