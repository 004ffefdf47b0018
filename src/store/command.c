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
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/spawn_signals.h"

enum { CHUNK_BYTES = 16 << 10 };

/* A child program. */
struct command_child {
    pid_t pid;
    int pid_fd, out_fd, stderr_fd;
    struct buf *output;
    struct buf *stderr_text;
};

static int find_program(const char *name, char ret_path[static PATH_MAX])
{
    static const char *const dirs[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };

    if (name[0] == '/') {
        (void)snprintf(ret_path, PATH_MAX, "%s", name);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
        (void)snprintf(ret_path, PATH_MAX, "%s/%s", dirs[i], name);
        if (access(ret_path, X_OK) == 0)
            return 0;
    }
    return -ENOENT;
}

static int command_spawn(const char *path, const char *const args[], const int fds[static 3],
                         pid_t *ret)
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

static int child_start(struct command_child *child, const char *path, const char *const args[])
{
    cleanup_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    cleanup_close int out_fd = -EBADF, stderr_fd = -EBADF;
    int ends[2], r;

    if (null_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    child->out_fd = ends[0];
    out_fd = ends[1];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    child->stderr_fd = ends[0];
    stderr_fd = ends[1];
    /* Only our ends: the program expects blocking pipes. */
    if (fcntl(child->out_fd, F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(child->stderr_fd, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    r = command_spawn(path, args, (const int[]){ null_fd, out_fd, stderr_fd }, &child->pid);
    if (r < 0)
        return r;
    child->pid_fd = pidfd_open(child->pid, 0);
    return child->pid_fd < 0 ? -errno : 0;
}

static void child_done(struct command_child *child)
{
    /* Not reaped yet: the run was given up. */
    if (child->pid > 0) {
        (void)kill(child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    (void)fd_close(child->pid_fd);
    (void)fd_close(child->out_fd);
    (void)fd_close(child->stderr_fd);
}

/* Reads what is available. With may_cut, drops what does not fit. Returns 0 or -ENOBUFS. */
static int pipe_drain(int *fd, struct buf *into, bool may_cut)
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

static int command_drain(struct command_child *child)
{
    int r = child->out_fd < 0 ? 0 : pipe_drain(&child->out_fd, child->output, false);

    if (r == 0 && child->stderr_fd >= 0)
        r = pipe_drain(&child->stderr_fd, child->stderr_text, true);
    return r;
}

/* Waits for the program itself: a process that it left behind may keep the pipes open. */
static int child_follow(struct command_child *child, uint64_t deadline_ms)
{
    for (;;) {
        struct pollfd fds[] = {
            { .fd = child->pid_fd, .events = POLLIN },
            { .fd = child->out_fd, .events = POLLIN },
            { .fd = child->stderr_fd, .events = POLLIN },
        };
        int left_ms = clock_left_ms(deadline_ms);
        int r;

        if (left_ms == 0)
            return -ETIMEDOUT;
        if (poll(fds, ARRAY_SIZE(fds), left_ms) < 0 && errno != EINTR)
            return -errno;
        r = command_drain(child);
        if (r < 0 || fds[0].revents)
            return r;
    }
}

static int child_reap(struct command_child *child)
{
    int status = 0;

    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    child->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int command_run(const char *const args[], int timeout_ms, struct buf *output,
                struct command_result *ret)
{
    cleanup_with(buf_done) struct buf stderr_text = BUF_INIT(COMMAND_STDERR_BYTES - 1);
    cleanup_with(child_done) struct command_child child = {
        .pid_fd = -EBADF,
        .out_fd = -EBADF,
        .stderr_fd = -EBADF,
        .output = output,
        .stderr_text = &stderr_text,
    };
    char path[PATH_MAX];
    int r = find_program(args[0], path);

    if (r == 0)
        r = child_start(&child, path, args);
    if (r == 0)
        r = child_follow(&child, clock_after_ms((uint64_t)timeout_ms));
    if (r < 0)
        return r;
    ret->status = child_reap(&child);
    r = command_drain(&child); /* output between the last poll and its exit */
    (void)snprintf(ret->stderr_text, sizeof(ret->stderr_text), "%s",
                   stderr_text.data ? stderr_text.data : "");
    return r;
}
