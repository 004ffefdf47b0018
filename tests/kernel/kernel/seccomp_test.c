// SPDX-License-Identifier: Apache-2.0
/* The filter on the real kernel: each call is made in a child that has installed it. */
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "kernel/harness.h"
#include "kernel/seccomp.h"

enum { CHILD_FAILED = 255, NO_ERROR = 0 };

/* Returns the errno of one system call behind the filter, 0 if it succeeded. */
static int errno_behind(long number, const long args[6])
{
    static struct seccomp_program program;
    struct sock_fprog filter;
    int status;
    pid_t pid;

    seccomp_build(&program);
    filter = (struct sock_fprog){ .len = (unsigned short)program.len, .filter = program.code };
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
            _exit(CHILD_FAILED);
        _exit(syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]) < 0 ? errno
                                                                                        : 0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) != CHILD_FAILED, "(call %ld, status %x)", number,
          status);
    return WEXITSTATUS(status);
}

#define ERRNO_OF(number, ...) errno_behind(number, (const long[6]){ __VA_ARGS__ })

/* The kernel compiles it for every process, so its length is a part of the cost of an exec. */
static void the_filter_is_short(void)
{
    struct seccomp_program program;

    seccomp_build(&program);
    CHECK(program.len > 0 && program.len < 160, "(%zu)", program.len);
}

static void ordinary_calls_work(void)
{
    CHECK(ERRNO_OF(SYS_getpid, 0) == NO_ERROR &&
          ERRNO_OF(SYS_openat, AT_FDCWD, (long)"/", O_RDONLY) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_socket, AF_INET, SOCK_STREAM, 0) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_socket, AF_UNIX, SOCK_STREAM, 0) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_clone, SIGCHLD) == NO_ERROR &&
          ERRNO_OF(SYS_memfd_create, (long)"x", 0) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_getrandom, 0, 0, 0) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_inotify_init1, 0) == NO_ERROR);
}

static void calls_that_reach_the_kernels_insides_are_refused(void)
{
    static const long numbers[] = {
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_bpf,
        SYS_perf_event_open,
        SYS_init_module,
        SYS_finit_module,
        SYS_delete_module,
        SYS_kexec_load,
        SYS_kexec_file_load,
        SYS_add_key,
        SYS_keyctl,
        SYS_request_key,
        SYS_reboot,
        SYS_swapon,
        SYS_swapoff,
        SYS_setns,
        SYS_open_by_handle_at,
        SYS_fsopen,
        SYS_fsmount,
        SYS_open_tree,
        SYS_move_mount,
        SYS_mount_setattr,
        SYS_acct,
        SYS_quotactl,
        SYS_userfaultfd,
        SYS_settimeofday,
        SYS_clock_settime,
        SYS_iopl,
        SYS_ioperm,
    };

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        int errnum = ERRNO_OF(numbers[i], 0);

        CHECK(errnum == EPERM || errnum == ENOSYS, "(call %ld: %s)", numbers[i], strerror(errnum));
    }
}

static void io_uring_is_refused(void)
{
    static const long numbers[] = { SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register };

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        int errnum = ERRNO_OF(numbers[i], 0);

        CHECK(errnum == EPERM || errnum == ENOSYS, "(call %ld: %s)", numbers[i], strerror(errnum));
    }
}

/* All contexts of the machine share one limit. */
static void pools_of_the_machine_have_no_door(void)
{
    const int value = 1;

    CHECK(ERRNO_OF(SYS_socketpair, AF_PACKET, SOCK_RAW, 0, (long)(int[2]){ 0 }) == EAFNOSUPPORT);
    CHECK(ERRNO_OF(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, (long)(int[2]){ 0 }) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_setsockopt, -1, SOL_IPV6, 32 /* IPV6_FLOWLABEL_MGR */, (long)&value,
                   sizeof(value)) == ENOPROTOOPT);
    /* These answer success without being made, even for a descriptor that is none. */
    CHECK(ERRNO_OF(SYS_setsockopt, -1, SOL_SOCKET, SO_RCVBUF, (long)&value, sizeof(value)) ==
          NO_ERROR);
    CHECK(ERRNO_OF(SYS_setsockopt, -1, SOL_IP, IP_RECVERR, (long)&value, sizeof(value)) ==
          NO_ERROR);
    CHECK(ERRNO_OF(SYS_setsockopt, -1, SOL_SOCKET, SO_KEEPALIVE, (long)&value, sizeof(value)) ==
          EBADF);
}

static void aio_contexts_do_not_exist(void)
{
    long context = 0;

    CHECK(ERRNO_OF(SYS_io_setup, 1, (long)&context) == ENOSYS);
}

/* The machine has a few hundred MiB for all of them, and no process starts without its filter. */
static void programs_have_no_filters_of_their_own(void)
{
    static struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    static const struct sock_fprog program = { .len = 1, .filter = code };
    static const int options[] = { SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF,
                                   SO_ATTACH_REUSEPORT_EBPF };
    const long filter = (long)(uintptr_t)&program;
    int one = 1, fds[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        CHECK(ERRNO_OF(SYS_setsockopt, fds[0], SOL_SOCKET, options[i], filter, sizeof(program)) ==
                  ENOPROTOOPT,
              "(option %d)", options[i]);
    CHECK(ERRNO_OF(SYS_setsockopt, fds[0], SOL_SOCKET, SO_KEEPALIVE, (long)(uintptr_t)&one,
                   sizeof(one)) == NO_ERROR);
    CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
    CHECK(ERRNO_OF(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter) == EINVAL);
    CHECK(ERRNO_OF(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, 0) == EINVAL);
    CHECK(ERRNO_OF(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter) == EINVAL);
    CHECK(ERRNO_OF(SYS_prctl, PR_SET_NAME, (long)(uintptr_t) "name") == NO_ERROR);
}

static void no_namespace_is_made(void)
{
    static const long flags[] = { CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                  CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP };

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        CHECK(ERRNO_OF(SYS_unshare, flags[i]) == EPERM, "(unshare %lx)", flags[i]);
        CHECK(ERRNO_OF(SYS_clone, flags[i] | SIGCHLD) == EPERM, "(clone %lx)", flags[i]);
    }
    /* Its flags are in memory, which a filter cannot read: libc falls back to clone. */
    CHECK(ERRNO_OF(SYS_clone3, 0, 0) == ENOSYS);
}

static void characters_are_not_pushed_into_a_terminal(void)
{
    const long tioclinux = 0x541c;

    CHECK(ERRNO_OF(SYS_ioctl, 0, TIOCSTI, (long)"x") == EPERM);
    CHECK(ERRNO_OF(SYS_ioctl, 0, tioclinux, 0) == EPERM);
    /* The kernel compares 32 bits only; so must the filter. */
    CHECK(ERRNO_OF(SYS_ioctl, 0, TIOCSTI | 1L << 32, (long)"x") == EPERM);
}

static void no_subvolumes_are_made(void)
{
    static const long commands[] = { BTRFS_IOC_SUBVOL_CREATE,   BTRFS_IOC_SUBVOL_CREATE_V2,
                                     BTRFS_IOC_SNAP_CREATE,     BTRFS_IOC_SNAP_CREATE_V2,
                                     BTRFS_IOC_SUBVOL_SETFLAGS, BTRFS_IOC_SET_RECEIVED_SUBVOL };

    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        CHECK(ERRNO_OF(SYS_ioctl, 0, commands[i], 0) == EPERM, "(command %zu)", i);
    /* Reflink copies are allowed. */
    CHECK(ERRNO_OF(SYS_ioctl, 0, FICLONE, -1) != EPERM);
}

static void other_socket_families_do_not_exist(void)
{
    static const int families[] = { AF_VSOCK, AF_ALG, AF_BLUETOOTH, AF_TIPC, AF_CAN, AF_PACKET };

    for (size_t i = 0; i < ARRAY_SIZE(families); i++)
        CHECK(ERRNO_OF(SYS_socket, families[i], SOCK_DGRAM, 0) != NO_ERROR, "(family %d)",
              families[i]);
}

/* No memory limit covers their queues. */
static void sockets_that_escape_the_memory_limit_are_refused(void)
{
    static const long raw[] = { SOCK_RAW, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK };
    static const long packet[] = { SOCK_PACKET, SOCK_PACKET | SOCK_CLOEXEC,
                                   SOCK_PACKET | 1L << 32 };
    static const long others[] = { IPPROTO_MPTCP, IPPROTO_SCTP, IPPROTO_DCCP, IPPROTO_UDPLITE,
                                   256 /* IPPROTO_SMC */ };

    CHECK(ERRNO_OF(SYS_socket, AF_PACKET, SOCK_RAW, 0) != NO_ERROR);
    CHECK(ERRNO_OF(SYS_socket, AF_PACKET, SOCK_DGRAM, 0) == EAFNOSUPPORT);
    for (size_t i = 0; i < ARRAY_SIZE(packet); i++)
        CHECK(ERRNO_OF(SYS_socket, AF_INET, packet[i], 0) == EAFNOSUPPORT, "(type %lx)", packet[i]);
    for (size_t i = 0; i < ARRAY_SIZE(raw); i++) {
        CHECK(ERRNO_OF(SYS_socket, AF_INET, raw[i], IPPROTO_ICMP) == EPERM, "(type %lx)", raw[i]);
        CHECK(ERRNO_OF(SYS_socket, AF_INET6, raw[i], IPPROTO_ICMPV6) == EPERM, "(type %lx)",
              raw[i]);
        CHECK(ERRNO_OF(SYS_socket, AF_NETLINK, raw[i], NETLINK_ROUTE) == NO_ERROR, "(%lx)", raw[i]);
        CHECK(ERRNO_OF(SYS_socket, AF_NETLINK, raw[i], NETLINK_USERSOCK) == EPROTONOSUPPORT);
    }
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        CHECK(ERRNO_OF(SYS_socket, AF_INET, SOCK_STREAM, others[i]) == EPROTONOSUPPORT, "(%ld)",
              others[i]);
        CHECK(ERRNO_OF(SYS_socket, AF_INET6, SOCK_DGRAM, others[i]) == EPROTONOSUPPORT, "(%ld)",
              others[i]);
    }
    CHECK(ERRNO_OF(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_TCP) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_socket, AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_socket, AF_INET6, SOCK_DGRAM, IPPROTO_UDP) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_socket, AF_UNIX, SOCK_STREAM, PF_UNIX) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_socket, AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_socket, AF_NETLINK, SOCK_DGRAM, NETLINK_GENERIC) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_socket, AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT) == NO_ERROR);
    CHECK(ERRNO_OF(SYS_socket, AF_NETLINK | (long)SECCOMP_NETLINK_KEY << 32, SOCK_RAW, 0) == EPERM);
}

static void unknown_calls_do_not_exist(void)
{
    CHECK(ERRNO_OF(1000, 0) == ENOSYS && ERRNO_OF(511, 0) == ENOSYS);
#ifdef __x86_64__
    /* The x32 numbers of getpid and mount. */
    CHECK(ERRNO_OF(0x40000000 | SYS_getpid, 0) == ENOSYS);
    CHECK(ERRNO_OF(0x40000000 | SYS_mount, 0) == ENOSYS);
#endif
}

#ifdef __x86_64__
/* The entry point of 32-bit programs has other numbers: 20 is getpid there and writev here. */
static void the_foreign_door_is_shut(void)
{
    static struct seccomp_program program;
    struct sock_fprog filter;
    int status;
    pid_t pid;

    seccomp_build(&program);
    filter = (struct sock_fprog){ .len = (unsigned short)program.len, .filter = program.code };
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        long r = 20;

        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
            _exit(CHILD_FAILED);
        __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
        _exit(r > 0 ? 1 : 0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    /* Refused or killed, or the kernel has no such entry point; but it must not have succeeded. */
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) == 0, "(status %x)", status);
}
#endif

int main(void)
{
    RUN_CLEAN(the_filter_is_short);
    RUN_CLEAN(ordinary_calls_work);
    RUN_CLEAN(calls_that_reach_the_kernels_insides_are_refused);
    RUN_CLEAN(io_uring_is_refused);
    RUN_CLEAN(aio_contexts_do_not_exist);
    RUN_CLEAN(pools_of_the_machine_have_no_door);
    RUN_CLEAN(programs_have_no_filters_of_their_own);
    RUN_CLEAN(no_namespace_is_made);
    RUN_CLEAN(characters_are_not_pushed_into_a_terminal);
    RUN_CLEAN(no_subvolumes_are_made);
    RUN_CLEAN(other_socket_families_do_not_exist);
    RUN_CLEAN(sockets_that_escape_the_memory_limit_are_refused);
    RUN_CLEAN(unknown_calls_do_not_exist);
#ifdef __x86_64__
    RUN_CLEAN(the_foreign_door_is_shut);
#endif
    return 0;
}
