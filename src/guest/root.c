// SPDX-License-Identifier: Apache-2.0
#include "guest/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "guest/identity.h"
#include "guest/mount_point.h"
#include "kernel/mount.h"
#include "kernel/path.h"
#include "wire/message.h"

/* Mounts that move to every new root. The runtime may not have made all of them. */
static const char *const carried[] = { "proc", "sys", "dev" };

/* Opens a directory directly below the new root, creating it if it is missing. Refuses a symbolic
 * link, which would redirect the mount. */
static int open_mount_point(int root_fd, const char *name, int *ret_fd, struct err *err)
{
    int fd = open_no_links(root_fd, name, O_PATH | O_DIRECTORY, 0);

    if (fd == -ENOENT) {
        if (mkdirat(root_fd, name, 0755) < 0)
            return err_sys(err, -errno, "make directory '/%s' in the template", name);
        fd = open_no_links(root_fd, name, O_PATH | O_DIRECTORY, 0);
    }
    if (fd == -ELOOP || fd == -ENOTDIR)
        return err_set(err, ERR_INVALID, "the template's '/%s' is not a directory", name);
    if (fd < 0)
        return err_sys(err, fd, "open '/%s' in the template", name);
    *ret_fd = fd;
    return 0;
}

static int attach_below(int root_fd, const char *target, int mount_fd, struct err *err)
{
    cleanup_close int mount_point = -EBADF;
    int r = open_mount_point(root_fd, target + 1, &mount_point, err);

    if (r < 0)
        return r;
    r = mount_attach(mount_fd, mount_point);
    return r < 0 ? err_sys(err, r, "attach '%s'", target) : 0;
}

/* Symbolic links that the sandbox created may move the mount point anywhere in the root, but not
 * to a path that another mount hides, nor over a mount that holt-init relies on. */
static int attach_volume(int root_fd, const char *target, int mount_fd, const int *mount_points,
                         struct err *err)
{
    cleanup_close int mount_point = -EBADF;
    int r = mount_point_open(root_fd, target, &mount_point, err);

    if (r < 0)
        return r;
    if (mount_point_is_within(mount_point, root_fd, root_fd))
        return err_set(err, ERR_INVALID, "volume path '%.150s' leads to '/'", target);
    for (size_t i = 0; i < ARRAY_SIZE(carried); i++)
        if (mount_point_is_within(mount_point, mount_points[i], root_fd))
            return err_set(err, ERR_INVALID, "volume path '%.150s' leads into '/%s'", target,
                           carried[i]);
    r = mount_attach(mount_fd, mount_point);
    return r < 0 ? err_sys(err, r, "attach volume '%.150s'", target) : 0;
}

/* A mount that this namespace was created with cannot be moved (EINVAL), but it can be cloned. */
static int attach_or_copy(int mount_fd, int mount_point)
{
    cleanup_close int copy_fd = -EBADF;
    int r = mount_attach(mount_fd, mount_point);

    if (r != -EINVAL)
        return r;
    copy_fd = mount_clone(mount_fd, "", true);
    return copy_fd < 0 ? copy_fd : mount_attach(copy_fd, mount_point);
}

/* The default working directory of every user. */
static int open_workspace(int root_fd, struct err *err)
{
    cleanup_close int fd = -EBADF;
    struct stat info;
    bool is_new = fstatat(root_fd, "workspace", &info, AT_SYMLINK_NOFOLLOW) < 0;
    int r = open_mount_point(root_fd, "workspace", &fd, err);

    if (r < 0 || !is_new)
        return r;
    return fchmodat(root_fd, "workspace", 0777, 0) < 0
               ? err_sys(err, -errno, "set the mode of '/workspace'")
               : 0;
}

/* Does everything that the contents of the new root can make fail before the old root changes. */
static int root_prepare(const struct message_root *message, const int *fds, int *mount_points,
                        struct err *err)
{
    size_t own = message->mount_count - message->volume_count;
    int root_fd = fds[0], r = 0;

    for (size_t i = 1; r == 0 && i < own; i++)
        r = attach_below(root_fd, message->targets[i], fds[i], err);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(carried); i++)
        r = open_mount_point(root_fd, carried[i], &mount_points[i], err);
    if (r == 0)
        r = open_workspace(root_fd, err);
    for (size_t i = own; r == 0 && i < message->mount_count; i++)
        r = attach_volume(root_fd, message->targets[i], fds[i], mount_points, err);
    return r;
}

static int move_carried(int old_root_fd, const int *mount_points, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(carried); i++) {
        cleanup_close int mount_fd =
            openat(old_root_fd, carried[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int r;

        if (mount_fd < 0 && errno == ENOENT)
            continue;
        r = mount_fd < 0 ? -errno : attach_or_copy(mount_fd, mount_points[i]);
        if (r < 0)
            return err_sys(err, r, "move '/%s' to the new root", carried[i]);
    }
    return 0;
}

static void close_mount_points(int (*mount_points)[ARRAY_SIZE(carried)])
{
    for (size_t i = 0; i < ARRAY_SIZE(*mount_points); i++)
        cleanup_close_fd(&(*mount_points)[i]);
}

int root_enter(const struct message_root *message, const int *fds, struct identity *identity,
               struct err *err)
{
    cleanup_close int old_root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(close_mount_points) int mount_points[ARRAY_SIZE(carried)] = { -EBADF, -EBADF,
                                                                               -EBADF };
    int root_fd = fds[0], r;

    if (old_root_fd < 0)
        return err_sys(err, -errno, "open the current root");
    r = mount_attach(root_fd, old_root_fd);
    if (r < 0)
        return err_sys(err, r, "attach the new root");
    r = root_prepare(message, fds, mount_points, err);
    if (r == 0)
        r = identity_cover(identity, root_fd, message->hostname, err);
    if (r == 0)
        r = trust_cover(&identity->trust, root_fd, old_root_fd, message, err);
    if (r == 0)
        r = move_carried(old_root_fd, mount_points, err);
    if (r < 0) {
        (void)mount_detach(root_fd);
        return r;
    }
    r = mount_pivot(root_fd);
    if (r < 0)
        return err_sys(err, r, "move to the new root");
    if (sethostname(message->hostname, strlen(message->hostname)) < 0)
        return err_sys(err, -errno, "set the host name to '%s'", message->hostname);
    return 0;
}
