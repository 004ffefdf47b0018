// SPDX-License-Identifier: Apache-2.0
#include "kernel/seccomp.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

enum {
    LAST_KNOWN = 450, /* set_mempolicy_home_node: all calls of Linux 6.1 were looked at */
    JUMP_MAX = 255,
    NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                 CLONE_NEWNET | CLONE_NEWCGROUP,
    NEWTIME = 0x80, /* CLONE_NEWTIME; in clone(2) the bit is part of the exit signal */
};

enum action {
    ALLOW,
    REFUSE,  /* EPERM */
    MISSING, /* ENOSYS: callers have another way that works */
    CHECK_CLONE,
    CHECK_UNSHARE,
    CHECK_IOCTL,
    CHECK_SOCKET,
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
      MISSING }, /* its flags are in memory, out of a filter's sight; libc then uses clone */
    { SYS_unshare, CHECK_UNSHARE },
    { SYS_setns, REFUSE },
    { SYS_mount, REFUSE },
    { SYS_umount2, REFUSE },
    { SYS_pivot_root, REFUSE },
    { SYS_open_tree, REFUSE },
    { SYS_move_mount, REFUSE },
    { SYS_mount_setattr, REFUSE },
    { SYS_fsopen, REFUSE },
    { SYS_fsconfig, REFUSE },
    { SYS_fsmount, REFUSE },
    { SYS_fspick, REFUSE },
    { SYS_quotactl, REFUSE },
    { SYS_quotactl_fd, REFUSE },
    { SYS_swapon, REFUSE },
    { SYS_swapoff, REFUSE },
    { SYS_fanotify_init, REFUSE },
    { SYS_open_by_handle_at, REFUSE },
    { SYS_lookup_dcookie, REFUSE },

    /* code and probes in the kernel */
    { SYS_init_module, REFUSE },
    { SYS_finit_module, REFUSE },
    { SYS_delete_module, REFUSE },
    { SYS_kexec_load, REFUSE },
    { SYS_kexec_file_load, REFUSE },
    { SYS_bpf, REFUSE },
    { SYS_perf_event_open, REFUSE },
    { SYS_userfaultfd, REFUSE },
    { SYS_io_uring_setup, MISSING },
    { SYS_io_uring_enter, MISSING },
    { SYS_io_uring_register, MISSING },

    /* state of the whole machine */
    { SYS_reboot, REFUSE },
    { SYS_syslog, REFUSE },
    { SYS_acct, REFUSE },
    { SYS_vhangup, REFUSE },
    { SYS_settimeofday, REFUSE },
    { SYS_clock_settime, REFUSE },
    { SYS_clock_adjtime, REFUSE },
    { SYS_adjtimex, REFUSE },
    { SYS_sethostname, REFUSE },
    { SYS_setdomainname, REFUSE },
    { SYS_nfsservctl, REFUSE },
    { SYS_kcmp, REFUSE },
    { SYS_migrate_pages, REFUSE },
    { SYS_move_pages, REFUSE },
    { SYS_personality, CHECK_PERSONALITY },

    /* keys are not namespaced */
    { SYS_add_key, REFUSE },
    { SYS_request_key, REFUSE },
    { SYS_keyctl, REFUSE },

    /* what is fine but for some arguments */
    { SYS_ioctl, CHECK_IOCTL },
    { SYS_socket, CHECK_SOCKET },
    { SYS_prlimit64, CHECK_PRLIMIT },
#if defined(__x86_64__)
    { SYS_ioperm, REFUSE },
    { SYS_iopl, REFUSE },
    { SYS_modify_ldt, REFUSE },
    { SYS_uselib, REFUSE },
    { SYS_ustat, REFUSE },
    { SYS_sysfs, REFUSE },
    { SYS__sysctl, REFUSE },
    { SYS_create_module, REFUSE },
    { SYS_get_kernel_syms, REFUSE },
    { SYS_query_module, REFUSE },
#endif
};

/* The program is written from its end to its beginning: jumps lead forward only, and so their
 * targets are there already. A place is counted from the end, too. What is written is one path for
 * each call, and every end of a path once: the kernel compiles all of it for every process. */
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

/* Goes on with what was written last. */
static size_t emit_load(struct seccomp_program *program, size_t offset)
{
    return emit(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* The low half is all of a flag word or a 32-bit command that the kernel itself looks at. */
static size_t emit_load_argument(struct seccomp_program *program, unsigned number)
{
    return emit_load(program, offsetof(struct seccomp_data, args) + number * sizeof(uint64_t));
}

/* Goes on at one of two places, by a test of the loaded word. */
static size_t emit_test(struct seccomp_program *program, uint16_t test, uint32_t operand,
                        size_t yes, size_t no)
{
    size_t yes_distance = program->len - yes - 1, no_distance = program->len - no - 1;

    assert(yes_distance <= JUMP_MAX && no_distance <= JUMP_MAX);
    return emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, operand,
                                                      (uint8_t)yes_distance, (uint8_t)no_distance));
}

/* Goes on at one of two places, by whether an argument is one of a few values. */
static size_t emit_one_of(struct seccomp_program *program, unsigned argument,
                          const uint32_t *values, size_t count, size_t yes, size_t no)
{
    size_t next = no;

    while (count-- > 0)
        next = emit_test(program, BPF_JEQ, values[count], yes, next);
    return emit_load_argument(program, argument);
}

static size_t emit_flags(struct seccomp_program *program, uint32_t forbidden, const size_t *places)
{
    (void)emit_test(program, BPF_JSET, forbidden, places[REFUSE], places[ALLOW]);
    return emit_load_argument(program, 0);
}

/* Where each action begins. */
static void emit_actions(struct seccomp_program *program, size_t places[ACTIONS])
{
    static const uint32_t harmless[] = { 0, 0x8, 0x20000, 0x20008, 0xffffffff };
    static const uint32_t families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET };
    /* Whoever has its uid may set the limits of holt-init, and so cripple it. */
    static const uint32_t init = 1;
    static const uint32_t commands[] = {
        /* Both put characters into a terminal's input, as if typed by whoever owns it
         * (CVE-2017-5226). */
        TIOCSTI,
        0x541c, /* TIOCLINUX */
        /* What anybody may do who owns a directory of btrfs, as that of a volume: subvolumes in it
         * could not be removed as files are, and others have it mounted who want to write. */
        BTRFS_IOC_SUBVOL_CREATE,
        BTRFS_IOC_SUBVOL_CREATE_V2,
        BTRFS_IOC_SNAP_CREATE,
        BTRFS_IOC_SNAP_CREATE_V2,
        BTRFS_IOC_SUBVOL_SETFLAGS,
        BTRFS_IOC_SET_RECEIVED_SUBVOL,
    };
    size_t no_family = emit_return(program, EAFNOSUPPORT);
    size_t allow = places[ALLOW] = emit_return(program, 0);
    size_t refuse = places[REFUSE] = emit_return(program, EPERM);

    places[MISSING] = emit_return(program, ENOSYS);
    places[CHECK_CLONE] = emit_flags(program, (uint32_t)NAMESPACES, places);
    places[CHECK_UNSHARE] = emit_flags(program, (uint32_t)NAMESPACES | NEWTIME, places);
    places[CHECK_IOCTL] = emit_one_of(program, 1, commands, ARRAY_SIZE(commands), refuse, allow);
    places[CHECK_SOCKET] =
        emit_one_of(program, 0, families, ARRAY_SIZE(families), allow, no_family);
    places[CHECK_PRLIMIT] = emit_one_of(program, 0, &init, 1, refuse, allow);
    places[CHECK_PERSONALITY] =
        emit_one_of(program, 0, harmless, ARRAY_SIZE(harmless), allow, refuse);
}

/* Consecutive calls with one action: first is the lowest number, the next run begins where it ends.
 */
struct run {
    uint32_t first;
    enum action action;
};

/* A binary search for the number in the accumulator over runs[0..count). */
static size_t emit_tree(struct seccomp_program *program, const struct run *runs, size_t count,
                        const size_t *places)
{
    size_t half = count / 2, above, below;

    if (count == 1)
        return places[runs[0].action];
    above = emit_tree(program, runs + half, count - half, places);
    below = emit_tree(program, runs, half, places);
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
    actions[LAST_KNOWN + 1] = MISSING; /* and so for all numbers above it, x32's among them */
    for (uint32_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (i == 0 || actions[i] != actions[i - 1])
            ret[count++] = (struct run){ .first = i, .action = actions[i] };
    return count;
}

static void reverse(struct seccomp_program *program)
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
    size_t places[ACTIONS], native;

    memset(ret, 0, sizeof(*ret));
    emit_actions(ret, places);
    (void)emit_tree(ret, runs, find_runs(runs), places);
    native = emit_load(ret, offsetof(struct seccomp_data, nr));
    (void)emit_test(ret, BPF_JEQ, NATIVE_ARCH, native, places[MISSING]);
    (void)emit_load(ret, offsetof(struct seccomp_data, arch));
    reverse(ret);
}
