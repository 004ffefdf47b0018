// SPDX-License-Identifier: Apache-2.0
#include "cli/core/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/spawn_signals.h"
#include "base/xalloc.h"

enum {
    READY_FD = 3,
    READY_TIMEOUT_MS = 60 * 1000,
    READY_LINE_SIZE = 256,
};

char *daemon_find(void)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    if (len > 0) {
        cleanup_free char *beside = NULL;

        self[len] = '\0';
        slash = strrchr(self, '/');
        beside = xasprintf("%.*s/holtd", slash ? (int)(slash - self) : 0, self);
        if (access(beside, X_OK) == 0)
            return TAKE_PTR(beside);
    }
    return xstrdup("holtd");
}

/* The daemon inherits nothing: no terminal, working directory, signal mask or descriptor (a
 * caller's lock, for example). */
static int prepare_files(posix_spawn_file_actions_t *files, const char *log_path, int ready_fd)
{
    int r = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    if (r == 0)
        r = posix_spawn_file_actions_addopen(files, STDOUT_FILENO, log_path,
                                             O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0640);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, STDOUT_FILENO, STDERR_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, ready_fd, READY_FD);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(files, READY_FD + 1);
    if (r == 0)
        r = posix_spawn_file_actions_addchdir_np(files, "/");
    return -r;
}

static void files_done(posix_spawn_file_actions_t *files)
{
    (void)posix_spawn_file_actions_destroy(files);
}

static void attributes_done(posix_spawnattr_t *attributes)
{
    (void)posix_spawnattr_destroy(attributes);
}

static int spawn(const char *run_dir, const char *log_path, int ready_fd)
{
    cleanup_with(files_done) posix_spawn_file_actions_t files;
    cleanup_with(attributes_done) posix_spawnattr_t attributes;
    cleanup_free char *binary = daemon_find(), *directory = xstrdup(run_dir);
    char name[] = "holtd", run[] = "--run", ready[] = "--ready-fd", ready_number[] = "3";
    char *const argv[] = { name, run, directory, ready, ready_number, NULL };
    pid_t pid;
    int r;

    _Static_assert(READY_FD == 3, "argv says the number");
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attributes);
    r = prepare_files(&files, log_path, ready_fd);
    if (r == 0)
        r = spawn_signals_reset(&attributes, POSIX_SPAWN_SETSID);
    if (r < 0)
        return r;
    return -posix_spawnp(&pid, binary, &files, &attributes, argv, environ);
}

/* Reads one line without its newline; empty if the daemon closed the pipe first. */
static int read_line(int fd, char *line, size_t size)
{
    size_t len = 0;

    while (len < size - 1 && !memchr(line, '\n', len)) {
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        int ready = poll(&wait, 1, READY_TIMEOUT_MS);
        ssize_t n;

        if (ready == 0)
            return -ETIMEDOUT;
        n = ready < 0 ? -1 : read(fd, line + len, size - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    line[len] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return 0;
}

/* Another holt has started the same daemon meanwhile. A daemon that only shares our state directory
 * listens elsewhere and is of no use. */
static bool is_same_daemon(const char *reason)
{
    static const char running[] = "already running";

    return strncmp(reason, running, strlen(running)) == 0 && !strstr(reason, "--state");
}

static int wait_ready(int fd, const char *log_path, struct err *err)
{
    static const char failed[] = "error: ";
    char line[READY_LINE_SIZE];
    const char *reason = line + strlen(failed);
    int r = read_line(fd, line, sizeof(line));

    if (r < 0)
        return err_sys(err, r, "wait for holtd (log: %s)", log_path);
    if (strcmp(line, "ready") == 0)
        return 0;
    if (strncmp(line, failed, strlen(failed)) != 0)
        return err_set(err, ERR_INTERNAL, "holtd exited before it was ready (log: %s)", log_path);
    return err_set(err, is_same_daemon(reason) ? ERR_EXISTS : ERR_INTERNAL,
                   "cannot start holtd: %s", reason);
}

int daemon_start(const char *run_dir, struct err *err)
{
    cleanup_free char *log_path = xasprintf("%s/holtd.log", run_dir);
    cleanup_close int read_fd = -EBADF, write_fd = -EBADF;
    int ends[2], r;

    r = tree_make(run_dir, 0755);
    if (r < 0)
        return err_sys(err, r, "make the directory %s", run_dir);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "make a pipe to holtd");
    read_fd = ends[0];
    write_fd = ends[1];
    r = spawn(run_dir, log_path, write_fd);
    if (r == -ENOENT)
        return err_set(err, ERR_NOT_FOUND,
                       "no daemon runs, and holtd is neither beside holt nor in PATH");
    if (r < 0)
        return err_sys(err, r, "start holtd");
    (void)close(TAKE_FD(write_fd)); /* so that the pipe ends when holtd ends */
    return wait_ready(read_fd, log_path, err);
}
