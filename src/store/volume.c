// SPDX-License-Identifier: Apache-2.0
#include "store/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/tree.h"
#include "base/xalloc.h"
#include "kernel/caps.h"
#include "kernel/mount.h"
#include "store/store_internal.h"

enum { LAYER_NAME_BYTES = 64 };

/* On disk: volumes/ID/TREE and volumes/ID/TREE.work, the upper and work directories of each tree.
 */
static const char *work_name(char *into, const char *tree)
{
    (void)snprintf(into, LAYER_NAME_BYTES, "%s.work", tree);
    return into;
}

/* 0755 whatever the umask is: the upper's own mode becomes that of the sandbox's directory. */
static int make_layer_dir(int dir_fd, const char *name)
{
    if (mkdirat(dir_fd, name, 0755) < 0)
        return -errno;
    return fchmodat(dir_fd, name, 0755, 0) < 0 ? -errno : 0;
}

static int make_layers(const struct volume *volume)
{
    char work[LAYER_NAME_BYTES];
    int r = 0;

    for (size_t i = 0; r == 0 && i < volume->template->tree_count; i++) {
        const char *tree = volume->template->trees[i].name;

        r = make_layer_dir(volume->dir_fd, tree);
        if (r == 0)
            r = make_layer_dir(volume->dir_fd, work_name(work, tree));
    }
    return r;
}

static void volume_destroy_slot(struct volume **volume)
{
    (void)volume_destroy(*volume);
}

int volume_create_scratch(struct store *store, const char *id, struct template *template,
                          struct volume **ret, struct err *err)
{
    cleanup_with(volume_destroy_slot) struct volume *volume = xcalloc(1, sizeof(*volume));
    int r;

    volume->store = store;
    volume->id = xstrdup(id);
    volume->dir_fd = -EBADF;
    if (mkdirat(store->volumes_fd, id, 0700) < 0)
        return err_sys(err, -errno, "make volume '%s'", id);
    volume->dir_fd = openat(store->volumes_fd, id, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (volume->dir_fd < 0)
        return err_sys(err, -errno, "open volume '%s'", id);
    volume->template = template;
    r = make_layers(volume);
    if (r < 0) {
        volume->template = NULL; /* still the caller's */
        return err_sys(err, r, "make the layers of volume '%s'", id);
    }
    *ret = TAKE_PTR(volume);
    return 0;
}

/* An idmapped, detached view of a directory. */
static int clone_mapped(int dir_fd, int userns_fd)
{
    cleanup_close int mount_fd = mount_clone(dir_fd, "", false);
    int r = mount_fd < 0 ? mount_fd : mount_set_idmap(mount_fd, userns_fd);

    return r < 0 ? r : TAKE_FD(mount_fd);
}

/* Overlay does its own writes with the credentials of whoever made it. They must be expressible in
 * the mapped layers, or it fails with EOVERFLOW and turns read-only: so the maker's file uid is the
 * sandbox's root for this moment, with the capabilities that changing it takes away. */
static int mount_overlay_as(uid_t uid, const struct overlay *overlay)
{
    int fd, r;

    (void)setfsgid(uid);
    (void)setfsuid(uid);
    r = caps_raise(~0ULL);
    fd = r < 0 ? r : mount_overlay(overlay);
    (void)setfsuid(0);
    (void)setfsgid(0);
    return fd;
}

static int mount_tree(int upper_root_fd, const struct template_tree *tree, int userns_fd,
                      uid_t first_uid)
{
    char work[LAYER_NAME_BYTES];
    cleanup_close int lower = clone_mapped(tree->fd, userns_fd);
    cleanup_close int upper_fd = -EBADF, work_fd = -EBADF;
    struct overlay overlay = {
        .lower_fds = &lower,
        .lower_count = 1,
        .flag = "volatile", /* a volume that outlives its sandbox is not made here yet */
        .attributes = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID,
    };

    if (lower < 0)
        return lower;
    upper_fd = openat(upper_root_fd, tree->name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    work_fd = openat(upper_root_fd, work_name(work, tree->name), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (upper_fd < 0 || work_fd < 0)
        return -errno;
    overlay.upper_fd = upper_fd;
    overlay.work_fd = work_fd;
    return mount_overlay_as(first_uid, &overlay);
}

int volume_mount(struct volume *volume, int userns_fd, uid_t first_uid, struct volume_mounts *ret,
                 struct err *err)
{
    cleanup_with(volume_mounts_done) struct volume_mounts mounts = { .count = 0 };
    cleanup_close int upper_root_fd = clone_mapped(volume->dir_fd, userns_fd);

    if (upper_root_fd < 0)
        return err_sys(err, upper_root_fd, "map the owners of volume '%s'", volume->id);
    for (size_t i = 0; i < volume->template->tree_count; i++) {
        const struct template_tree *tree = &volume->template->trees[i];
        int fd = mount_tree(upper_root_fd, tree, userns_fd, first_uid);

        if (fd < 0)
            return err_sys(err, fd, "overlay '%s' of template '%s'", tree->target,
                           volume->template->name);
        mounts.targets[mounts.count] = tree->target;
        mounts.fds[mounts.count++] = fd;
    }
    *ret = mounts;
    mounts.count = 0;
    return 0;
}

void volume_mounts_done(struct volume_mounts *mounts)
{
    while (mounts->count > 0)
        (void)close(mounts->fds[--mounts->count]);
}

int volume_destroy(struct volume *volume)
{
    int r;

    if (!volume)
        return 0;
    (void)fd_close(volume->dir_fd);
    r = tree_remove_at(volume->store->volumes_fd, volume->id);
    template_close(volume->template);
    free(volume->id);
    free(volume);
    return r;
}
