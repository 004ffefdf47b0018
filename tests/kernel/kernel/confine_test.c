// SPDX-License-Identifier: Apache-2.0
/* What helper programs give up, in children that give it up. */
#include <grp.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "kernel/caps.h"
#include "kernel/confine.h"
#include "kernel/harness.h"

enum { GROUP = 4711, LIMIT = 1 << 30 };

static const int few_calls[] = { SYS_exit_group, SYS_getpid };
static const int few_refused[] = { SYS_getppid };

/* Makes a call in a child that has installed a filter. Returns the child's wait status; it exits
 * with the errno of the call, 0: the call succeeded. */
static int status_behind(bool is_allowed, unsigned groups, long number, long argument)
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

        if (r == 0 && is_allowed)
            r = confine_calls_allow(few_calls, ARRAY_SIZE(few_calls), groups);
        else if (r == 0)
            r = confine_calls_refuse(few_refused, ARRAY_SIZE(few_refused));
        (void)syscall(SYS_exit_group, r < 0                                           ? 255
                                      : syscall(number, argument, SOCK_STREAM, 0) < 0 ? errno
                                                                                      : 0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

static int errno_behind(bool is_allowed, unsigned groups, long number, long argument)
{
    int status = status_behind(is_allowed, groups, number, argument);

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 255, "(call %ld, status %x)", number, status);
    return WEXITSTATUS(status);
}

static void a_program_becomes_nobody_without_privileges(void)
{
    static const struct confine_privileges kept = { .uid = CONFINE_NOBODY,
                                                    .gid = CONFINE_NOBODY,
                                                    .memory_max = LIMIT };
    const gid_t group = GROUP;
    uid_t real, effective, saved;
    struct rlimit limit;

    CHECK(setgroups(1, &group) == 0);
    CHECK(confine_privileges(&kept) == 0);
    CHECK(getresuid(&real, &effective, &saved) == 0);
    CHECK(real == CONFINE_NOBODY && effective == CONFINE_NOBODY && saved == CONFINE_NOBODY);
    CHECK(getresgid(&real, &effective, &saved) == 0);
    CHECK(real == CONFINE_NOBODY && effective == CONFINE_NOBODY && saved == CONFINE_NOBODY);
    CHECK(getgroups(0, NULL) == 0);
    CHECK(caps_permitted() == 0);
    CHECK(prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 0);
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
    CHECK(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0);
    CHECK(getrlimit(RLIMIT_DATA, &limit) == 0);
    CHECK(CONFINE_IS_SANITIZED || limit.rlim_max == LIMIT);
}

static void a_program_keeps_the_capabilities_it_names(void)
{
    static const struct confine_privileges kept = { .capabilities = 1ULL << CAP_CHOWN };

    CHECK(confine_privileges(&kept) == 0);
    CHECK(caps_permitted() == 1ULL << CAP_CHOWN);
    CHECK(prctl(PR_CAPBSET_READ, CAP_CHOWN, 0, 0, 0) == 0); /* not for programs that it starts */
}

static void only_allowed_calls_are_made(void)
{
    CHECK(errno_behind(true, 0, SYS_getpid, 0) == 0);
    CHECK(errno_behind(true, 0, SYS_getppid, 0) == EPERM);
    CHECK(errno_behind(true, 0, SYS_socket, AF_INET) == EPERM);
    CHECK(errno_behind(true, 0, SYS_clone, CLONE_THREAD) == EPERM);
}

static void internet_sockets_are_no_others(void)
{
    CHECK(errno_behind(true, CONFINE_INTERNET, SYS_socket, AF_INET) == 0);
    CHECK(errno_behind(true, CONFINE_INTERNET, SYS_socket, AF_UNIX) == EPERM);
    CHECK(errno_behind(true, CONFINE_INTERNET, SYS_socket, AF_NETLINK) == EPERM);
    CHECK(errno_behind(true, CONFINE_INTERNET, SYS_getppid, 0) == EPERM);
}

/* The kernel refuses threads without shared memory with EINVAL: the filter let the call pass. */
static void threads_are_no_processes(void)
{
    unsigned groups = CONFINE_THREADS | CONFINE_INTERNET;

    CHECK(errno_behind(true, groups, SYS_clone, CLONE_THREAD) == EINVAL);
    CHECK(errno_behind(true, groups, SYS_clone, SIGCHLD) == EPERM);
    CHECK(errno_behind(true, groups, SYS_clone3, 0) == ENOSYS);
    CHECK(errno_behind(true, groups, SYS_getppid, 0) == EPERM);
    CHECK(errno_behind(true, groups, SYS_getpid, 0) == 0);
}

static void only_refused_calls_fail(void)
{
    CHECK(errno_behind(false, 0, SYS_getppid, 0) == EPERM);
    CHECK(errno_behind(false, 0, SYS_getpid, 0) == 0);
    CHECK(errno_behind(false, 0, SYS_socket, AF_UNIX) == 0);
}

#ifdef __x86_64__
/* A number of x32 names the same call, and no list has it. */
static void calls_of_x32_end_the_process(void)
{
    int status = status_behind(false, 0, SYS_getppid | 0x40000000, 0);

    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "(status %x)", status);
}
#endif

int main(void)
{
    RUN(a_program_becomes_nobody_without_privileges);
    RUN(a_program_keeps_the_capabilities_it_names);
    RUN(only_allowed_calls_are_made);
    RUN(internet_sockets_are_no_others);
    RUN(threads_are_no_processes);
    RUN(only_refused_calls_fail);
#ifdef __x86_64__
    RUN(calls_of_x32_end_the_process);
#endif
    return 0;
}
