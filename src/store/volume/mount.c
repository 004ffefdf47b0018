// SPDX-License-Identifier: Apache-2.0
/* A volume's live tree as mounts for a sandbox. */
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "kernel/caps.h"
#include "store/backend/backend.h"
#include "store/store_internal.h"
#include "store/volume/volume.h"
#include "store/volume/volume_internal.h"

enum { LAYER_NAME_BYTES = 64 };

/* A setuid file of the sandbox belongs to an owner of its own range, so it can only make somebody
 * of the sandbox out of whoever executes it there; nobody else sees these mounts. */
static uint64_t safe(const struct template *template)
{
    return MOUNT_ATTR_NODEV | (template->allows_setuid ? 0 : MOUNT_ATTR_NOSUID);
}

/* What is in an upper is to be whiteouts and opaque directories, and nothing that binds it to the
 * very files below: a copy of it must be as good, and a template may be made anew. Some kernels are
 * built with other defaults. */
static const struct mount_option options[] = {
    { "index", "off" },
    { "redirect_dir", "nofollow" },
    { "metacopy", "off" },
    { "volatile", NULL }, /* last: of scratch volumes only */
};

/* The user namespace that a sandbox's files are seen from. */
struct view_of {
    int userns_fd;
    uid_t first_uid;
};

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

/* The upper and an empty work directory of one tree. Both may be there from an earlier mount, which
 * may have ended in the middle of something; what it had begun is in the work directory alone. The
 * host's template may have a tree that it had not when the volume was made. */
static int make_layer(int dir_fd, const char *tree)
{
    char work[LAYER_NAME_BYTES];
    int r = make_layer_dir(dir_fd, tree);

    (void)work_name(work, tree);
    if (r < 0 && r != -EEXIST)
        return r;
    if (r == -EEXIST)
        r = tree_remove_at(dir_fd, work);
    return r < 0 ? r : make_layer_dir(dir_fd, work);
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

/* The read-only layers of a tree, mapped, topmost first: how many, or -errno. */
static int clone_lowers(const struct template_tree *tree, int userns_fd, int fds[])
{
    size_t count = 0;

    for (size_t i = 0; i <= tree->layer_count; i++) {
        int fd = clone_mapped(i < tree->layer_count ? tree->layers[i] : tree->fd, userns_fd);

        if (fd < 0) {
            while (count > 0)
                (void)close(fds[--count]);
            return fd;
        }
        fds[count++] = fd;
    }
    return (int)count;
}

static int mount_over(const struct volume *volume, const struct template_tree *tree,
                      int upper_root_fd, const struct view_of *view)
{
    char work[LAYER_NAME_BYTES];
    int lowers[TEMPLATE_LAYERS_MAX + 1], r;
    int count = clone_lowers(tree, view->userns_fd, lowers);
    cleanup_close int upper_fd = -EBADF, work_fd = -EBADF;
    struct overlay overlay = { .lower_fds = lowers,
                               .options = options,
                               .option_count = ARRAY_SIZE(options) - (volume->is_scratch ? 0 : 1),
                               .attributes = safe(volume->template) };

    if (count < 0)
        return count;
    upper_fd = openat(upper_root_fd, tree->name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    work_fd = openat(upper_root_fd, work_name(work, tree->name), O_PATH | O_DIRECTORY | O_CLOEXEC);
    r = upper_fd < 0 || work_fd < 0 ? -errno : 0;
    overlay.lower_count = (size_t)count;
    overlay.upper_fd = upper_fd;
    overlay.work_fd = work_fd;
    if (r == 0)
        r = mount_overlay_as(view->first_uid, &overlay);
    while (count > 0)
        (void)close(lowers[--count]);
    return r;
}

static int mount_failed(const struct volume *volume, size_t tree, int r, struct err *err)
{
    const char *target = volume->template->trees[tree].target;

    if (r == -ENOSPC || r == -EDQUOT)
        return err_refuse(err, r == -EDQUOT ? CAUSE_QUOTA_EXCEEDED : CAUSE_POOL_FULL,
                          "the storage of volume '%s' is full: %s", volume->id, strerror(-r));
    return err_sys(err, r, "mount '%s' of template '%s'", target, volume->template->name);
}

static void mounts_add(struct volume_mounts *mounts, const struct volume *volume, size_t tree,
                       int fd)
{
    mounts->targets[mounts->count] = volume->template->trees[tree].target;
    mounts->fds[mounts->count++] = fd;
}

/* Everything that a scratch volume holds may be lost with the machine, and need never be synced. */
static int mount_layered(struct volume *volume, int tree_fd, const struct view_of *view,
                         struct volume_mounts *mounts, struct err *err)
{
    cleanup_close int upper_root_fd = clone_mapped(tree_fd, view->userns_fd);

    if (upper_root_fd < 0)
        return err_sys(err, upper_root_fd, "map the owners of volume '%s'", volume->id);
    for (size_t i = 0; i < volume->template->tree_count; i++) {
        const struct template_tree *tree = &volume->template->trees[i];
        int fd = make_layer(tree_fd, tree->name);

        if (fd == 0)
            fd = mount_over(volume, tree, upper_root_fd, view);
        if (fd < 0)
            return mount_failed(volume, i, fd, err);
        mounts_add(mounts, volume, i, fd);
    }
    return 0;
}

/* The root as it is; with its owners already those of the range that all sandboxes then have, where
 * the storage cannot map them. */
static int mount_root(const struct volume *volume, int tree_fd, const struct view_of *view)
{
    cleanup_close int fd = mount_clone(tree_fd, "", false);
    int r = fd < 0 ? fd : mount_set_attributes(fd, safe(volume->template), false);

    /* The clone is as strict as the mount that the volume lies on. */
    if (r == 0 && volume->template->allows_setuid)
        r = mount_clear_attributes(fd, MOUNT_ATTR_NOSUID);
    if (r == 0 && volume->store->shared_uid == 0)
        r = mount_set_idmap(fd, view->userns_fd);
    return r < 0 ? r : TAKE_FD(fd);
}

static int mount_read_only(const struct volume *volume, size_t tree, const struct view_of *view)
{
    const struct template *template = volume->template;
    cleanup_close int fd = clone_mapped(template->trees[tree].fd, view->userns_fd);
    int r = fd < 0 ? fd : mount_set_attributes(fd, safe(template) | MOUNT_ATTR_RDONLY, false);

    return r < 0 ? r : TAKE_FD(fd);
}

static int mount_whole(struct volume *volume, int tree_fd, const struct view_of *view,
                       struct volume_mounts *mounts, struct err *err)
{
    for (size_t i = 0; i < volume->template->tree_count; i++) {
        int fd = i == 0 ? mount_root(volume, tree_fd, view) : mount_read_only(volume, i, view);

        if (fd < 0)
            return mount_failed(volume, i, fd, err);
        mounts_add(mounts, volume, i, fd);
    }
    return 0;
}

static void volume_relax(struct volume *volume, bool is_relaxed)
{
    if (!volume->is_scratch && volume->store->ops->relax)
        volume->store->ops->relax(volume, is_relaxed);
}

int volume_mount(struct volume *volume, int userns_fd, uid_t first_uid, struct volume_mounts *ret,
                 struct err *err)
{
    cleanup_with(volume_mounts_done) struct volume_mounts mounts = { .count = 0 };
    const struct view_of view = { .userns_fd = userns_fd, .first_uid = first_uid };
    cleanup_with(volume_tree_done) struct volume_tree tree = { .volume = volume, .fd = -EBADF };
    int r = volume_tree_open(&tree, NULL);

    if (r < 0)
        return err_sys(err, r, "open the live tree of volume '%s'", volume->id);
    volume_relax(volume, true);
    if (volume_is_whole(volume))
        r = mount_whole(volume, tree.fd, &view, &mounts, err);
    else
        r = mount_layered(volume, tree.fd, &view, &mounts, err);
    volume_relax(volume, false);
    if (r < 0)
        return r;
    mounts.allows_setuid = volume->template->allows_setuid;
    *ret = mounts;
    mounts.count = 0;
    return 0;
}

void volume_mounts_done(struct volume_mounts *mounts)
{
    while (mounts->count > 0)
        (void)close(mounts->fds[--mounts->count]);
}
