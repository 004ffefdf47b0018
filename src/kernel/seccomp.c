// SPDX-License-Identifier: Apache-2.0
#include "kernel/seccomp.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

enum {
    LAST_KNOWN = 450, /* set_mempolicy_home_node: all calls of Linux 6.1 were reviewed */
    JUMP_MAX = 255,
    NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                 CLONE_NEWNET | CLONE_NEWCGROUP,
    NEWTIME = 0x80,    /* CLONE_NEWTIME; in clone(2) this bit is part of the exit signal */
    FLOW_LABELS = 32,  /* IPV6_FLOWLABEL_MGR, which no header of a libc has */
    SOCKET_TYPE = 0xf, /* the bits of socket(2)'s type that are not flags */
};

enum action {
    ALLOW,
    DENY,    /* EPERM */
    MISSING, /* ENOSYS: callers have a fallback */
    CHECK_CLONE,
    CHECK_UNSHARE,
    CHECK_IOCTL,
    CHECK_SOCKET,
    CHECK_SOCKETPAIR,
    CHECK_SOCKET_OPTION,
    CHECK_SECCOMP,
    CHECK_PRCTL,
    CHECK_PRLIMIT,
    CHECK_PERSONALITY,
    ACTIONS,
};

static const struct {
    int number;
    enum action action;
} exceptions[] = {
    /* namespaces and mounts */
    { SYS_clone, CHECK_CLONE },
    { SYS_clone3,
      MISSING }, /* its flags are in memory, which a filter cannot read; libc falls back to clone */
    { SYS_unshare, CHECK_UNSHARE },
    { SYS_setns, DENY },
    { SYS_mount, DENY },
    { SYS_umount2, DENY },
    { SYS_pivot_root, DENY },
    { SYS_open_tree, DENY },
    { SYS_move_mount, DENY },
    { SYS_mount_setattr, DENY },
    { SYS_fsopen, DENY },
    { SYS_fsconfig, DENY },
    { SYS_fsmount, DENY },
    { SYS_fspick, DENY },
    { SYS_quotactl, DENY },
    { SYS_quotactl_fd, DENY },
    { SYS_swapon, DENY },
    { SYS_swapoff, DENY },
    { SYS_fanotify_init, DENY },
    { SYS_open_by_handle_at, DENY },
    { SYS_lookup_dcookie, DENY },

    /* code and probes in the kernel */
    { SYS_init_module, DENY },
    { SYS_finit_module, DENY },
    { SYS_delete_module, DENY },
    { SYS_kexec_load, DENY },
    { SYS_kexec_file_load, DENY },
    { SYS_bpf, DENY },
    { SYS_perf_event_open, DENY },
    { SYS_userfaultfd, DENY },
    { SYS_io_setup, MISSING }, /* the machine has fs.aio-max-nr of them, and no group has a share */
    { SYS_io_uring_setup, MISSING },
    { SYS_io_uring_enter, MISSING },
    { SYS_io_uring_register, MISSING },

    /* state of the whole machine */
    { SYS_reboot, DENY },
    { SYS_syslog, DENY },
    { SYS_acct, DENY },
    { SYS_vhangup, DENY },
    { SYS_settimeofday, DENY },
    { SYS_clock_settime, DENY },
    { SYS_clock_adjtime, DENY },
    { SYS_adjtimex, DENY },
    { SYS_sethostname, DENY },
    { SYS_setdomainname, DENY },
    { SYS_nfsservctl, DENY },
    { SYS_kcmp, DENY },
    { SYS_migrate_pages, DENY },
    { SYS_move_pages, DENY },
    { SYS_personality, CHECK_PERSONALITY },

    /* keys are not namespaced */
    { SYS_add_key, DENY },
    { SYS_request_key, DENY },
    { SYS_keyctl, DENY },

    /* allowed except for some arguments */
    { SYS_ioctl, CHECK_IOCTL },
    { SYS_socket, CHECK_SOCKET },
    { SYS_socketpair, CHECK_SOCKETPAIR },
    { SYS_setsockopt, CHECK_SOCKET_OPTION },
    { SYS_seccomp, CHECK_SECCOMP },
    { SYS_prctl, CHECK_PRCTL },
    { SYS_prlimit64, CHECK_PRLIMIT },
#if defined(__x86_64__)
    { SYS_ioperm, DENY },
    { SYS_iopl, DENY },
    { SYS_modify_ldt, DENY },
    { SYS_uselib, DENY },
    { SYS_ustat, DENY },
    { SYS_sysfs, DENY },
    { SYS__sysctl, DENY },
    { SYS_create_module, DENY },
    { SYS_get_kernel_syms, DENY },
    { SYS_query_module, DENY },
#endif
};

/* The program is emitted from its end to its beginning, because jumps lead only forward: so their
 * targets exist already. Positions are counted from the end, too. There is one path for each call,
 * and every end of a path occurs once: the kernel compiles all of it for every process. */
static size_t emit(struct seccomp_program *program, struct sock_filter instruction)
{
    assert(program->len < SECCOMP_PROGRAM_MAX);
    program->code[program->len] = instruction;
    return program->len++;
}

static size_t emit_return(struct seccomp_program *program, int errnum)
{
    uint32_t value = errnum ? SECCOMP_RET_ERRNO | (uint32_t)errnum : SECCOMP_RET_ALLOW;

    return emit(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value));
}

/* Continues with the instruction emitted last. */
static size_t emit_load(struct seccomp_program *program, size_t offset)
{
    return emit(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* The kernel itself reads only the low half of a flag word or of a 32-bit command. */
static size_t emit_load_argument(struct seccomp_program *program, unsigned number)
{
    return emit_load(program, offsetof(struct seccomp_data, args) + number * sizeof(uint64_t));
}

/* Continues at one of two positions, by a test of the loaded word. */
static size_t emit_test(struct seccomp_program *program, uint16_t test, uint32_t operand,
                        size_t yes, size_t no)
{
    size_t yes_distance = program->len - yes - 1, no_distance = program->len - no - 1;

    assert(yes_distance <= JUMP_MAX && no_distance <= JUMP_MAX);
    return emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, operand,
                                                      (uint8_t)yes_distance, (uint8_t)no_distance));
}

/* Continues at one of two positions, depending on whether an argument is one of a few values. */
static size_t emit_one_of(struct seccomp_program *program, unsigned argument,
                          const uint32_t *values, size_t count, size_t yes, size_t no)
{
    size_t next = no;

    while (count-- > 0)
        next = emit_test(program, BPF_JEQ, values[count], yes, next);
    return emit_load_argument(program, argument);
}

static size_t emit_flags(struct seccomp_program *program, uint32_t forbidden,
                         const size_t *positions)
{
    (void)emit_test(program, BPF_JSET, forbidden, positions[DENY], positions[ALLOW]);
    return emit_load_argument(program, 0);
}

/* Refuses sockets whose queues no memory limit covers: packet sockets, by their family and by the
 * old type SOCK_PACKET, raw IP sockets, netlink between processes, and IP protocols that the memory
 * guard does not see (MPTCP, SCTP). */
static size_t emit_socket(struct seccomp_program *program, size_t allow, size_t refuse,
                          size_t no_family)
{
    static const uint32_t internet[] = { 0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP,
                                         IPPROTO_ICMPV6 };
    /* Devices and addresses, ss(8), udev, and families with a name. */
    static const uint32_t protocols[] = { NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_KOBJECT_UEVENT,
                                          NETLINK_GENERIC };
    size_t no_protocol = emit_return(program, EPROTONOSUPPORT);
    size_t netlink = emit_one_of(program, 2, protocols, ARRAY_SIZE(protocols), allow, no_protocol);
    size_t ip = emit_one_of(program, 2, internet, ARRAY_SIZE(internet), allow, no_protocol);
    size_t raw, next, start;

    (void)emit_test(program, BPF_JEQ, AF_NETLINK, netlink, refuse);
    raw = emit_load_argument(program, 0);
    next = emit_test(program, BPF_JEQ, AF_INET6, ip, no_family);
    next = emit_test(program, BPF_JEQ, AF_INET, ip, next);
    next = emit_test(program, BPF_JEQ, AF_UNIX, allow, next);
    (void)emit_test(program, BPF_JEQ, AF_NETLINK, netlink, next);
    next = emit_load_argument(program, 0);
    next = emit_test(program, BPF_JEQ, SOCK_PACKET, no_family, next);
    (void)emit_test(program, BPF_JEQ, SOCK_RAW, raw, next);
    (void)emit(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCKET_TYPE));
    start = emit_load_argument(program, 1);
    (void)emit_test(program, BPF_JEQ, SECCOMP_NETLINK_KEY, refuse, start);
    return emit_load(program, offsetof(struct seccomp_data, args) + sizeof(uint32_t));
}

/* Refuses IPv6 flow labels, of which the machine has one pool. Ignores options that let the queues
 * of a socket grow beyond the default, where no memory limit counts them: buffer sizes (which
 * connections inherit that were not accepted yet), time stamps and the error queue. The answer is
 * success, since resolvers and databases give up otherwise. */
static size_t emit_socket_options(struct seccomp_program *program, size_t allow, size_t no_option,
                                  size_t filter)
{
    static const uint32_t of_sockets[] = { SO_RCVBUF, SO_SNDBUF, SO_TIMESTAMPING_OLD,
                                           SO_TIMESTAMPING_NEW };
    static const uint32_t ip = SOL_IP, ip6 = SOL_IPV6, sockets = SOL_SOCKET;
    static const uint32_t ip_errors = IP_RECVERR, ip6_errors = IPV6_RECVERR,
                          ip6_labels = FLOW_LABELS; /* the machine has 4,096 */
    size_t ignore = emit(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO));
    size_t no_label = emit_one_of(program, 2, &ip6_labels, 1, no_option, allow);
    size_t of_ip6 = emit_one_of(program, 2, &ip6_errors, 1, ignore, no_label);
    size_t of_ip = emit_one_of(program, 2, &ip_errors, 1, ignore, allow);
    size_t of_socket = emit_one_of(program, 2, of_sockets, ARRAY_SIZE(of_sockets), ignore, filter);
    size_t next = emit_one_of(program, 1, &ip6, 1, of_ip6, allow);

    next = emit_one_of(program, 1, &ip, 1, of_ip, next);
    return emit_one_of(program, 1, &sockets, 1, of_socket, next);
}

/* Refuses filters of programs, for sockets and for system calls: the kernel compiles them in memory
 * of which the whole machine has net.core.bpf_jit_limit, 72 KiB for each. Without it no process of
 * any sandbox can be started. The answers are those of a kernel that has no filters. */
static void emit_filters(struct seccomp_program *program, size_t allow, size_t *positions)
{
    static const uint32_t options[] = { SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF,
                                        SO_ATTACH_REUSEPORT_EBPF };
    static const uint32_t mode = SECCOMP_MODE_FILTER, seccomp = PR_SET_SECCOMP,
                          install = SECCOMP_SET_MODE_FILTER;
    size_t no_option = emit_return(program, ENOPROTOOPT), invalid = emit_return(program, EINVAL);
    size_t next = emit_one_of(program, 2, options, ARRAY_SIZE(options), no_option, allow);

    positions[CHECK_SOCKET_OPTION] = emit_socket_options(program, allow, no_option, next);
    next = emit_one_of(program, 1, &mode, 1, invalid, allow);
    positions[CHECK_PRCTL] = emit_one_of(program, 0, &seccomp, 1, next, allow);
    positions[CHECK_SECCOMP] = emit_one_of(program, 0, &install, 1, invalid, allow);
}

/* Emits the code of each action and stores its position. */
static void emit_actions(struct seccomp_program *program, size_t positions[ACTIONS])
{
    static const uint32_t harmless[] = { 0, 0x8, 0x20000, 0x20008, 0xffffffff };
    /* A process with the same uid could cripple holt-init by setting its limits. */
    static const uint32_t init = 1;
    /* Other families make two sockets before they refuse to connect them. */
    static const uint32_t local = AF_UNIX;
    static const uint32_t commands[] = {
        /* Both insert characters into a terminal's input as if its owner had typed them
         * (CVE-2017-5226). */
        TIOCSTI,
        0x541c, /* TIOCLINUX */
        /* Allowed by the kernel to any owner of a btrfs directory, such as a volume: subvolumes in
         * it could not be removed as files, and other sandboxes that mount it need to write. */
        BTRFS_IOC_SUBVOL_CREATE,
        BTRFS_IOC_SUBVOL_CREATE_V2,
        BTRFS_IOC_SNAP_CREATE,
        BTRFS_IOC_SNAP_CREATE_V2,
        BTRFS_IOC_SUBVOL_SETFLAGS,
        BTRFS_IOC_SET_RECEIVED_SUBVOL,
    };
    size_t no_family = emit_return(program, EAFNOSUPPORT);
    size_t allow = positions[ALLOW] = emit_return(program, 0);
    size_t refuse = positions[DENY] = emit_return(program, EPERM);

    positions[MISSING] = emit_return(program, ENOSYS);
    positions[CHECK_CLONE] = emit_flags(program, (uint32_t)NAMESPACES, positions);
    positions[CHECK_UNSHARE] = emit_flags(program, (uint32_t)NAMESPACES | NEWTIME, positions);
    positions[CHECK_IOCTL] = emit_one_of(program, 1, commands, ARRAY_SIZE(commands), refuse, allow);
    positions[CHECK_SOCKET] = emit_socket(program, allow, refuse, no_family);
    positions[CHECK_SOCKETPAIR] = emit_one_of(program, 0, &local, 1, allow, no_family);
    emit_filters(program, allow, positions);
    positions[CHECK_PRLIMIT] = emit_one_of(program, 0, &init, 1, refuse, allow);
    positions[CHECK_PERSONALITY] =
        emit_one_of(program, 0, harmless, ARRAY_SIZE(harmless), allow, refuse);
}

/* Consecutive calls with one action: first is the lowest number; the next run begins where it
 * ends. */
struct run {
    uint32_t first;
    enum action action;
};

/* Emits a binary search for the number in the accumulator over runs[0..count). */
static size_t emit_tree(struct seccomp_program *program, const struct run *runs, size_t count,
                        const size_t *positions)
{
    size_t half = count / 2, above, below;

    if (count == 1)
        return positions[runs[0].action];
    above = emit_tree(program, runs + half, count - half, positions);
    below = emit_tree(program, runs, half, positions);
    return emit_test(program, BPF_JGE, runs[half].first, above, below);
}

static size_t find_runs(struct run *ret)
{
    enum action actions[LAST_KNOWN + 2];
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        actions[i] = ALLOW;
    for (size_t i = 0; i < ARRAY_SIZE(exceptions); i++)
        actions[exceptions[i].number] = exceptions[i].action;
    actions[LAST_KNOWN + 1] = MISSING; /* also for all higher numbers, including those of x32 */
    for (uint32_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (i == 0 || actions[i] != actions[i - 1])
            ret[count++] = (struct run){ .first = i, .action = actions[i] };
    return count;
}

static void program_reverse(struct seccomp_program *program)
{
    for (size_t i = 0; i < program->len / 2; i++) {
        struct sock_filter swapped = program->code[i];

        program->code[i] = program->code[program->len - 1 - i];
        program->code[program->len - 1 - i] = swapped;
    }
}

void seccomp_build(struct seccomp_program *ret)
{
    struct run runs[LAST_KNOWN + 2];
    size_t positions[ACTIONS], native;

    memset(ret, 0, sizeof(*ret));
    emit_actions(ret, positions);
    (void)emit_tree(ret, runs, find_runs(runs), positions);
    native = emit_load(ret, offsetof(struct seccomp_data, nr));
    (void)emit_test(ret, BPF_JEQ, NATIVE_ARCH, native, positions[MISSING]);
    (void)emit_load(ret, offsetof(struct seccomp_data, arch));
    program_reverse(ret);
}

/* Fails with EBUSY below another filter of this kind, for example in a container. */
static int listener_try(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = { .len = 1, .filter = &allow };
    long fd =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);

    return fd < 0 ? errno : 0;
}

int seccomp_probe_listener(void)
{
    pid_t pid = fork(), ended;
    int status = 0;

    if (pid < 0)
        return -errno;
    if (pid == 0)
        _exit(listener_try());
    do
        ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    return ended == pid && WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}
