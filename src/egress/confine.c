// SPDX-License-Identifier: Apache-2.0
#include "kernel/confine.h"

#include <sys/syscall.h>

#include "base/cleanup.h"
#include "egress/egress_internal.h"

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

int confine(void)
{
    static const struct confine_privileges kept = { .uid = CONFINE_NOBODY, .gid = CONFINE_NOBODY };
    int r = confine_privileges(&kept);

    return r < 0 ? r
                 : confine_calls_allow(allowed_calls, ARRAY_SIZE(allowed_calls), CONFINE_INTERNET);
}
