// SPDX-License-Identifier: Apache-2.0
/* Mounts trees. zfs-fuse mounts a clone as soon as it is created and ignores the nodev and nosuid
 * options; when it dies, its mounts stay and return ENOTCONN.
 *
 * Unmounting needs care: if the kernel ends a mount while a FUSE release request is in flight,
 * zfs-fuse waits for that request for ever and serves nothing else. So a live mount is never
 * detached lazily, and ours is the last mount of a tree to be unmounted. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/xalloc.h"
#include "kernel/mount.h"
#include "store/backend/zfs_internal.h"

enum {
    STACKED_MAX = 8,
    ROUND_TRIPS = 3,
    PAUSE_FIRST_MS = 1,
    PAUSE_LAST_MS = 512, /* doubled from the first: about a second in total */
};

char *zfs_mount_path(const struct zfs *zfs, const char *tree)
{
    return xasprintf("%s%s", zfs->mounts, tree + strlen(zfs->dataset) + strlen("/volumes"));
}

/* Returns 1 if path is a mount point, 0 if not, -ENOTCONN if the daemon of the mount is gone.
 * Forces a request, because the kernel's cache still answers for a dead filesystem. */
static int mount_probe(const char *path)
{
    struct statx stx = { 0 };

    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_TYPE, &stx) == 0)
        return stx.stx_attributes & STATX_ATTR_MOUNT_ROOT ? 1 : 0;
    return errno == ENOENT ? 0 : -errno;
}

/* Only for dead mounts. */
static void mount_detach_dead(const char *path)
{
    for (int i = 0; i < STACKED_MAX && umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0; i++)
        continue;
}

static int restrict_mount(const char *path)
{
    cleanup_close int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    return mount_set_attributes(fd, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID, false);
}

int zfs_mount(const char *dataset, const char *path, struct err *err)
{
    int r = mount_probe(path);

    if (r < 0) {
        mount_detach_dead(path);
        r = mount_probe(path);
    }
    if (r == 0) {
        r = tree_make(path, 0700);
        if (r < 0)
            return err_sys(err, r, "make '%s'", path);
        r = ZFS_RETRY(err, "mount", dataset);
        if (r < 0)
            return r;
        r = mount_probe(path);
    }
    if (r == 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "zfs mounts '%s' where this process does not see it (another mount "
                       "namespace)",
                       dataset);
    if (r > 0)
        r = restrict_mount(path);
    return r < 0 ? err_sys(err, r, "mount '%s'", dataset) : 0;
}

int zfs_unmount(const char *path)
{
    int r = mount_probe(path);

    for (long ms = PAUSE_FIRST_MS; r > 0 && ms <= PAUSE_LAST_MS; ms *= 2) {
        /* Requests are read in order: once these are answered, it has processed every release. */
        for (int i = 0; r > 0 && i < ROUND_TRIPS; i++)
            r = mount_probe(path);
        if (r > 0 && umount2(path, UMOUNT_NOFOLLOW) < 0 && errno != EBUSY)
            return -errno;
        r = mount_probe(path);
        if (r > 0)
            clock_sleep_ms((uint64_t)ms);
    }
    if (r > 0)
        return -EBUSY;
    if (r < 0)
        mount_detach_dead(path);
    (void)rmdir(path);
    return 0;
}

int zfs_clone_tree(const struct zfs *zfs, const char *snapshot, const char *tree, bool is_view,
                   struct err *err)
{
    cleanup_free char *path = zfs_mount_path(zfs, tree);
    cleanup_free char *option = xasprintf("mountpoint=%s", path);
    struct err ignored;
    int r;

    r = ZFS(NULL, err, "clone", "-o", "canmount=noauto", "-o", "atime=off", "-o", option, "-o",
            is_view ? "readonly=on" : "readonly=off", snapshot, tree);
    if (r == -EEXIST || r == -ENOENT)
        return r; /* not ours to remove, or never created */
    if (r == 0)
        r = zfs_mount(tree, path, err);
    if (r < 0) {
        (void)zfs_unmount(path);
        (void)ZFS_RETRY(&ignored, "destroy", tree);
    }
    return r;
}
