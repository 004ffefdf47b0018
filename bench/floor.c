// SPDX-License-Identifier: Apache-2.0
/* Measures the minimal cost of a sandbox: clone3 into new user, pid, mount, net, ipc, uts and
 * cgroup namespaces, an id map, pivot_root into a directory, exec, wait; no cgroup, no overlay, no
 * /proc, no seccomp. Prints one line of microseconds per run.
 *
 * usage: floor COUNT ROOT COMMAND [ARGUMENT...] */
#include <err.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

enum { EXIT_NO_MAP = 120, EXIT_NO_ROOT, EXIT_NO_PIVOT, EXIT_NO_EXEC };

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        err(1, "write %s", path);
    (void)close(fd);
}

/* Runs in the new namespaces, as the overflow uid until the parent has written the id maps. */
static _Noreturn void child(int mapped_fd, const char *root, char *const *argv)
{
    static char *const no_environment[] = { NULL };
    char byte;

    if (read(mapped_fd, &byte, 1) != 1 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        _exit(EXIT_NO_MAP);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount(root, root, NULL, MS_BIND, NULL) < 0 || chdir(root) < 0)
        _exit(EXIT_NO_ROOT);
    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        _exit(EXIT_NO_PIVOT);
    (void)execve(argv[0], argv, no_environment);
    _exit(EXIT_NO_EXEC);
}

static void run(const char *root, char *const *argv)
{
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
                 CLONE_NEWUTS | CLONE_NEWCGROUP,
        .exit_signal = SIGCHLD,
    };
    int mapped[2], status;
    char path[64];
    long pid;

    if (pipe2(mapped, O_CLOEXEC) < 0)
        err(1, "pipe");
    pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        err(1, "clone3");
    if (pid == 0)
        child(mapped[0], root, argv);

    (void)snprintf(path, sizeof(path), "/proc/%ld/uid_map", pid);
    write_file(path, "0 100000 65536");
    (void)snprintf(path, sizeof(path), "/proc/%ld/gid_map", pid);
    write_file(path, "0 100000 65536");
    if (write(mapped[1], "", 1) != 1)
        err(1, "write to the child");
    if (waitpid((pid_t)pid, &status, 0) < 0)
        err(1, "waitpid");
    if (status != 0)
        errx(1, "the child ended with status %#x", (unsigned)status);
    (void)close(mapped[0]);
    (void)close(mapped[1]);
}

int main(int argc, char **argv)
{
    long count = argc > 3 ? strtol(argv[1], NULL, 10) : 0;

    if (count <= 0)
        errx(2, "usage: floor COUNT ROOT COMMAND [ARGUMENT...]");
    for (long i = 0; i < count; i++) {
        double start = now_us();

        run(argv[2], argv + 3);
        /* A single run is measured by the caller, and the output is that of the command. */
        if (count > 1)
            (void)printf("%.1f\n", now_us() - start);
    }
    return 0;
}
