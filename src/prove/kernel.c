// SPDX-License-Identifier: Apache-2.0
/* Parts of the kernel that a sandbox does not need and that were ways out before, and the powers of
 * the machine's root. Calls that would do harm get an argument that the kernel refuses after it has
 * checked the privileges. */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/io.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include "prove/prove.h"

static void call_result(long r, const char *name, struct result *ret)
{
    if (r >= 0)
        reached(ret, "%s works", name);
    else if (errno == ENOSYS)
        absent(ret, name);
    else
        held(ret, name);
}

/* For a call that cannot succeed: it was let through if the kernel refused the argument. */
static void call_refusal(long r, int let_through, const char *name, struct result *ret)
{
    if (r < 0 && errno == let_through)
        reached(ret, "%s was let through", name);
    else
        call_result(r, name, ret);
}

void attempt_io_uring(const struct facts *facts, struct result *ret)
{
    struct io_uring_params params = { 0 };

    (void)facts;
    call_result(syscall(SYS_io_uring_setup, 1, &params), "io_uring_setup", ret);
}

void attempt_bpf(const struct facts *facts, struct result *ret)
{
    union bpf_attr attributes = { .map_type = BPF_MAP_TYPE_ARRAY };

    (void)facts;
    attributes.key_size = attributes.value_size = 4;
    attributes.max_entries = 1;
    call_result(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes)), "bpf", ret);
}

void attempt_userfaultfd(const struct facts *facts, struct result *ret)
{
    (void)facts;
    call_result(syscall(SYS_userfaultfd, 0), "userfaultfd", ret);
}

void attempt_perf(const struct facts *facts, struct result *ret)
{
    struct perf_event_attr attributes = { .type = PERF_TYPE_SOFTWARE,
                                          .size = sizeof(attributes),
                                          .config = PERF_COUNT_SW_CPU_CLOCK };

    (void)facts;
    call_result(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0), "perf_event_open", ret);
}

void attempt_module(const struct facts *facts, struct result *ret)
{
    static const char no_module[64] = "";

    (void)facts;
    call_refusal(syscall(SYS_init_module, no_module, sizeof(no_module), ""), ENOEXEC, "init_module",
                 ret);
}

void attempt_kexec(const struct facts *facts, struct result *ret)
{
    (void)facts;
    call_refusal(syscall(SYS_kexec_load, 0, 0, NULL, ~0UL), EINVAL, "kexec_load", ret);
}

void attempt_reboot(const struct facts *facts, struct result *ret)
{
    (void)facts;
    call_refusal(syscall(SYS_reboot, 0, 0, 0, NULL), EINVAL, "reboot", ret);
}

void attempt_swap(const struct facts *facts, struct result *ret)
{
    (void)facts;
    call_refusal(swapon("/holt-prove/no-such-file", 0), ENOENT, "swapon", ret);
}

/* Sets the length of a tick to what it is. */
void attempt_clock(const struct facts *facts, struct result *ret)
{
    struct timex clock = { .modes = 0 };

    (void)facts;
    if (adjtimex(&clock) >= 0)
        clock.modes = ADJ_TICK;
    call_result(clock.modes ? adjtimex(&clock) : -1, "adjtimex", ret);
}

void attempt_io_ports(const struct facts *facts, struct result *ret)
{
    (void)facts;
#if defined(__x86_64__)
    call_result(ioperm(0x80, 1, 1), "ioperm", ret);
#else
    errno = ENOSYS;
    absent(ret, "ioperm");
#endif
}
