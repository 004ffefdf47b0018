// SPDX-License-Identifier: Apache-2.0
/* The owner of a sandbox's group is an extended attribute of it: it needs no disk, and ends with
 * the group. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/cgroup_internal.h"

#define OWNER "trusted.holt.owner"

static int group_open(struct cgroup_root *root, const char *name)
{
    int fd = openat(root->unified_fd, name, O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int cgroup_set_owner(struct cgroup_root *root, const char *name, const char *owner)
{
    cleanup_close int fd = group_open(root, name);

    if (fd < 0)
        return fd;
    if (!owner)
        return fremovexattr(fd, OWNER) < 0 && errno != ENODATA ? -errno : 0;
    return fsetxattr(fd, OWNER, owner, strlen(owner), 0) < 0 ? -errno : 0;
}

int cgroup_get_owner(struct cgroup_root *root, const char *name, char *ret, size_t size)
{
    cleanup_close int fd = group_open(root, name);
    ssize_t len = fd < 0 ? fd : fgetxattr(fd, OWNER, ret, size - 1);

    if (len < 0)
        return fd < 0 ? fd : -errno;
    ret[len] = '\0';
    return 0;
}

int cgroup_each(struct cgroup_root *root, void (*each)(void *context, const char *name),
                void *context)
{
    int fd = openat(root->unified_fd, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        int r = -errno;

        (void)fd_close(fd);
        return r;
    }
    while ((entry = readdir(dir)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            each(context, entry->d_name);
    (void)closedir(dir);
    return 0;
}
