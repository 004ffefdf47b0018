// SPDX-License-Identifier: Apache-2.0
/* The privileges of holt-view: those that reading, writing and giving away the files of a sandbox
 * take, and CAP_SYS_ADMIN, without which the kernel accepts no backing file. */
#include "kernel/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/mount.h"
#include "viewfs/viewfs_internal.h"

#define BIT(cap) (1ULL << (cap))

#define CAPABILITIES                                                                               \
    (BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) |         \
     BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SYS_ADMIN))

enum {
    MEMORY_MAX = 1 << 30,
    MOUNT_ATTR_READ_ONLY = 1, /* <sys/mount.h> and <linux/mount.h> cannot be included together */
};

/* In the order of use. Names are resolved below descriptors that the process has; there is nothing
 * else below its root. */
static const int allowed_calls[] = {
    SYS_read,
    SYS_write,
    SYS_newfstatat,
    SYS_openat2,
    SYS_ioctl,
    SYS_close,
    SYS_futex,
    SYS_openat,
    SYS_getdents64,
    SYS_lseek,
    SYS_fstat,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_unlinkat,
    SYS_renameat,
    SYS_renameat2,
    SYS_mkdirat,
    SYS_mknodat,
    SYS_symlinkat,
    SYS_linkat,
    SYS_readlinkat,
    SYS_fchmodat,
    SYS_fchownat,
    SYS_utimensat,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_pread64,
    SYS_pwrite64,
    SYS_copy_file_range,
    SYS_fstatfs,
    SYS_fgetxattr,
    SYS_fsetxattr,
    SYS_flistxattr,
    SYS_fremovexattr,
    SYS_ppoll,
    SYS_recvfrom,
    SYS_sendmsg,
    SYS_accept4,
    SYS_fcntl,
    SYS_clock_gettime,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_getrandom,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigreturn,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_prctl,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill,
    SYS_restart_syscall,
    SYS_sched_yield,
    SYS_sched_getaffinity,
#ifdef SYS_poll
    SYS_poll,
#endif
};

/* The root becomes an empty directory that cannot be written, in a mount namespace of its own: this
 * process must hold no mount but the one that it serves from. */
static int root_leave(void)
{
    static const struct mount_option options[] = { { "size", "4k" }, { "mode", "0500" } };
    cleanup_close int fd = -EBADF, root_fd = -EBADF;
    int r;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    fd = mount_new("tmpfs", options, ARRAY_SIZE(options), MOUNT_ATTR_READ_ONLY);
    root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || root_fd < 0)
        return fd < 0 ? fd : -errno;
    r = mount_attach(fd, root_fd);
    if (r == 0)
        r = mount_pivot(fd);
    return r;
}

int viewfs_confine(void)
{
    static const struct confine_privileges kept = { .capabilities = CAPABILITIES,
                                                    .memory_max = MEMORY_MAX };
    /* Files are made as the user who asks, and this must not take the capabilities away. */
    const unsigned long bits = SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                               SECBIT_NOROOT | SECBIT_NOROOT_LOCKED;
    int r = root_leave();

    if (r == 0 && prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0)
        r = confine_privileges(&kept);
    if (r == 0 && !CONFINE_IS_SANITIZED)
        r = confine_calls_allow(allowed_calls, ARRAY_SIZE(allowed_calls), CONFINE_THREADS);
    return r;
}
