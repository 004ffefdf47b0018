// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/spawn_signals.h"
#include "store/diff/diff_internal.h"

/* Path of the new text for diff(1); the old one is its stdin. */
#define NEW_PATH "/proc/self/fd/3"

enum {
    NEW_FD = 3,
    FIRST_OWN_FD = 16, /* above all numbers that it gets */
    TIMEOUT_MS = 10 * 1000,
    CPU_SECONDS = 3,
    MEMORY_BYTES = 512 << 20,
    CHUNK_BYTES = 64 << 10,
    HEADER_LINES = 2,
};

/* Takes ownership of a descriptor and returns a copy that the dup2s of a child cannot overwrite.
 */
static int fd_raise(int fd)
{
    cleanup_close int low_fd = fd;
    int high_fd;

    if (low_fd < 0)
        return low_fd;
    high_fd = fcntl(low_fd, F_DUPFD_CLOEXEC, FIRST_OWN_FD);
    return high_fd < 0 ? -errno : high_fd;
}

static int text_fd(const struct buf *text)
{
    cleanup_close int fd = memfd_create("text", MFD_CLOEXEC);
    int r;

    if (fd < 0)
        return -errno;
    r = write_all(fd, text->data, text->len);
    if (r < 0)
        return r;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    return fd_raise(TAKE_FD(fd));
}

static void files_done(posix_spawn_file_actions_t *files)
{
    (void)posix_spawn_file_actions_destroy(files);
}

static void attributes_done(posix_spawnattr_t *attributes)
{
    (void)posix_spawnattr_destroy(attributes);
}

static int prepare_files(posix_spawn_file_actions_t *files, const int fds[static DIFF_SIDES],
                         int output_fd)
{
    int r = posix_spawn_file_actions_adddup2(files, fds[DIFF_OLD], STDIN_FILENO);

    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, output_fd, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, fds[DIFF_NEW], NEW_FD);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(files, NEW_FD + 1);
    return -r;
}

/* The arguments of posix_spawn are not const, though it does not write to them. */
static char *const arguments[] = { (char[]){ "diff" },
                                   (char[]){ "-u" },
                                   (char[]){ "--text" },
                                   (char[]){ "--label" },
                                   (char[]){ "a" },
                                   (char[]){ "--label" },
                                   (char[]){ "b" },
                                   (char[]){ "--" },
                                   (char[]){ "-" },
                                   (char[]){ NEW_PATH },
                                   NULL };

/* "\\ No newline at end of file" would be translated otherwise. */
static char *const environment[] = { (char[]){ "LC_ALL=C" }, NULL };

/* Returns the pid or -errno. */
static pid_t diff_start(const int fds[static DIFF_SIDES], int output_fd)
{
    cleanup_with(files_done) posix_spawn_file_actions_t files;
    cleanup_with(attributes_done) posix_spawnattr_t attributes;
    const struct rlimit cpu = { .rlim_cur = CPU_SECONDS, .rlim_max = CPU_SECONDS };
    const struct rlimit memory = { .rlim_cur = MEMORY_BYTES, .rlim_max = MEMORY_BYTES };
    pid_t pid = -1;
    int r;

    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attributes);
    r = prepare_files(&files, fds, output_fd);
    if (r == 0)
        r = spawn_signals_reset(&attributes, 0);
    if (r == 0)
        r = -posix_spawn(&pid, "/usr/bin/diff", &files, &attributes, arguments, environment);
    if (r < 0)
        return r;
    (void)prlimit(pid, RLIMIT_CPU, &cpu, NULL);
    (void)prlimit(pid, RLIMIT_AS, &memory, NULL);
    return pid;
}

/* Reads to the end. Returns 1, 0 if the output is too long or takes too long, or -errno. */
static int output_read(int fd, struct buf *output)
{
    const uint64_t deadline_ms = clock_after_ms(TIMEOUT_MS);
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    char chunk[CHUNK_BYTES];

    for (;;) {
        int left_ms = clock_left_ms(deadline_ms);
        ssize_t n;
        int r = left_ms > 0 ? poll(&poll_fd, 1, left_ms) : 0;

        if (r == 0)
            return 0;
        if (r < 0 && errno == EINTR)
            continue;
        n = r < 0 ? -1 : read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return 1;
        r = buf_add(output, chunk, (size_t)n);
        if (r < 0)
            return r == -ENOBUFS ? 0 : r;
    }
}

static int64_t usage_ms(const struct rusage *usage)
{
    return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * INT64_C(1000) +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1000;
}

/* Kills the program if r says that its output is incomplete, and reaps it. Returns 1 if it
 * succeeded, 0 or -errno if not. */
static int diff_reap(pid_t pid, int r, int64_t *cpu_left_ms)
{
    struct rusage usage = { 0 };
    int status = 0;

    if (r <= 0)
        (void)kill(pid, SIGKILL);
    while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
        ;
    *cpu_left_ms -= usage_ms(&usage);
    if (r <= 0)
        return r;
    return WIFEXITED(status) && WEXITSTATUS(status) <= 1;
}

static int diff_read(const struct buf *old, const struct buf *new, int64_t *cpu_left_ms,
                     struct buf *output)
{
    cleanup_close int old_fd = text_fd(old), new_fd = text_fd(new);
    cleanup_close int read_fd = -EBADF, write_fd = -EBADF;
    const int fds[DIFF_SIDES] = { old_fd, new_fd };
    int ends[2];
    pid_t pid;

    if (old_fd < 0 || new_fd < 0)
        return old_fd < 0 ? old_fd : new_fd;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    read_fd = ends[0];
    write_fd = fd_raise(ends[1]);
    if (write_fd < 0)
        return write_fd;
    pid = diff_start(fds, write_fd);
    if (pid < 0)
        return pid;
    (void)fd_close(TAKE_FD(write_fd));
    return diff_reap(pid, output_read(read_fd, output), cpu_left_ms);
}

/* Its header has two short labels, because the names of the files may be longer than an argument.
 */
static void header_drop(struct buf *output)
{
    const char *rest = output->data;

    for (int i = 0; rest && i < HEADER_LINES; i++) {
        rest = strchr(rest, '\n');
        rest = rest ? rest + 1 : NULL;
    }
    buf_consume(output, rest ? (size_t)(rest - output->data) : output->len);
}

int diff_command_run(const struct buf *old, const struct buf *new, int64_t *cpu_left_ms,
                     struct buf *ret_hunks)
{
    int r = *cpu_left_ms > 0 ? diff_read(old, new, cpu_left_ms, ret_hunks) : 0;

    if (r == 1)
        header_drop(ret_hunks);
    return r;
}
