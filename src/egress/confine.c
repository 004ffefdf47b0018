// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "egress/egress_internal.h"
#include "kernel/caps.h"

enum { NOBODY = 65534, FILTER_MAX = 256 };

/* What the loop, malloc and the end of a process use. No file can be opened, no process started, no
 * socket made but the two kinds below. */
static const int allowed_calls[] = {
    SYS_read,          SYS_write,        SYS_writev,          SYS_close,          SYS_recvfrom,
    SYS_sendto,        SYS_recvmsg,      SYS_sendmsg,         SYS_accept4,        SYS_connect,
    SYS_getsockname,   SYS_getpeername,  SYS_setsockopt,      SYS_getsockopt,     SYS_shutdown,
    SYS_epoll_ctl,     SYS_epoll_pwait,  SYS_splice,          SYS_pipe2,          SYS_fcntl,
    SYS_clock_gettime, SYS_mmap,         SYS_munmap,          SYS_mremap,         SYS_mprotect,
    SYS_madvise,       SYS_brk,          SYS_futex,           SYS_getrandom,      SYS_exit,
    SYS_exit_group,    SYS_rt_sigreturn, SYS_rt_sigaction,    SYS_rt_sigprocmask, SYS_getpid,
    SYS_gettid,        SYS_tgkill,       SYS_restart_syscall, SYS_lseek,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
};

#if defined(__x86_64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#endif

/* The low word of an argument; Holt runs on little-endian machines. */
#define ARGUMENT(index)                                                                            \
    ((uint32_t)offsetof(struct seccomp_data, args) + (index) * (uint32_t)sizeof(uint64_t))
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

static int filter_install(void)
{
    static const struct sock_filter start[] = {
        LOAD((uint32_t)offsetof(struct seccomp_data, arch)),
        IF_EQUAL(AUDIT_ARCH_HERE, 1, 0),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        LOAD((uint32_t)offsetof(struct seccomp_data, nr)),
        IF_EQUAL(SYS_socket, 0, 5),
        LOAD(ARGUMENT(0)),
        IF_EQUAL(AF_INET, 2, 0),
        IF_EQUAL(AF_INET6, 1, 0),
        RETURN(REFUSE),
        RETURN(SECCOMP_RET_ALLOW),
    };
    struct sock_filter code[FILTER_MAX];
    struct sock_fprog program = { .filter = code };
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(start); i++)
        code[count++] = start[i];
    for (size_t i = 0; i < ARRAY_SIZE(allowed_calls); i++) {
        code[count++] = (struct sock_filter)IF_EQUAL((uint32_t)allowed_calls[i], 0, 1);
        code[count++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    }
    code[count++] = (struct sock_filter)RETURN(REFUSE);
    program.len = (unsigned short)count;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static int privileges_drop(void)
{
    if (getuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return -errno;
    return 0;
}

int confine(void)
{
    int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;

    if (r == 0 && getuid() == 0)
        r = caps_limit(0);
    if (r == 0)
        r = privileges_drop();
    if (r == 0)
        r = caps_set(0, 0, 0);
    if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        r = -errno;
    return r < 0 ? r : filter_install();
}
