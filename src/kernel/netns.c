// SPDX-License-Identifier: Apache-2.0
#include "kernel/netns.h"

#include <errno.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"

int netns_loopback_up(void)
{
    cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return -errno;
    return 0;
}
