// SPDX-License-Identifier: Apache-2.0
#include "host/core/descriptors.h"

#include <unistd.h>

#include "base/err.h"
#include "host/core/uids.h"
#include "kernel/fds.h"

enum {
    RESERVE = 500,
    RESERVE_SHARE = 4,               /* at most this part of all */
    DAEMON_SHARE = 8,                /* of all, for clients and the daemon itself, */
    DAEMON_MAX = 1000,               /* at most */
    SANDBOX_BYTES = 2 * 1024 * 1024, /* of one without processes, mostly in the kernel */
};

static unsigned at_most(unsigned value, unsigned max)
{
    return value < max ? value : max;
}

void descriptors_count(struct descriptors *ret)
{
    *ret = (struct descriptors){ .max = UINT32_MAX };
    if (fds_count(&ret->open, &ret->max) < 0)
        return;
    ret->reserve = at_most(RESERVE, ret->max / RESERVE_SHARE);
    ret->is_low = ret->open >= (ret->max - ret->reserve) / 4 * 3;
}

int descriptors_check_limit(struct err *err)
{
    struct descriptors now;

    descriptors_count(&now);
    if (now.max >= DESCRIPTORS_MIN)
        return 0;
    (void)err_set(err, ERR_EXHAUSTED, "too few file descriptors: the limit is %u, holtd needs %d",
                  now.max, DESCRIPTORS_MIN);
    return err_remedy(err, "raise the limit (ulimit -n, or LimitNOFILE= of the unit)");
}

static int descriptors_check(unsigned reserve_share, struct err *err)
{
    struct descriptors now;

    descriptors_count(&now);
    if (now.open < now.max - now.reserve / reserve_share)
        return 0;
    (void)err_refuse(
        err, CAUSE_CAPACITY_EXCEEDED,
        "out of file descriptors: the daemon has %u of %u open, the rest is in reserve", now.open,
        now.max);
    return err_remedy(err, "remove sandboxes or end processes, or raise the daemon's limit "
                           "(LimitNOFILE=)");
}

int descriptors_check_sandbox(struct err *err)
{
    return descriptors_check(1, err);
}

int descriptors_check_process(struct err *err)
{
    return descriptors_check(2, err);
}

uint32_t descriptors_sandboxes_max(void)
{
    struct descriptors now;
    uint64_t by_memory =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / SANDBOX_BYTES;
    unsigned others;
    uint32_t max;

    descriptors_count(&now);
    others = now.reserve + at_most(DAEMON_MAX, now.max / DAEMON_SHARE);
    max = at_most((now.max - others) / DESCRIPTORS_PER_SANDBOX, HOST_UID_RANGES);
    max = by_memory < max ? (uint32_t)by_memory : max;
    return max > 0 ? max : 1;
}
