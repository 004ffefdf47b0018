// SPDX-License-Identifier: Apache-2.0
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
    UMOUNT_DETACH =
        2, /* MNT_DETACH; <sys/mount.h> and <linux/mount.h> cannot be included together */
    PROPAGATE_SHARED = 1 << 20, /* MS_SHARED */
    PROC_FD_BYTES = 32,
};

static int errno_result(long r)
{
    return r < 0 ? -errno : (int)r;
}

static int fs_set_option(int fs_fd, const struct mount_option *option)
{
    unsigned command = option->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

    return errno_result(syscall(SYS_fsconfig, fs_fd, command, option->key, option->value, 0));
}

static int fs_set_fd(int fs_fd, const char *key, int fd)
{
    return errno_result(syscall(SYS_fsconfig, fs_fd, FSCONFIG_SET_FD, key, NULL, fd));
}

static int fs_open(const char *type)
{
    return errno_result(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC));
}

static int fs_mount(int fs_fd, uint64_t attributes)
{
    int r = errno_result(syscall(SYS_fsconfig, fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0));

    if (r < 0)
        return r;
    return errno_result(syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC, (unsigned)attributes));
}

int mount_new(const char *type, const struct mount_option *options, size_t count,
              uint64_t attributes)
{
    cleanup_close int fs_fd = fs_open(type);
    int r = fs_fd;

    for (size_t i = 0; r >= 0 && i < count; i++)
        r = fs_set_option(fs_fd, &options[i]);
    return r < 0 ? r : fs_mount(fs_fd, attributes);
}

int mount_clone(int dir_fd, const char *path, bool recursive)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW |
                     (recursive ? AT_RECURSIVE : 0);

    return errno_result(syscall(SYS_open_tree, dir_fd, path, flags));
}

static int mount_setattr_fd(int mount_fd, struct mount_attr *attr, unsigned flags)
{
    return errno_result(
        syscall(SYS_mount_setattr, mount_fd, "", AT_EMPTY_PATH | flags, attr, sizeof(*attr)));
}

int mount_set_attributes(int mount_fd, uint64_t attributes, bool recursive)
{
    struct mount_attr attr = { .attr_set = attributes };

    return mount_setattr_fd(mount_fd, &attr, recursive ? AT_RECURSIVE : 0);
}

int mount_clear_attributes(int mount_fd, uint64_t attributes)
{
    struct mount_attr attr = { .attr_clr = attributes };

    return mount_setattr_fd(mount_fd, &attr, 0);
}

int mount_set_shared(int mount_fd)
{
    struct mount_attr attr = { .propagation = PROPAGATE_SHARED };

    return mount_setattr_fd(mount_fd, &attr, 0);
}

int mount_set_idmap(int mount_fd, int userns_fd)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd };

    return mount_setattr_fd(mount_fd, &attr, 0);
}

int mount_attach(int mount_fd, int target_fd)
{
    return errno_result(syscall(SYS_move_mount, mount_fd, "", target_fd, "",
                                MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

int mount_detach(int mount_fd)
{
    char path[PROC_FD_BYTES];

    /* No system call takes a descriptor. */
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", mount_fd);
    return errno_result(syscall(SYS_umount2, path, UMOUNT_DETACH));
}

int mount_overlay(const struct overlay *overlay)
{
    cleanup_close int fs_fd = fs_open("overlay");
    int r = fs_fd;

    for (size_t i = 0; r >= 0 && i < overlay->lower_count; i++)
        r = fs_set_fd(fs_fd, "lowerdir+", overlay->lower_fds[i]);
    if (r >= 0)
        r = fs_set_fd(fs_fd, "upperdir", overlay->upper_fd);
    if (r >= 0)
        r = fs_set_fd(fs_fd, "workdir", overlay->work_fd);
    for (size_t i = 0; r >= 0 && i < overlay->option_count; i++)
        r = fs_set_option(fs_fd, &overlay->options[i]);
    return r < 0 ? r : fs_mount(fs_fd, overlay->attributes);
}

int mount_pivot(int root_fd)
{
    int r = errno_result(fchdir(root_fd));

    if (r == 0)
        r = errno_result(syscall(SYS_pivot_root, ".", "."));
    /* "." is now the old root, mounted on the new one. */
    if (r == 0)
        r = errno_result(syscall(SYS_umount2, ".", UMOUNT_DETACH));
    if (r == 0)
        r = errno_result(chdir("/"));
    return r;
}
