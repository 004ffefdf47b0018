// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

int file_replace_at(int dir_fd, const char *name, const void *data, size_t len)
{
    cleanup_close int fd = -EBADF;
    char new_name[NAME_MAX + 1];
    int r = snprintf(new_name, sizeof(new_name), "%s.new", name);

    if (r < 0 || (size_t)r >= sizeof(new_name))
        return -ENAMETOOLONG;
    fd = openat(dir_fd, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = write_all(fd, data, len);
    if (r < 0)
        return r;
    if (fsync(fd) < 0 || renameat(dir_fd, new_name, dir_fd, name) < 0 || fsync(dir_fd) < 0)
        return -errno;
    return 0;
}
