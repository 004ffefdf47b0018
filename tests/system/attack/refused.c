// SPDX-License-Identifier: Apache-2.0
/* Tries, inside a sandbox, what must be refused there. Prints "NAME RESULT" a line: the error's
 * name, or "WORKED". Every attempt is made in a child of its own and would be harmless if it did
 * work. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static long try_mount(void)
{
    return mount("none", "/mnt", "tmpfs", 0, NULL);
}
static long try_bind(void)
{
    return mount("/proc", "/mnt", NULL, MS_BIND, NULL);
}
static long try_remount(void)
{
    return mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL);
}
static long try_umount(void)
{
    return umount2("/proc/sys", MNT_DETACH);
}
static long try_pivot_root(void)
{
    return syscall(SYS_pivot_root, "/", "/mnt");
}
static long try_fsopen(void)
{
    return syscall(SYS_fsopen, "tmpfs", 0);
}
static long try_open_tree(void)
{
    return syscall(SYS_open_tree, AT_FDCWD, "/", 1);
}
static long try_fspick(void)
{
    return syscall(SYS_fspick, AT_FDCWD, "/", 0);
}
static long try_move_mount(void)
{
    return syscall(SYS_move_mount, AT_FDCWD, "/proc", AT_FDCWD, "/mnt", 0);
}
static long try_mount_setattr(void)
{
    uint64_t attr[4] = { 0, 1, 0, 0 };
    return syscall(SYS_mount_setattr, AT_FDCWD, "/proc/sys", 0, attr, sizeof(attr));
}
static long try_mknod_block(void)
{
    return mknod("/tmp/b", S_IFBLK | 0600, makedev(7, 0));
}
static long try_mknod_char(void)
{
    return mknod("/tmp/c", S_IFCHR | 0600, makedev(1, 1));
}
static long try_mknod_in_dev(void)
{
    return mknod("/dev/c", S_IFCHR | 0600, makedev(1, 3));
}
static long try_mknod_in_shm(void)
{
    return mknod("/dev/shm/c", S_IFCHR | 0600, makedev(1, 3));
}

#define UNSHARE(name, flag)                                                                        \
    static long try_unshare_##name(void)                                                           \
    {                                                                                              \
        return syscall(SYS_unshare, flag);                                                         \
    }                                                                                              \
    static long try_clone_##name(void)                                                             \
    {                                                                                              \
        long pid = syscall(SYS_clone, (long)(flag) | SIGCHLD, 0, 0, 0, 0);                         \
        if (pid == 0)                                                                              \
            _exit(0);                                                                              \
        return pid;                                                                                \
    }
UNSHARE(user, CLONE_NEWUSER)
UNSHARE(mount, CLONE_NEWNS)
UNSHARE(pid, CLONE_NEWPID)
UNSHARE(net, CLONE_NEWNET)
UNSHARE(ipc, CLONE_NEWIPC)
UNSHARE(uts, CLONE_NEWUTS)
UNSHARE(cgroup, CLONE_NEWCGROUP)
/* The kernel uses only the low half of a flag word, and so must the filter. */
UNSHARE(user_high_bits, CLONE_NEWUSER | 1UL << 40)
static long try_unshare_time(void)
{
    return unshare(CLONE_NEWTIME);
}
static long try_clone3_plain(void)
{
    struct clone_args args = { .exit_signal = SIGCHLD };
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        _exit(0);
    return pid;
}
static long try_clone3_user(void)
{
    struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        _exit(0);
    return pid;
}
static long try_setns_net(void)
{
    return setns(open("/proc/self/ns/net", O_RDONLY), 0);
}
static long try_setns_user(void)
{
    return setns(open("/proc/self/ns/user", O_RDONLY), 0);
}
static long try_setns_pidfd(void)
{
    return setns((int)syscall(SYS_pidfd_open, 1, 0), CLONE_NEWNS | CLONE_NEWNET);
}

static long try_bpf(void)
{
    uint32_t attr[32] = { 1, 4, 4, 1 }; /* BPF_MAP_CREATE of a hash */
    return syscall(SYS_bpf, 0, attr, sizeof(attr));
}
static long try_perf_event_open(void)
{
    uint32_t attr[32] = { 1, sizeof(attr) }; /* a software clock of this process */
    return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0);
}
static long try_keyctl(void)
{
    return syscall(SYS_keyctl, 0, -3, 1);
}
static long try_add_key(void)
{
    return syscall(SYS_add_key, "user", "holt", "x", 1, -3);
}
static long try_request_key(void)
{
    return syscall(SYS_request_key, "user", "holt", NULL, 0);
}
static long try_kexec_load(void)
{
    return syscall(SYS_kexec_load, 0, 0, NULL, 0);
}
static long try_kexec_file_load(void)
{
    return syscall(SYS_kexec_file_load, -1, -1, 0, "", 0);
}
static long try_init_module(void)
{
    return syscall(SYS_init_module, "x", 1, "");
}
static long try_finit_module(void)
{
    return syscall(SYS_finit_module, 0, "", 0);
}
static long try_delete_module(void)
{
    return syscall(SYS_delete_module, "holt-none", 0);
}
static long try_io_uring_setup(void)
{
    char params[128] = { 0 };
    return syscall(SYS_io_uring_setup, 1, params);
}
static long try_io_setup(void)
{
    unsigned long context = 0;
    return syscall(SYS_io_setup, 1, &context);
}
static struct sock_filter filter_code[] = { BPF_STMT(BPF_RET | BPF_K, 0x7fff0000) };
static struct sock_fprog filter = { .len = 1, .filter = filter_code };
static long try_socket_filter(void)
{
    return setsockopt(socket(AF_UNIX, SOCK_DGRAM, 0), SOL_SOCKET, SO_ATTACH_FILTER, &filter,
                      sizeof(filter));
}
static long try_seccomp_filter(void)
{
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return syscall(SYS_seccomp, 1, 0, &filter);
}
static long try_prctl_filter(void)
{
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, 2, &filter, 0, 0);
}
static long try_userfaultfd(void)
{
    return syscall(SYS_userfaultfd, 1 /* user mode only */);
}
static long try_fanotify_init(void)
{
    return syscall(SYS_fanotify_init, 0, 0);
}
static long try_open_by_handle_at(void)
{
    struct {
        struct file_handle handle;
        unsigned char bytes[128];
    } h = { .handle.handle_bytes = 128 };
    int mount_id;

    if (name_to_handle_at(AT_FDCWD, "/dev/shm", &h.handle, &mount_id, 0) < 0)
        h.handle.handle_bytes = 8;
    return syscall(SYS_open_by_handle_at, open("/dev/shm", O_RDONLY), &h, O_RDONLY);
}
static long try_swapon(void)
{
    return swapon("/tmp/none", 0);
}
static long try_swapoff(void)
{
    return swapoff("/tmp/none");
}
static long try_reboot(void)
{
    return reboot(RB_DISABLE_CAD);
}
static long try_syslog(void)
{
    char text[64];
    return klogctl(3, text, sizeof(text));
}
static long try_acct(void)
{
    return syscall(SYS_acct, NULL);
}
static long try_settimeofday(void)
{
    struct timeval now;
    (void)gettimeofday(&now, NULL);
    return settimeofday(&now, NULL);
}
static long try_clock_settime(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return clock_settime(CLOCK_REALTIME, &now);
}
static long try_adjtimex(void)
{
    struct timex t = { .modes = ADJ_STATUS };
    return syscall(SYS_adjtimex, &t);
}
static long try_sethostname(void)
{
    return sethostname("owned", 5);
}
static long try_setdomainname(void)
{
    return setdomainname("owned", 5);
}
static long try_quotactl(void)
{
    return syscall(SYS_quotactl, 0x80000100, NULL, 0, NULL);
}
static long try_vhangup(void)
{
    return vhangup();
}
static long try_move_pages(void)
{
    return syscall(SYS_move_pages, 1, 0, NULL, NULL, NULL, 0);
}
static long try_kcmp(void)
{
    return syscall(SYS_kcmp, 1, getpid(), 0, 0, 0);
}
static long try_personality(void)
{
    return syscall(SYS_personality, 0x0400000 /* READ_IMPLIES_EXEC */);
}
static long try_vsock(void)
{
    return socket(AF_VSOCK, SOCK_STREAM, 0);
}
static long try_alg(void)
{
    return socket(AF_ALG, SOCK_SEQPACKET, 0);
}
static long try_packet(void)
{
    return socket(AF_PACKET, SOCK_DGRAM, 0);
}
static long try_old_packet(void)
{
    return socket(AF_INET, SOCK_PACKET, 0);
}
static long try_raw_ip(void)
{
    return socket(AF_INET, SOCK_RAW, 1 /* ICMP */);
}
static long try_key_socket(void)
{
    return socket(AF_KEY, SOCK_RAW, 2);
}

static int terminal(void)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), zero = 0;

    (void)ioctl(master, TIOCSPTLCK, &zero);
    return ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
}
static long try_tiocsti(void)
{
    return syscall(SYS_ioctl, terminal(), TIOCSTI, "x");
}
/* The kernel takes the command as an unsigned int (CVE-2023-1523, CVE-2019-10063). */
static long try_tiocsti_high_bits(void)
{
    return syscall(SYS_ioctl, terminal(), (unsigned long)TIOCSTI | 1UL << 32, "x");
}
static long try_tioclinux(void)
{
    return syscall(SYS_ioctl, terminal(), 0x541cUL, "\3");
}
static long try_tioclinux_high_bits(void)
{
    return syscall(SYS_ioctl, terminal(), 0x541cUL | 1UL << 33, "\3");
}

static long try_trace_init(void)
{
    return ptrace(PTRACE_ATTACH, 1, 0, 0);
}
static long try_seize_init(void)
{
    return ptrace(PTRACE_SEIZE, 1, 0, 0);
}
static long try_take_fd_of_init(void)
{
    return syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, 1, 0), 3, 0);
}
static long try_read_memory_of_init(void)
{
    char byte;
    uint64_t at = 0x400000;
    struct {
        void *base;
        size_t len;
    } here = { &byte, 1 }, there = { (void *)(uintptr_t)at, 1 };
    return syscall(SYS_process_vm_readv, 1, &here, 1, &there, 1, 0);
}
/* Same uid as ours, so only the filter stands in the way: RLIMIT_CPU would kill it. */
static long try_limit_init(void)
{
    uint64_t limit[2] = { 1000000, 1000000 };
    return syscall(SYS_prlimit64, 1, 0 /* RLIMIT_CPU */, limit, NULL);
}
static long try_renice_init(void)
{
    return syscall(SYS_setpriority, 0, 1, 19);
}
static long try_idle_init(void)
{
    int priority = 0;
    return syscall(SYS_sched_setscheduler, 1, 5 /* SCHED_IDLE */, &priority);
}
static long try_pin_init(void)
{
    unsigned long one = 1;
    return syscall(SYS_sched_setaffinity, 1, sizeof(one), &one);
}

#if defined(__x86_64__)
static long try_iopl(void)
{
    return syscall(SYS_iopl, 3);
}
static long try_ioperm(void)
{
    return syscall(SYS_ioperm, 0x80, 1, 1);
}
static long try_modify_ldt(void)
{
    return syscall(SYS_modify_ldt, 0, NULL, 0);
}
static long try_x32(void)
{
    return syscall(0x40000000 + SYS_getpid);
}
static long try_x32_mount(void)
{
    return syscall(0x40000000 + SYS_mount, "none", "/mnt", "tmpfs", 0, 0);
}
static long try_32_bit(void)
{
    long r;
    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "0"(20L /* getpid */)
                     : "memory", "r8", "r9", "r10", "r11");
    errno = r < 0 ? (int)-r : 0;
    return r < 0 ? -1 : r;
}
static long try_32_bit_mount(void)
{
    long r;
    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "0"(21L /* mount */), "b"(0L), "c"(0L), "d"(0L), "S"(0L), "D"(0L)
                     : "memory", "r8", "r9", "r10", "r11");
    errno = r < 0 ? (int)-r : 0;
    return r < 0 ? -1 : r;
}
#endif

#define ROW(name)                                                                                  \
    {                                                                                              \
#name, try_##name                                                                          \
    }
#define ROWS(name) ROW(unshare_##name), ROW(clone_##name)
static const struct {
    const char *name;
    long (*attempt)(void);
} rows[] = {
    ROW(mount),
    ROW(bind),
    ROW(remount),
    ROW(umount),
    ROW(pivot_root),
    ROW(fsopen),
    ROW(open_tree),
    ROW(fspick),
    ROW(move_mount),
    ROW(mount_setattr),
    ROW(mknod_block),
    ROW(mknod_char),
    ROW(mknod_in_dev),
    ROW(mknod_in_shm),
    ROWS(user),
    ROWS(mount),
    ROWS(pid),
    ROWS(net),
    ROWS(ipc),
    ROWS(uts),
    ROWS(cgroup),
    ROWS(user_high_bits),
    ROW(unshare_time),
    ROW(clone3_plain),
    ROW(clone3_user),
    ROW(setns_net),
    ROW(setns_user),
    ROW(setns_pidfd),
    ROW(bpf),
    ROW(perf_event_open),
    ROW(keyctl),
    ROW(add_key),
    ROW(request_key),
    ROW(kexec_load),
    ROW(kexec_file_load),
    ROW(init_module),
    ROW(finit_module),
    ROW(delete_module),
    ROW(io_uring_setup),
    ROW(io_setup),
    ROW(socket_filter),
    ROW(seccomp_filter),
    ROW(prctl_filter),
    ROW(userfaultfd),
    ROW(fanotify_init),
    ROW(open_by_handle_at),
    ROW(swapon),
    ROW(swapoff),
    ROW(reboot),
    ROW(syslog),
    ROW(acct),
    ROW(settimeofday),
    ROW(clock_settime),
    ROW(adjtimex),
    ROW(sethostname),
    ROW(setdomainname),
    ROW(quotactl),
    ROW(vhangup),
    ROW(move_pages),
    ROW(kcmp),
    ROW(personality),
    ROW(vsock),
    ROW(alg),
    ROW(packet),
    ROW(old_packet),
    ROW(raw_ip),
    ROW(key_socket),
    ROW(tiocsti),
    ROW(tiocsti_high_bits),
    ROW(tioclinux),
    ROW(tioclinux_high_bits),
    ROW(trace_init),
    ROW(seize_init),
    ROW(take_fd_of_init),
    ROW(read_memory_of_init),
    ROW(limit_init),
    ROW(renice_init),
    ROW(idle_init),
    ROW(pin_init),
#if defined(__x86_64__)
    ROW(iopl),
    ROW(ioperm),
    ROW(modify_ldt),
    ROW(x32),
    ROW(x32_mount),
    ROW(32_bit),
    ROW(32_bit_mount),
#endif
};

int main(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int status, pipe_fds[2], failed = -1;
        pid_t pid;

        if (pipe(pipe_fds) < 0)
            return 1;
        pid = fork();
        if (pid == 0) {
            errno = 0;
            failed = rows[i].attempt() < 0 ? errno : 0;
            (void)!write(pipe_fds[1], &failed, sizeof(failed));
            _exit(0);
        }
        (void)close(pipe_fds[1]);
        (void)!read(pipe_fds[0], &failed, sizeof(failed));
        (void)close(pipe_fds[0]);
        (void)waitpid(pid, &status, 0);
        if (failed > 0)
            (void)printf("%s %s\n", rows[i].name, strerrorname_np(failed));
        else if (failed == 0)
            (void)printf("%s WORKED\n", rows[i].name);
        else
            (void)printf("%s signal-%d\n", rows[i].name, WTERMSIG(status));
    }
    return 0;
}
