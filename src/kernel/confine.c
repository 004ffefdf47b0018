// SPDX-License-Identifier: Apache-2.0
#include "kernel/confine.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/caps.h"

enum { FILTER_MAX = 256 };

#if defined(__x86_64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#endif

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
/* The low word of the first argument; Holt runs on little-endian machines. */
#define LOAD_ARGUMENT LOAD(offsetof(struct seccomp_data, args))
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define IF_SET(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, yes, no)
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)
#define IF_AT_LEAST(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)(value), yes, no)
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

/* --- privileges ------------------------------------------------------------------------------- */

static int user_become(uid_t uid, gid_t gid)
{
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return -errno;
    return 0;
}

static int limits_set(size_t memory_max)
{
    const struct rlimit core = { 0, 0 }, memory = { memory_max, memory_max };

    if (setrlimit(RLIMIT_CORE, &core) < 0)
        return -errno;
    if (memory_max > 0 && !CONFINE_IS_SANITIZED && setrlimit(RLIMIT_DATA, &memory) < 0)
        return -errno;
    return 0;
}

int confine_privileges(const struct confine_privileges *kept)
{
    bool is_root = getuid() == 0;
    int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;

    if (r == 0 && is_root)
        r = caps_limit(0);
    if (r == 0 && is_root)
        r = user_become(kept->uid, kept->gid);
    if (r == 0)
        r = caps_set(kept->capabilities, kept->capabilities, 0);
    if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        r = -errno;
    return r < 0 ? r : limits_set(kept->memory_max);
}

/* --- system calls ----------------------------------------------------------------------------- */

struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short len;
};

static void filter_add(struct filter *filter, const struct sock_filter *code, size_t count)
{
    assert(filter->len + count <= FILTER_MAX);
    for (size_t i = 0; i < count; i++)
        filter->code[filter->len++] = code[i];
}

/* On x86-64, the calls of x32 have the same architecture and numbers with this bit. */
#define X32_BIT 0x40000000

/* What follows finds the number of the call loaded. */
static void filter_begin(struct filter *filter)
{
    static const struct sock_filter code[] = {
        LOAD(offsetof(struct seccomp_data, arch)),
        IF_EQUAL(AUDIT_ARCH_HERE, 1, 0),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        LOAD(offsetof(struct seccomp_data, nr)),
        IF_AT_LEAST(X32_BIT, 0, 1),
        RETURN(SECCOMP_RET_KILL_PROCESS),
    };

    filter_add(filter, code, ARRAY_SIZE(code));
}

static void filter_add_internet(struct filter *filter)
{
    static const struct sock_filter code[] = {
        IF_EQUAL(SYS_socket, 0, 5), LOAD_ARGUMENT,  IF_EQUAL(AF_INET, 2, 0),
        IF_EQUAL(AF_INET6, 1, 0),   RETURN(REFUSE), RETURN(SECCOMP_RET_ALLOW),
    };

    filter_add(filter, code, ARRAY_SIZE(code));
}

/* A filter cannot see the flags of clone3, so it does not exist, and libc then uses clone. */
static void filter_add_threads(struct filter *filter)
{
    static const struct sock_filter code[] = {
        IF_EQUAL(SYS_clone3, 0, 1),
        RETURN(SECCOMP_RET_ERRNO | ENOSYS),
        IF_EQUAL(SYS_clone, 0, 4),
        LOAD_ARGUMENT,
        IF_SET(CLONE_THREAD, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        RETURN(REFUSE),
    };

    filter_add(filter, code, ARRAY_SIZE(code));
}

static void filter_add_calls(struct filter *filter, const int *calls, size_t count, uint32_t action)
{
    for (size_t i = 0; i < count; i++) {
        const struct sock_filter code[] = { IF_EQUAL(calls[i], 0, 1), RETURN(action) };

        filter_add(filter, code, ARRAY_SIZE(code));
    }
}

static int filter_install(struct filter *filter, uint32_t otherwise)
{
    const struct sock_filter end = RETURN(otherwise);
    struct sock_fprog program = { .filter = filter->code };

    filter_add(filter, &end, 1);
    program.len = filter->len;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

int confine_calls_allow(const int *calls, size_t count, unsigned groups)
{
    struct filter filter = { .len = 0 };

    filter_begin(&filter);
    if (groups & CONFINE_INTERNET)
        filter_add_internet(&filter);
    if (groups & CONFINE_THREADS)
        filter_add_threads(&filter);
    filter_add_calls(&filter, calls, count, SECCOMP_RET_ALLOW);
    return filter_install(&filter, REFUSE);
}

int confine_calls_refuse(const int *calls, size_t count)
{
    struct filter filter = { .len = 0 };

    filter_begin(&filter);
    filter_add_calls(&filter, calls, count, REFUSE);
    return filter_install(&filter, SECCOMP_RET_ALLOW);
}
