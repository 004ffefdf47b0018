// SPDX-License-Identifier: Apache-2.0
#include "kernel/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/cleanup.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* Opens the slave by its name, for kernels without TIOCGPTPEER (gVisor). */
static int slave_open(int devpts_fd, int master_fd)
{
    char name[16];
    unsigned number;
    int fd;

    if (ioctl(master_fd, TIOCGPTN, &number) < 0)
        return -errno;
    (void)snprintf(name, sizeof(name), "%u", number);
    fd = openat(devpts_fd, name, O_RDWR | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int pty_open(int devpts_fd, int *ret_master_fd, int *ret_slave_fd)
{
    cleanup_close int master_fd = openat(devpts_fd, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int unlocked = 0, slave_fd;

    if (master_fd < 0 || ioctl(master_fd, TIOCSPTLCK, &unlocked) < 0)
        return -errno;
    /* By descriptor, because the sandbox may replace a path such as /dev/pts/0. */
    slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave_fd < 0)
        slave_fd = errno == ENOTTY || errno == EINVAL ? slave_open(devpts_fd, master_fd) : -errno;
    if (slave_fd < 0)
        return slave_fd;
    *ret_master_fd = TAKE_FD(master_fd);
    *ret_slave_fd = slave_fd;
    return 0;
}

int pty_resize(int master_fd, uint16_t rows, uint16_t columns)
{
    struct winsize size = { .ws_row = rows, .ws_col = columns };

    return ioctl(master_fd, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}
