// SPDX-License-Identifier: Apache-2.0
#include "guest/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/files/file_internal.h"
#include "guest/guest.h"
#include "kernel/caps.h"

enum { SOCKET_FD = 3, PROGRAM_FD = 4, RECEIVE_CHUNK = 256 * 1024, FLUSH_AT = 64 * 1024 };

int worker_next(struct worker *worker, struct file_piece *ret)
{
    for (;;) {
        struct buf *in = &worker->in;
        ssize_t n =
            file_next(&worker->parser, in->data + worker->taken, in->len - worker->taken, ret);

        if (n < 0)
            return (int)n;
        if (n > 0) {
            worker->taken += (size_t)n;
            return 0;
        }
        buf_consume(in, worker->taken);
        worker->taken = 0;
        if (buf_reserve(in, RECEIVE_CHUNK) < 0)
            return -ENOBUFS;
        /* A reader in recv is woken whenever the daemon reads as well; a poller is not. */
        (void)poll(&(struct pollfd){ .fd = worker->fd, .events = POLLIN }, 1, -1);
        n = recv(worker->fd, in->data + in->len, RECEIVE_CHUNK, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EPIPE;
        in->len += (size_t)n;
    }
}

int worker_flush(struct worker *worker)
{
    size_t done = 0;

    while (done < worker->out.len) {
        ssize_t n = send(worker->fd, worker->out.data + done, worker->out.len - done, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    buf_clear(&worker->out);
    return 0;
}

int worker_flush_if_large(struct worker *worker)
{
    return worker->out.len < FLUSH_AT ? 0 : worker_flush(worker);
}

int worker_fail(struct worker *worker, int r, const char *path, const char *why)
{
    const struct file_failure failure = { .errnum = (uint32_t)-r, .path = path, .why = why };

    worker->has_failed = true;
    r = file_put_failure(&worker->out, FILE_FAILED, &failure);
    return r < 0 ? r : worker_flush(worker);
}

static file_fn *const handlers[FILE_MESSAGE_TYPES] = {
    [FILE_STAT] = file_stat,     [FILE_LIST] = file_list,   [FILE_READ] = file_read,
    [FILE_WRITE] = file_write,   [FILE_MKDIR] = file_mkdir, [FILE_MOVE] = file_move,
    [FILE_REMOVE] = file_remove, [FILE_PULL] = file_pull,   [FILE_PUSH] = file_push,
    [FILE_WATCH] = file_watch,   [FILE_HUB] = file_hub,
};

/* New files get the fs ids. Changing those drops capabilities, which are then raised again. */
static int worker_assume_fs_ids(const struct worker *worker)
{
    (void)syscall(SYS_setfsgid, worker->gid);
    (void)syscall(SYS_setfsuid, worker->uid);
    return caps_raise(worker->capabilities);
}

/* The effective ids decide about access to files; the real ids allow the return to root. Without
 * root as effective user there are no capabilities either. */
static int worker_assume_user(struct worker *worker, const struct file_request *request)
{
    struct names_user user = { .home = "/root" };

    if (request->user[0] && names_find(&worker->names, request->user, &user) < 0)
        return -ESRCH;
    (void)snprintf(worker->home, sizeof(worker->home), "%s", user.home);
    worker->uid = user.uid;
    worker->gid = user.gid;
    worker->gives_ownership = request->flags & FILE_GIVE;
    worker->wants_details = request->flags & FILE_DETAILS;
    if (user.uid == 0)
        return 0;
    if (worker->gives_ownership)
        return worker_assume_fs_ids(worker);
    if (syscall(SYS_setgroups, user.group_count, user.groups) < 0 ||
        syscall(SYS_setresgid, -1, user.gid, -1) < 0 ||
        syscall(SYS_setresuid, -1, user.uid, -1) < 0)
        return -errno;
    return 0;
}

static void worker_become_root(struct worker *worker)
{
    if (worker->uid == 0)
        return;
    (void)syscall(SYS_setfsuid, 0);
    (void)syscall(SYS_setfsgid, 0);
    if (syscall(SYS_setresuid, -1, 0, -1) < 0 || syscall(SYS_setresgid, -1, 0, -1) < 0 ||
        syscall(SYS_setgroups, 0, NULL) < 0)
        _exit(1);
    worker->uid = worker->gid = 0;
}

/* Makes paths relative to the user's home absolute (FILE_FROM_HOME). */
static int resolve_home_paths(const struct worker *worker, struct file_request *request)
{
    static char path[ENTRY_PATH_MAX + 1], to[ENTRY_PATH_MAX + 1];
    int r;

    if (!(request->flags & FILE_FROM_HOME))
        return 0;
    r = entry_path_from(worker->home, request->path, path);
    if (r == 0)
        r = entry_path_from(worker->home, request->to, to);
    if (r < 0)
        return r;
    request->path = path;
    request->to = to;
    return 0;
}

/* Skips the data that follows a write request which has already failed. */
static int skip_request_data(struct worker *worker, const struct file_request *request)
{
    struct file_piece piece = { 0 };
    int r = 0;

    if (request->type != FILE_WRITE && request->type != FILE_PUSH)
        return 0;
    while (r == 0 && piece.type != FILE_END && piece.type != FILE_ABORT)
        r = worker_next(worker, &piece);
    return r;
}

static int worker_serve(struct worker *worker)
{
    struct buf kept = BUF_INIT(FILE_WHOLE_MAX);
    struct file_request request;
    struct file_piece piece;
    int r = worker_next(worker, &piece);

    if (r < 0)
        return r;
    /* The request's strings must outlive the pieces that follow it. */
    if (buf_add(&kept, piece.data, piece.len) < 0)
        return -ENOMEM;
    piece.data = kept.data;
    if (!kept.data || !file_get_request(&piece, &request))
        r = -EPROTO;
    worker->has_failed = false;
    if (r == 0) {
        names_refresh(&worker->names);
        r = worker_assume_user(worker, &request);
        if (r == 0)
            r = resolve_home_paths(worker, &request);
        if (r < 0) {
            r = worker_fail(worker, r, request.path, r == -ESRCH ? "no such user" : NULL);
            if (r == 0)
                r = skip_request_data(worker, &request);
        } else {
            r = handlers[request.type](worker, &request);
        }
        worker_become_root(worker);
    }
    buf_done(&kept);
    return r;
}

static int apply_filter(const struct spawn_rules *rules)
{
    struct sock_fprog program = {
        .len = (unsigned short)(rules->filter_len / sizeof(struct sock_filter)),
        .filter = (struct sock_filter *)(uintptr_t)rules->filter,
    };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    if (!rules->filter)
        return 0;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

/* Moves the socket and the program (negative: none) to fixed numbers and closes all others. */
static int worker_set_up_fds(const struct guest *guest, int socket_fd, int program_fd)
{
    int last = SOCKET_FD;

    for (int fd = 0; fd < SOCKET_FD; fd++)
        if (dup2(guest->base.null_fd, fd) < 0)
            return -errno;
    if (program_fd >= 0) {
        /* Moved first, because it may have the socket's number. */
        program_fd = fcntl(program_fd, F_DUPFD_CLOEXEC, PROGRAM_FD + 1);
        if (program_fd < 0)
            return -errno;
    }
    if (socket_fd != SOCKET_FD && dup2(socket_fd, SOCKET_FD) < 0)
        return -errno;
    if (program_fd >= 0 && dup3(program_fd, last = PROGRAM_FD, O_CLOEXEC) < 0)
        return -errno;
    if (fcntl(SOCKET_FD, F_SETFD, program_fd >= 0 ? 0 : FD_CLOEXEC) < 0 ||
        syscall(SYS_close_range, last + 1, ~0U, 0) < 0)
        return -errno;
    return 0;
}

/* Like spawn.c does for a program, but without exec. Signals stay blocked. */
static int worker_set_up(const struct guest *guest)
{
    uint64_t keep = guest->rules.capabilities;
    int r;

    (void)prctl(PR_SET_NAME, "holt-files", 0, 0, 0);
    (void)umask(0);
    if (setsid() < 0 || unshare(CLONE_NEWCGROUP) < 0 || chdir("/") < 0 ||
        syscall(SYS_setgroups, 0, NULL) < 0)
        return -errno;
    r = caps_set(keep, keep, 0);
    return r < 0 ? r : apply_filter(&guest->rules);
}

static void send_hello(int fd, int r)
{
    struct buf out = BUF_INIT(64);

    if (file_put_number(&out, FILE_HELLO, (uint32_t)-r) == 0)
        (void)!send(fd, out.data, out.len, MSG_NOSIGNAL);
    buf_done(&out);
}

/* A tool worker executes a program of the daemon, which sends the hello itself. The file is
 * executable but unreadable in the sandbox, so the kernel protects the process from ptrace as it
 * does holt-init. */
static int exec_tools(void)
{
    static const char *const args[] = { "holt-tools", NULL }, *const environment[] = { NULL };

    (void)syscall(SYS_execveat, PROGRAM_FD, "", args, environment, AT_EMPTY_PATH);
    return -errno;
}

static _Noreturn void worker_main(const struct guest *guest, int socket_fd, int program_fd)
{
    static struct worker worker;
    int r = worker_set_up_fds(guest, socket_fd, program_fd);

    if (r == 0)
        socket_fd = SOCKET_FD;
    if (r == 0)
        r = worker_set_up(guest);
    if (r == 0 && program_fd >= 0)
        r = exec_tools();
    send_hello(socket_fd, r);
    if (r < 0)
        _exit(1);
    worker.fd = SOCKET_FD;
    worker.capabilities = guest->rules.capabilities;
    worker.in.max = FILE_HEADER_SIZE + FILE_DATA_MAX + FILE_WHOLE_MAX + RECEIVE_CHUNK;
    worker.out.max = 2 * (FILE_HEADER_SIZE + FILE_DATA_MAX) + FLUSH_AT;
    while (worker_serve(&worker) == 0)
        continue;
    _exit(0);
}

void file_start(struct guest *guest, const struct frame *frame, const int *fds)
{
    bool is_whole = frame->fds == 2 || frame->fds == 3;
    cleanup_close int cgroup_fd = is_whole ? fds[0] : -EBADF;
    cleanup_close int socket_fd = is_whole ? fds[1] : -EBADF;
    cleanup_close int program_fd = frame->fds == 3 ? fds[2] : -EBADF;
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)cgroup_fd,
    };
    long pid;

    for (int i = 0; !is_whole && i < frame->fds; i++)
        (void)close(fds[i]);
    if (!is_whole)
        return;
    if (!guest->is_rooted) {
        send_hello(socket_fd, -ENXIO);
        return;
    }
    pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        worker_main(guest, socket_fd, program_fd);
    if (pid < 0)
        send_hello(socket_fd, -errno);
}
