// SPDX-License-Identifier: Apache-2.0
#include "kernel/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/cleanup.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

int pty_open(int devpts_fd, int *ret_master_fd, int *ret_slave_fd)
{
    cleanup_close int master_fd = openat(devpts_fd, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int unlocked = 0, slave_fd;

    if (master_fd < 0 || ioctl(master_fd, TIOCSPTLCK, &unlocked) < 0)
        return -errno;
    /* By descriptor, because the sandbox may replace a path such as /dev/pts/0. */
    slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave_fd < 0)
        return -errno;
    *ret_master_fd = TAKE_FD(master_fd);
    *ret_slave_fd = slave_fd;
    return 0;
}

int pty_resize(int master_fd, uint16_t rows, uint16_t columns)
{
    struct winsize size = { .ws_row = rows, .ws_col = columns };

    return ioctl(master_fd, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}
