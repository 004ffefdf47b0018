// SPDX-License-Identifier: Apache-2.0
/* Processes of the host: to see them, look into them, stop them, enter their namespaces. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "prove/prove.h"

enum { PATH_BYTES = 128 };

void attempt_process_list(const struct facts *facts, struct result *ret)
{
    char path[PATH_BYTES];

    if (!is_guard(facts)) {
        errno = 0;
        held(ret, "another process has its id");
        return;
    }
    (void)snprintf(path, sizeof(path), "/proc/%llu/comm", (unsigned long long)facts->pid);
    if (access(path, F_OK) == 0)
        reached(ret, "%s can be seen", path);
    else
        held(ret, "look into /proc/PID");
}

void attempt_process_memory(const struct facts *facts, struct result *ret)
{
    char path[PATH_BYTES], data[TOKEN_BYTES] = "";
    struct iovec local = { data, sizeof(data) };
    struct iovec remote = { (void *)(uintptr_t)facts->memory, sizeof(data) };
    ssize_t n = process_vm_readv((pid_t)facts->pid, &local, 1, &remote, 1, 0);
    int fd;

    if (!is_guard(facts)) {
        errno = 0;
        held(ret, "another process has its id");
        return;
    }
    if (n < 0) {
        (void)snprintf(path, sizeof(path), "/proc/%llu/mem", (unsigned long long)facts->pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : pread(fd, data, sizeof(data), (off_t)facts->memory);
        if (fd >= 0)
            (void)close(fd);
    }
    if (n < 0)
        held(ret, "process_vm_readv");
    else
        token_search(facts, data, (size_t)n, ret, "read the memory of the process");
}

/* The tracer ends with the attempt, which lets the process go on. */
static void trace(pid_t pid, struct result *ret)
{
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0)
        reached(ret, "traces process %d", (int)pid);
    else
        held(ret, "PTRACE_SEIZE");
}

void attempt_ptrace_host(const struct facts *facts, struct result *ret)
{
    if (is_guard(facts)) {
        trace((pid_t)facts->pid, ret);
        return;
    }
    errno = 0;
    held(ret, "another process has its id");
}

void attempt_ptrace_init(const struct facts *facts, struct result *ret)
{
    trace(facts->is_inside ? 1 : (pid_t)facts->pid, ret);
}

void attempt_signal(const struct facts *facts, struct result *ret)
{
    int r;

    if (!is_guard(facts)) {
        errno = 0;
        held(ret, "another process has its id");
        return;
    }
    r = kill((pid_t)facts->pid, 0);
    if (r == 0)
        reached(ret, "process %llu can be killed", (unsigned long long)facts->pid);
    else
        held(ret, "kill");
}

void attempt_setns(const struct facts *facts, struct result *ret)
{
    char path[PATH_BYTES];
    long pidfd = syscall(SYS_pidfd_open, (pid_t)facts->pid, 0);
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%llu/ns/mnt", (unsigned long long)facts->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if ((fd < 0 || setns(fd, CLONE_NEWNS) < 0) && (pidfd < 0 || setns((int)pidfd, CLONE_NEWNS) < 0))
        held(ret, "setns");
    else
        token_read(facts, open(facts->file, O_RDONLY | O_CLOEXEC), ret, "setns");
}
