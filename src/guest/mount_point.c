// SPDX-License-Identifier: Apache-2.0
#include "guest/mount_point.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "kernel/path.h"

enum { LEVELS_MAX = PATH_MAX / 2 };

/* Walks from the top down, so that a missing component is created in its open parent. */
static int open_or_make(int root_fd, const char *path)
{
    cleanup_close int above = open_in_root(root_fd, "/", O_PATH | O_DIRECTORY, 0);
    char copy[PATH_MAX];
    char *at = copy;

    if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
        return -ENAMETOOLONG;
    while (above >= 0 && *(at += strspn(at, "/"))) {
        char *name = at, was;
        int fd;

        at += strcspn(at, "/");
        was = *at;
        *at = '\0';
        fd = open_in_root(root_fd, copy, O_PATH | O_DIRECTORY, 0);
        if (fd == -ENOENT) {
            if (mkdirat(above, name, 0755) < 0)
                return errno == EEXIST ? -ENOTDIR : -errno; /* a dangling symbolic link */
            fd = open_in_root(root_fd, copy, O_PATH | O_DIRECTORY, 0);
        }
        *at = was;
        (void)close(above);
        above = fd;
    }
    return TAKE_FD(above);
}

int mount_point_open(int root_fd, const char *path, int *ret_fd, struct err *err)
{
    int fd = open_or_make(root_fd, path);

    if (fd == -ENOTDIR || fd == -ELOOP || fd == -ENAMETOOLONG)
        return err_set(err, ERR_INVALID, "volume path '%.150s' is not a directory: %s", path,
                       strerror(-fd));
    if (fd < 0)
        return err_sys(err, fd, "make volume path '%.150s'", path);
    *ret_fd = fd;
    return 0;
}

static bool is_same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool mount_point_is_within(int mount_point_fd, int dir_fd, int root_fd)
{
    cleanup_close int at = fcntl(mount_point_fd, F_DUPFD_CLOEXEC, 0);
    struct stat here, dir, root;

    if (at < 0 || fstat(dir_fd, &dir) < 0 || fstat(root_fd, &root) < 0)
        return true;
    for (int i = 0; i < LEVELS_MAX; i++) {
        int above;

        if (fstat(at, &here) < 0)
            return true;
        if (is_same_inode(&here, &root))
            return i == 0 && is_same_inode(&dir, &root);
        if (is_same_inode(&here, &dir))
            return true;
        above = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = above;
        if (at < 0)
            return true;
    }
    return true;
}
