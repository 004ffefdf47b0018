// SPDX-License-Identifier: Apache-2.0
#include "guest/zygote_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "kernel/mount.h"

enum { PROPAGATE_PRIVATE = 1 << 18 | 1 << 14 /* MS_PRIVATE | MS_REC */ };

/* Shown as on the host: a symbolic link as the same link, anything else as the same mount. The
 * kernel allows a user namespace its own procfs and sysfs only if it sees writable ones. */
static const char *const shown[] = { "proc", "sys", "usr", "bin", "sbin", "lib", "lib32", "lib64" };

static const struct {
    const char *name;
    unsigned major, minor;
} devices[] = {
    { "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
    { "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};

static const struct {
    const char *name, *target;
} links[] = {
    { "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
    { "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
    { "ptmx", "pts/ptmx" },
};

/* bubblewrap builds its root on a tmpfs over /tmp; /none is the empty directory that covers hidden
 * paths. */
static const char *const directories[] = { "dev", "tmp", "none" };

/* holt: see guest/trust.h */
static const char *const mount_points[] = { "pts", "shm", "mqueue", "holt" };

/* Copies the host's symbolic link, or clones its mount without attaching it. Does nothing if the
 * host has no such path. */
static int clone_shown(int root_fd, int host_fd, const char *name, int *ret_mount_fd)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(host_fd, name, target, sizeof(target) - 1);

    *ret_mount_fd = -EBADF;
    if (len >= 0) {
        target[len] = '\0';
        return symlinkat(target, root_fd, name) < 0 ? -errno : 0;
    }
    if (errno == ENOENT)
        return 0;
    if (errno != EINVAL || mkdirat(root_fd, name, 0755) < 0)
        return -errno;
    *ret_mount_fd = mount_clone(host_fd, name, false);
    return *ret_mount_fd < 0 ? *ret_mount_fd : 0;
}

static int fill_dev(int dev_fd)
{
    for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
        if (mknodat(dev_fd, devices[i].name, S_IFCHR | 0666,
                    makedev(devices[i].major, devices[i].minor)) < 0)
            return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(links); i++)
        if (symlinkat(links[i].target, dev_fd, links[i].name) < 0)
            return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(mount_points); i++)
        if (mkdirat(dev_fd, mount_points[i], 0755) < 0)
            return -errno;
    /* All sandboxes of this zygote share this filesystem, so none may write to it. */
    return mount_set_attributes(dev_fd, MOUNT_ATTR_RDONLY, false);
}

static int attach_at(int root_fd, const char *name, int mount_fd)
{
    cleanup_close int mount_point = openat(root_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    return mount_point < 0 ? -errno : mount_attach(mount_fd, mount_point);
}

static int tmpfs_new(uint64_t attributes)
{
    static const struct mount_option options[] = { { "mode", "755" }, { "size", "64k" } };

    return mount_new("tmpfs", options, ARRAY_SIZE(options), attributes);
}

/* Attaches the root over the host's and fills it while both are reachable. */
static int zygote_root_build(int host_fd, int root_fd)
{
    cleanup_close int dev_fd = tmpfs_new(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    int r = dev_fd < 0 ? dev_fd : fill_dev(dev_fd);

    if (r == 0)
        r = mount_attach(root_fd, host_fd);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(directories); i++)
        r = mkdirat(root_fd, directories[i], 0755) < 0 ? -errno : 0;
    if (r == 0)
        r = attach_at(root_fd, "dev", dev_fd);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(shown); i++) {
        cleanup_close int mount_fd = -EBADF;

        r = clone_shown(root_fd, host_fd, shown[i], &mount_fd);
        if (r == 0 && mount_fd >= 0)
            r = attach_at(root_fd, shown[i], mount_fd);
    }
    return r;
}

int zygote_root_enter(struct err *err)
{
    cleanup_close int host_fd = -EBADF, root_fd = -EBADF;
    int r;

    (void)umask(0);
    if (unshare(CLONE_NEWNS) < 0 ||
        syscall(SYS_mount, NULL, "/", NULL, PROPAGATE_PRIVATE, NULL) < 0)
        return err_sys(err, -errno, "leave the host's mounts");
    host_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (host_fd < 0)
        return err_sys(err, -errno, "open the host's root");
    root_fd = tmpfs_new(MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
    r = root_fd < 0 ? root_fd : zygote_root_build(host_fd, root_fd);
    if (r == 0)
        r = mount_pivot(root_fd);
    if (r == 0)
        r = mount_set_attributes(root_fd, MOUNT_ATTR_RDONLY, false);
    (void)umask(022);
    return r < 0 ? err_sys(err, r, "build the root of the zygote") : 0;
}
