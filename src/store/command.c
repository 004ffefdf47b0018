// SPDX-License-Identifier: Apache-2.0
#include "store/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/spawn_signals.h"

enum { CHUNK_BYTES = 16 << 10, MS_PER_SECOND = 1000, NS_PER_MS = 1000000 };

/* A program that runs. */
struct running {
    pid_t pid;
    int pid_fd, out_fd, complaint_fd;
    struct buf *output;
    struct buf *complaint;
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * MS_PER_SECOND + now.tv_nsec / NS_PER_MS;
}

static int find_program(const char *name, char ret_path[static PATH_MAX])
{
    static const char *const dirs[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };

    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
        (void)snprintf(ret_path, PATH_MAX, "%s/%s", dirs[i], name);
        if (access(ret_path, X_OK) == 0)
            return 0;
    }
    return -ENOENT;
}

static int spawn(const char *path, const char *const args[], const int fds[static 3], pid_t *ret)
{
    static char *const env[] = { (char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                 (char *)(uintptr_t) "LC_ALL=C", NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int r;

    (void)posix_spawnattr_init(&attributes);
    (void)spawn_signals_reset(&attributes, 0);
    (void)posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd < 3; fd++)
        (void)posix_spawn_file_actions_adddup2(&actions, fds[fd], fd);
    r = posix_spawn(ret, path, &actions, &attributes, (char *const *)(uintptr_t)args, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return -r;
}

static int running_start(struct running *running, const char *path, const char *const args[])
{
    cleanup_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    cleanup_close int out_fd = -EBADF, complaint_fd = -EBADF;
    int ends[2], r;

    if (null_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    running->out_fd = ends[0];
    out_fd = ends[1];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    running->complaint_fd = ends[0];
    complaint_fd = ends[1];
    /* Only our ends: the program's must block as it expects. */
    if (fcntl(running->out_fd, F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(running->complaint_fd, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    r = spawn(path, args, (const int[]){ null_fd, out_fd, complaint_fd }, &running->pid);
    if (r < 0)
        return r;
    running->pid_fd = pidfd_open(running->pid, 0);
    return running->pid_fd < 0 ? -errno : 0;
}

static void running_done(struct running *running)
{
    /* Not reaped yet means that it was given up. */
    if (running->pid > 0) {
        (void)kill(running->pid, SIGKILL);
        while (waitpid(running->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    (void)fd_close(running->pid_fd);
    (void)fd_close(running->out_fd);
    (void)fd_close(running->complaint_fd);
}

/* Reads what is there, and forgets what does not fit where `may_cut`. 0 or -ENOBUFS. */
static int drain(int *fd, struct buf *into, bool may_cut)
{
    char chunk[CHUNK_BYTES];
    ssize_t n;

    while ((n = read(*fd, chunk, sizeof(chunk))) > 0) {
        size_t len = (size_t)n;

        if (may_cut && len > into->max - into->len)
            len = into->max - into->len;
        if (into && buf_add(into, chunk, len) < 0)
            return -ENOBUFS;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        *fd = fd_close(*fd);
    return 0;
}

static int drain_both(struct running *running)
{
    int r = running->out_fd < 0 ? 0 : drain(&running->out_fd, running->output, false);

    if (r == 0 && running->complaint_fd >= 0)
        r = drain(&running->complaint_fd, running->complaint, true);
    return r;
}

/* Until the program itself ends: something it has left running may keep the pipes open. */
static int running_follow(struct running *running, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd fds[] = {
            { .fd = running->pid_fd, .events = POLLIN },
            { .fd = running->out_fd, .events = POLLIN },
            { .fd = running->complaint_fd, .events = POLLIN },
        };
        int64_t left_ms = deadline_ms - now_ms();
        int r;

        if (left_ms <= 0)
            return -ETIMEDOUT;
        if (poll(fds, ARRAY_SIZE(fds), (int)left_ms) < 0 && errno != EINTR)
            return -errno;
        r = drain_both(running);
        if (r < 0 || fds[0].revents)
            return r;
    }
}

static int running_reap(struct running *running)
{
    int status = 0;

    while (waitpid(running->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    running->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int command_run(const char *const args[], int timeout_ms, struct buf *output,
                struct command_end *ret)
{
    cleanup_with(buf_done) struct buf complaint = BUF_INIT(COMMAND_COMPLAINT_BYTES - 1);
    cleanup_with(running_done) struct running running = {
        .pid_fd = -EBADF,
        .out_fd = -EBADF,
        .complaint_fd = -EBADF,
        .output = output,
        .complaint = &complaint,
    };
    char path[PATH_MAX];
    int r = find_program(args[0], path);

    if (r == 0)
        r = running_start(&running, path, args);
    if (r == 0)
        r = running_follow(&running, now_ms() + timeout_ms);
    if (r < 0)
        return r;
    ret->status = running_reap(&running);
    r = drain_both(&running); /* what came between the last look and its end */
    (void)snprintf(ret->complaint, sizeof(ret->complaint), "%s",
                   complaint.data ? complaint.data : "");
    return r;
}
