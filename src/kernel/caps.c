// SPDX-License-Identifier: Apache-2.0
#include "kernel/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (1ULL << (cap))

uint64_t caps_docker_default(void)
{
    return BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) |
           BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_SETPCAP) |
           BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_NET_RAW) | BIT(CAP_SYS_CHROOT) | BIT(CAP_MKNOD) |
           BIT(CAP_AUDIT_WRITE) | BIT(CAP_SETFCAP);
}

static int caps_read(struct __user_cap_data_struct data[2])
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

    return syscall(SYS_capget, &header, data) < 0 ? -errno : 0;
}

static int caps_write(const struct __user_cap_data_struct data[2])
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

uint64_t caps_permitted(void)
{
    struct __user_cap_data_struct data[2];

    return caps_read(data) < 0 ? 0 : data[0].permitted | (uint64_t)data[1].permitted << 32;
}

int caps_set(uint64_t permitted, uint64_t effective, uint64_t inheritable)
{
    struct __user_cap_data_struct data[2] = {
        { (uint32_t)effective, (uint32_t)permitted, (uint32_t)inheritable },
        { (uint32_t)(effective >> 32), (uint32_t)(permitted >> 32), (uint32_t)(inheritable >> 32) },
    };

    return caps_write(data);
}

int caps_raise(uint64_t add)
{
    struct __user_cap_data_struct data[2];
    int r = caps_read(data);

    if (r < 0)
        return r;
    data[0].effective |= (uint32_t)add & data[0].permitted;
    data[1].effective |= (uint32_t)(add >> 32) & data[1].permitted;
    return caps_write(data);
}

int caps_keep_over_exec(void)
{
    struct __user_cap_data_struct data[2];
    int r = caps_read(data);

    if (r < 0)
        return r;
    data[0].inheritable = data[0].permitted;
    data[1].inheritable = data[1].permitted;
    r = caps_write(data);
    if (r < 0)
        return r;
    for (unsigned cap = 0; cap < 64; cap++) {
        if (!(data[cap / 32].permitted & 1U << cap % 32))
            continue;
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
            return -errno;
    }
    return 0;
}

int caps_limit(uint64_t keep)
{
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    for (unsigned long cap = 0; cap < 64; cap++) {
        if (keep & BIT(cap))
            continue;
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            /* The first number after the kernel's last capability. */
            if (errno == EINVAL)
                return 0;
            return -errno;
        }
    }
    return 0;
}
