// SPDX-License-Identifier: Apache-2.0
#include "kernel/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EAGAIN_TRIES = 32 };

static int open_resolved(int dir_fd, const char *path, int flags, mode_t mode, unsigned resolve)
{
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .mode = flags & (O_CREAT | O_TMPFILE) ? mode : 0,
        .resolve = resolve,
    };

    /* openat2 fails with EAGAIN if a rename anywhere on the machine races with "..". */
    for (int i = 0; i < EAGAIN_TRIES; i++) {
        long fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

        if (fd >= 0)
            return (int)fd;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
    }
    return -EAGAIN;
}

int open_beneath(int dir_fd, const char *path, int flags, mode_t mode)
{
    return open_resolved(dir_fd, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

int open_in_root(int dir_fd, const char *path, int flags, mode_t mode)
{
    return open_resolved(dir_fd, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int open_no_links(int dir_fd, const char *path, int flags, mode_t mode)
{
    return open_resolved(dir_fd, path, flags | O_NOFOLLOW, mode,
                         RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}
