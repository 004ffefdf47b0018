// SPDX-License-Identifier: Apache-2.0
/* The privileges of holt-view: those that reading, writing and giving away the files of a sandbox
 * take, and CAP_SYS_ADMIN, without which the kernel accepts no backing file. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/caps.h"
#include "kernel/mount.h"
#include "viewfs/viewfs_internal.h"

#define BIT(cap) (1ULL << (cap))

enum {
    FILTER_MAX = 256,
    MOUNT_ATTR_READ_ONLY = 1, /* <sys/mount.h> and <linux/mount.h> cannot be included together */
};

static const uint64_t capabilities = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) |
                                     BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) | BIT(CAP_SETUID) |
                                     BIT(CAP_SETGID) | BIT(CAP_SYS_ADMIN);

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

#if defined(__x86_64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define IF_SET(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, yes, no)
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)

/* clone may make threads; clone3, whose flags a filter cannot see, does not exist, and libc then
 * uses clone. */
static int filter_install(void)
{
    static const struct sock_filter start[] = {
        LOAD((uint32_t)offsetof(struct seccomp_data, arch)),
        IF_EQUAL(AUDIT_ARCH_HERE, 1, 0),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        LOAD((uint32_t)offsetof(struct seccomp_data, nr)),
        IF_EQUAL(SYS_clone3, 0, 1),
        RETURN(SECCOMP_RET_ERRNO | ENOSYS),
        IF_EQUAL(SYS_clone, 0, 4),
        LOAD((uint32_t)offsetof(struct seccomp_data, args)),
        IF_SET(CLONE_THREAD, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        RETURN(SECCOMP_RET_ERRNO | EPERM),
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
    code[count++] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM);
    program.len = (unsigned short)count;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

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

static int memory_limit(void)
{
    static const struct rlimit memory = { 1U << 30, 1U << 30 };

    return setrlimit(RLIMIT_DATA, &memory) < 0 ? -errno : 0;
}

int viewfs_confine(void)
{
    const struct rlimit core = { 0, 0 };
    /* Files are made as the user who asks, and this must not take the capabilities away. */
    const unsigned long bits = SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                               SECBIT_NOROOT | SECBIT_NOROOT_LOCKED;
    int r = root_leave();

    if (r == 0 && prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0)
        r = caps_limit(0);
    if (r == 0)
        r = caps_set(capabilities, capabilities, 0);
    if (r == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                   prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &core) < 0))
        r = -errno;
    /* Sanitizers map terabytes, and make system calls of their own for each thread. */
    if (r == 0 && !IS_SANITIZED)
        r = memory_limit();
    if (r == 0 && !IS_SANITIZED)
        r = filter_install();
    return r;
}
