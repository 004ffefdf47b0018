// SPDX-License-Identifier: Apache-2.0
/* Where trees are mounted. zfs-fuse mounts a clone as soon as it is made and ignores the options
 * that forbid devices and setuid programs; when it dies its mounts stay, and answer ENOTCONN.
 *
 * It must be unmounted with care: when the kernel ends a mount while the news that a file was
 * closed is still on its way, zfs-fuse waits for that news for ever, and serves nobody any more. So
 * a mount that lives is never taken away lazily, and ours is the last one of a tree to go. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/xalloc.h"
#include "kernel/mount.h"
#include "store/backend/zfs_internal.h"

enum {
    STACKED_MAX = 8,
    ROUND_TRIPS = 3,
    PAUSE_FIRST_MS = 1,
    PAUSE_LAST_MS = 512, /* doubled from the first: about a second in all */
    NS_PER_MS = 1000000,
};

char *zfs_mount_path(const struct zfs *zfs, const char *tree)
{
    return xasprintf("%s%s", zfs->mounts, tree + strlen(zfs->dataset) + strlen("/volumes"));
}

/* 1: something is mounted there; 0: nothing; -ENOTCONN: a mount whose daemon is gone. What the
 * kernel remembers of a dead filesystem does not count, so it has to ask. */
static int probe(const char *path)
{
    struct statx stx = { 0 };

    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_TYPE, &stx) == 0)
        return stx.stx_attributes & STATX_ATTR_MOUNT_ROOT ? 1 : 0;
    return errno == ENOENT ? 0 : -errno;
}

/* Only of the dead. */
static void detach(const char *path)
{
    for (int i = 0; i < STACKED_MAX && umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0; i++)
        continue;
}

static void pause_ms(long ms)
{
    const struct timespec pause = { .tv_nsec = ms * NS_PER_MS };

    (void)nanosleep(&pause, NULL);
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
    int r = probe(path);

    if (r < 0) {
        detach(path);
        r = probe(path);
    }
    if (r == 0) {
        r = tree_make(path, 0700);
        if (r < 0)
            return err_sys(err, r, "make '%s'", path);
        r = ZFS_PATIENTLY(err, "mount", dataset);
        if (r < 0)
            return r;
        r = probe(path);
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
    int r = probe(path);

    for (long ms = PAUSE_FIRST_MS; r > 0 && ms <= PAUSE_LAST_MS; ms *= 2) {
        /* Requests are read in order: when these are answered, it knows of every closed file. */
        for (int i = 0; r > 0 && i < ROUND_TRIPS; i++)
            r = probe(path);
        if (r > 0 && umount2(path, UMOUNT_NOFOLLOW) < 0 && errno != EBUSY)
            return -errno;
        r = probe(path);
        if (r > 0)
            pause_ms(ms);
    }
    if (r > 0)
        return -EBUSY;
    if (r < 0)
        detach(path);
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
        return r; /* not ours to remove, or never made */
    if (r == 0)
        r = zfs_mount(tree, path, err);
    if (r < 0) {
        (void)zfs_unmount(path);
        (void)ZFS_PATIENTLY(&ignored, "destroy", tree);
    }
    return r;
}
