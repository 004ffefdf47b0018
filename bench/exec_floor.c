// SPDX-License-Identifier: Apache-2.0
/* Measures the minimal cost of a process in a running sandbox: setns, fork, exec, wait; no cgroup,
 * no seccomp, no change of user, no pipes. Prints one line of microseconds per run.
 *
 * usage: exec_floor [-v] COUNT PID COMMAND [ARGUMENT...]
 *
 * PID is any process of the sandbox. -v shares memory with the child until it runs its command, as
 * vfork does. */
#include <err.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

enum { EXIT_NO_NAMESPACE = 120, EXIT_NO_EXEC };

static const int namespaces =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

static _Noreturn void child(int pidfd, char *const *argv)
{
    static char *const no_environment[] = { NULL };

    if (setns(pidfd, namespaces) < 0)
        _exit(EXIT_NO_NAMESPACE);
    (void)execve(argv[0], argv, no_environment);
    _exit(EXIT_NO_EXEC);
}

static void run(int pidfd, bool is_vfork, char *const *argv)
{
    int status;
    pid_t pid;

    /* Applies to the children of the caller, not to the caller, so one fork is enough. */
    if (setns(pidfd, CLONE_NEWPID) < 0)
        err(1, "setns");
    pid = is_vfork ? vfork() : fork();
    if (pid < 0)
        err(1, "fork");
    if (pid == 0)
        child(pidfd, argv);
    if (waitpid(pid, &status, 0) < 0)
        err(1, "waitpid");
    if (status != 0)
        errx(1, "the child ended with status %#x", (unsigned)status);
}

int main(int argc, char **argv)
{
    bool is_vfork = getopt(argc, argv, "+v") == 'v';
    long count = argc > optind + 2 ? strtol(argv[optind], NULL, 10) : 0;
    int pidfd;

    if (count <= 0)
        errx(2, "usage: exec_floor [-v] COUNT PID COMMAND [ARGUMENT...]");
    pidfd = (int)syscall(SYS_pidfd_open, strtol(argv[optind + 1], NULL, 10), 0);
    if (pidfd < 0)
        err(1, "pidfd_open");
    for (long i = 0; i < count; i++) {
        double start = now_us();

        run(pidfd, is_vfork, argv + optind + 2);
        (void)printf("%.1f\n", now_us() - start);
    }
    return 0;
}
