// SPDX-License-Identifier: Apache-2.0
#include "kernel/clone.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/caps.h"
#include "kernel/vclone.h"

enum { FIRST_FD = 3, HIGH_FD = 100 };

struct child {
    const struct clone_exec *spec;
    int result; /* written by the child, which shares the memory until exec */
};

/* Duplicates the descriptors to high numbers first, then to 3, 4, ... Raw system calls, because a
 * sanitizer's wrappers would record them as the parent's. */
static ON_BORROWED_MEMORY int dup_fds(const struct clone_exec *spec)
{
    int high[CLONE_EXEC_FDS_MAX], count = (int)spec->fd_count;

    for (int i = 0; i < count; i++) {
        high[i] = (int)syscall(SYS_fcntl, spec->fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
        if (high[i] < 0)
            return -errno;
    }
    for (int i = 0; i < count; i++)
        if (syscall(SYS_dup3, high[i], FIRST_FD + i, 0) < 0)
            return -errno;
    return 0;
}

/* Runs in the new namespaces, on the caller's memory. */
static ON_BORROWED_MEMORY int child_prepare(const struct clone_exec *spec, int *ret_program_fd)
{
    static const uint64_t no_signals;
    int r, program_fd = (int)syscall(SYS_fcntl, spec->program_fd, F_DUPFD_CLOEXEC, HIGH_FD);

    if (program_fd < 0)
        return -errno;
    *ret_program_fd = program_fd;
    r = caps_keep_over_exec();
    if (r < 0)
        return r;
    r = dup_fds(spec);
    if (r < 0)
        return r;
    if (syscall(SYS_close_range, FIRST_FD + (unsigned)spec->fd_count, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        return -errno;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof(no_signals));
    (void)syscall(SYS_setsid);
    return 0;
}

static ON_BORROWED_MEMORY void child_main(void *argument)
{
    struct child *child = argument;
    const struct clone_exec *spec = child->spec;
    int program_fd = -EBADF;

    child->result = child_prepare(spec, &program_fd);
    if (child->result < 0)
        return;
    (void)syscall(SYS_execveat, program_fd, "", spec->args, spec->env, AT_EMPTY_PATH);
    child->result = -errno;
}

int clone_exec(const struct clone_exec *spec, pid_t *ret_pid, int *ret_pidfd)
{
    struct child child = { .spec = spec };
    cleanup_close int pidfd = -EBADF;
    struct clone_args args = {
        .flags = spec->namespaces | CLONE_PIDFD | (spec->cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0) |
                 (spec->is_sibling ? CLONE_PARENT : 0),
        .pidfd = (uint64_t)(uintptr_t)&pidfd,
        .exit_signal = spec->is_sibling ? 0 : SIGCHLD,
        .cgroup = spec->cgroup_fd >= 0 ? (uint64_t)spec->cgroup_fd : 0,
    };
    sigset_t all, before;
    pid_t pid;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = vclone(&args, child_main, &child);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return pid;
    if (child.result < 0) {
        if (!spec->is_sibling)
            (void)waitpid(pid, NULL, __WALL);
        return child.result;
    }
    *ret_pid = pid;
    *ret_pidfd = TAKE_FD(pidfd);
    return 0;
}
