// SPDX-License-Identifier: Apache-2.0
/* Assembles the live tree of a volume as mounts for a sandbox. */
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "kernel/caps.h"
#include "store/backend/backend.h"
#include "store/store_internal.h"
#include "store/volume/volume.h"
#include "store/volume/volume_internal.h"

/* The upper directory of a mask, which nothing can be written to. */
#define SEALED "sealed"

enum { LAYER_NAME_BYTES = 64 };

/* A setuid file of the sandbox is owned by a uid of the sandbox's range, so executing it changes
 * only to another user of the sandbox; these mounts are visible nowhere else. */
static uint64_t mount_flags(const struct template *template)
{
    return MOUNT_ATTR_NODEV | (template->allows_setuid ? 0 : MOUNT_ATTR_NOSUID);
}

/* An upper directory must contain only whiteouts and opaque directories and no reference to inodes
 * of the lower layers: a copy of it has to be equivalent, and the template may be recreated. Some
 * kernels are built with other defaults. */
static const struct mount_option options[] = {
    { "index", "off" },
    { "redirect_dir", "nofollow" },
    { "metacopy", "off" },
    { "volatile", NULL }, /* must be last: only for scratch volumes */
};

/* The user namespace that a sandbox's files are mapped to. */
struct userns_view {
    int userns_fd; /* -1: owners are not mapped */
    uid_t first_uid;
    int mask_fd; /* what the sandbox sees of its codebase; -1: all */
};

static const char *work_name(char *into, const char *tree)
{
    (void)snprintf(into, LAYER_NAME_BYTES, "%s.work", tree);
    return into;
}

/* 0755 whatever the umask: the mode of the upper becomes that of the sandbox's directory. */
static int make_layer_dir(int dir_fd, const char *name)
{
    if (mkdirat(dir_fd, name, 0755) < 0)
        return -errno;
    return fchmodat(dir_fd, name, 0755, 0) < 0 ? -errno : 0;
}

/* Creates the upper and an empty work directory of one tree. An earlier mount may have left both
 * and may have been interrupted; only the work directory can hold incomplete state. The host
 * template may have gained a tree since the volume was created. */
int volume_layer_make(int dir_fd, const char *tree)
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

/* Clones a directory as an id-mapped, detached mount. */
static int clone_mapped(int dir_fd, int userns_fd)
{
    cleanup_close int mount_fd = mount_clone(dir_fd, "", false);
    int r = mount_fd < 0 || userns_fd < 0 ? mount_fd : mount_set_idmap(mount_fd, userns_fd);

    return r < 0 ? r : TAKE_FD(mount_fd);
}

/* overlayfs writes with the credentials of the process that mounted it. They must be representable
 * in the id-mapped layers, otherwise it fails with EOVERFLOW and becomes read-only. So the fsuid
 * is the sandbox's root during the mount, with the capabilities that changing it clears. */
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

/* Returns the read-only layers of a tree, topmost first. */
static size_t list_lowers(const struct volume *volume, const struct template_tree *tree, int fds[])
{
    size_t count = tree->layer_count;

    memcpy(fds, tree->layers, count * sizeof(tree->layers[0]));
    fds[count++] = tree->fd;
    if (tree == &volume->template->trees[0] && volume->template->lacks_points)
        fds[count++] = volume->store->points_fd;
    return count;
}

/* Clones layers, id-mapped, in place. Returns their number or -errno. */
static int clone_lowers(int fds[], size_t layer_count, int userns_fd)
{
    size_t count = 0;

    for (size_t i = 0; i < layer_count; i++) {
        int fd = clone_mapped(fds[i], userns_fd);

        if (fd < 0) {
            while (count > 0)
                (void)close(fds[--count]);
            return fd;
        }
        fds[count++] = fd;
    }
    return (int)count;
}

/* overlayfs mounts read-only, without an error, if it cannot make a directory in its work
 * directory: usually the storage is full. Takes the mount, and returns it if it can be written. */
static int overlay_check(int mount_fd, int upper_fd)
{
    cleanup_close int fd = mount_fd;
    struct statvfs overlay, below;

    if (fstatvfs(fd, &overlay) < 0 || fstatvfs(upper_fd, &below) < 0)
        return -errno;
    if (!(overlay.f_flag & ST_RDONLY))
        return TAKE_FD(fd);
    return below.f_flag & ST_RDONLY ? -EROFS : -ENOSPC;
}

static int mount_tree(const struct volume *volume, const struct template_tree *tree,
                      int upper_root_fd, const struct userns_view *view)
{
    char work[LAYER_NAME_BYTES];
    int lowers[TEMPLATE_LAYERS_MAX + 2], r;
    int count = clone_lowers(lowers, list_lowers(volume, tree, lowers), view->userns_fd);
    cleanup_close int upper_fd = -EBADF, work_fd = -EBADF;
    struct overlay overlay = { .lower_fds = lowers,
                               .options = options,
                               .option_count = ARRAY_SIZE(options) - (volume->is_scratch ? 0 : 1),
                               .attributes = mount_flags(volume->template) };

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
    if (r >= 0)
        r = overlay_check(r, upper_fd);
    while (count > 0)
        (void)close(lowers[--count]);
    return r;
}

static int mount_error(const struct volume *volume, const char *target, int r, struct err *err)
{
    if (r == -ENOSPC || r == -EDQUOT)
        return err_refuse(err, r == -EDQUOT ? CAUSE_QUOTA_EXCEEDED : CAUSE_POOL_FULL,
                          "the storage of volume '%s' is full: %s", volume->id,
                          store_shortage(volume->store, -r));
    return err_sys(err, r, "mount '%s' of template '%s'", target, volume->template->name);
}

static void mounts_add(struct volume_mounts *mounts, const char *target, int fd)
{
    mounts->targets[mounts->count] = target;
    mounts->fds[mounts->count++] = fd;
}

/* Makes the upper directory of a mask: an overlay has the attributes of its top from there. */
static int sealed_make(int dir_fd, const struct stat *layer)
{
    const struct timespec times[] = { layer->st_atim, layer->st_mtim };
    int r = volume_layer_make(dir_fd, SEALED);

    if (r < 0)
        return r;
    if (fchownat(dir_fd, SEALED, layer->st_uid, layer->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
        fchmodat(dir_fd, SEALED, layer->st_mode & 07777, 0) < 0 ||
        utimensat(dir_fd, SEALED, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

/* Owners are not mapped: those on disk are users of the host, whom nobody in the sandbox can be.
 * The upper directory is on a file system of its own, because the layers are in different
 * subvolumes of btrfs, which give directories the same inode numbers: with two file systems,
 * overlayfs numbers directories by itself. */
static int mount_sealed(int dir_fd, const int lowers[2])
{
    static const struct mount_option sealed_options[] = {
        { "index", "off" }, { "redirect_dir", "nofollow" }, { "metacopy", "off" }, { "xino", "off" }
    };
    cleanup_close int mask = mount_clone(lowers[0], "", false);
    cleanup_close int version = mask < 0 ? mask : mount_clone(lowers[1], "", false);
    cleanup_close int upper_fd = openat(dir_fd, SEALED, O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int work_fd = openat(dir_fd, SEALED ".work", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct overlay overlay = { .lower_fds = (const int[]){ mask, version },
                                     .lower_count = 2,
                                     .upper_fd = upper_fd,
                                     .work_fd = work_fd,
                                     .options = sealed_options,
                                     .option_count = ARRAY_SIZE(sealed_options),
                                     .attributes = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID };
    int r;

    if (version < 0)
        return version;
    if (upper_fd < 0 || work_fd < 0)
        return -errno;
    r = mount_overlay(&overlay);
    return r < 0 ? r : overlay_check(r, upper_fd);
}

/* The layer, whose owner is one of the sandbox, is not part of the mount. */
static int mount_masked(int tree_fd, const char *layer, int version_fd,
                        const struct userns_view *view)
{
    static const struct mount_option memory[] = { { "size", "64k" }, { "mode", "0700" } };
    cleanup_close int dir_fd = mount_new("tmpfs", memory, ARRAY_SIZE(memory), 0);
    struct stat st;
    int r = dir_fd;

    if (view->first_uid < VOLUME_OWNERS_MAX)
        return -EINVAL;
    if (r >= 0 && fstatat(tree_fd, layer, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    if (r >= 0)
        r = sealed_make(dir_fd, &st);
    return r < 0 ? r : mount_sealed(dir_fd, (const int[]){ view->mask_fd, version_fd });
}

/* Mounts the version that the tree's layer belongs to, with the layer above it. */
static int mount_codebase(const struct volume *volume, int tree_fd, int upper_root_fd,
                          const struct userns_view *view)
{
    char name[VOLUME_CODEBASE_BYTES];
    uint32_t version = 0;
    int r = volume_codebase_layer(volume, tree_fd, name, &version);
    cleanup_close int version_fd =
        r < 0 ? r : codebase_open_version(volume->store, volume->codebase.id, version);
    const struct template_tree tree = { .name = name, .fd = version_fd };

    if (version_fd < 0)
        return version_fd;
    r = volume_layer_make(tree_fd, name);
    if (r == 0 && view->mask_fd >= 0)
        return mount_masked(tree_fd, name, version_fd, view);
    return r < 0 ? r : mount_tree(volume, &tree, upper_root_fd, view);
}

/* Data of a scratch volume may be lost with the machine, so it is never synced. */
static int mount_layered(struct volume *volume, int tree_fd, const struct userns_view *view,
                         struct volume_mounts *mounts, struct err *err)
{
    cleanup_close int upper_root_fd = clone_mapped(tree_fd, view->userns_fd);

    if (upper_root_fd < 0)
        return err_sys(err, upper_root_fd, "map the owners of volume '%s'", volume->id);
    for (size_t i = 0; i < volume->template->tree_count; i++) {
        const struct template_tree *tree = &volume->template->trees[i];
        int fd = volume_layer_make(tree_fd, tree->name);

        if (fd == 0)
            fd = mount_tree(volume, tree, upper_root_fd, view);
        if (fd < 0)
            return mount_error(volume, tree->target, fd, err);
        mounts_add(mounts, tree->target, fd);
    }
    if (volume_has_codebase(volume)) {
        int fd = mount_codebase(volume, tree_fd, upper_root_fd, view);

        if (fd < 0)
            return mount_error(volume, volume->codebase.path, fd, err);
        mounts_add(mounts, volume->codebase.path, fd);
        mounts->has_codebase = true;
    }
    return 0;
}

/* Mounts the root itself. If the storage cannot map owners, they are already those of the shared
 * range. */
static int mount_root(const struct volume *volume, int tree_fd, const struct userns_view *view)
{
    cleanup_close int fd = mount_clone(tree_fd, "", false);
    int r = fd < 0 ? fd : mount_set_attributes(fd, mount_flags(volume->template), false);

    /* The clone inherits the flags of the mount that contains the volume. */
    if (r == 0 && volume->template->allows_setuid)
        r = mount_clear_attributes(fd, MOUNT_ATTR_NOSUID);
    if (r == 0 && volume->store->shared_uid == 0 && view->userns_fd >= 0)
        r = mount_set_idmap(fd, view->userns_fd);
    return r < 0 ? r : TAKE_FD(fd);
}

static int mount_read_only(const struct volume *volume, size_t tree, const struct userns_view *view)
{
    const struct template *template = volume->template;
    cleanup_close int fd = clone_mapped(template->trees[tree].fd, view->userns_fd);
    int r =
        fd < 0 ? fd : mount_set_attributes(fd, mount_flags(template) | MOUNT_ATTR_RDONLY, false);

    return r < 0 ? r : TAKE_FD(fd);
}

static int mount_whole(struct volume *volume, int tree_fd, const struct userns_view *view,
                       struct volume_mounts *mounts, struct err *err)
{
    for (size_t i = 0; i < volume->template->tree_count; i++) {
        int fd = i == 0 ? mount_root(volume, tree_fd, view) : mount_read_only(volume, i, view);

        if (fd < 0)
            return mount_error(volume, volume->template->trees[i].target, fd, err);
        mounts_add(mounts, volume->template->trees[i].target, fd);
    }
    return 0;
}

static void volume_relax(struct volume *volume, bool is_relaxed)
{
    if (!volume->is_scratch && volume->store->ops->relax)
        volume->store->ops->relax(volume, is_relaxed);
}

int volume_mount_masked(struct volume *volume, int userns_fd, uid_t first_uid, int mask_fd,
                        struct volume_mounts *ret, struct err *err)
{
    cleanup_with(volume_mounts_done) struct volume_mounts mounts = { .count = 0 };
    const struct userns_view view = { userns_fd, first_uid, mask_fd };
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

int volume_mount(struct volume *volume, int userns_fd, uid_t first_uid, struct volume_mounts *ret,
                 struct err *err)
{
    return volume_mount_masked(volume, userns_fd, first_uid, -1, ret, err);
}

const char *volume_target(const struct volume *volume, size_t index)
{
    const struct template *template = volume->template;

    if (index < template->tree_count)
        return template->trees[index].target;
    return index == template->tree_count && volume_has_codebase(volume) ? volume->codebase.path
                                                                        : NULL;
}

bool volume_allows_setuid(const struct volume *volume)
{
    return volume->template->allows_setuid;
}

void volume_mounts_done(struct volume_mounts *mounts)
{
    while (mounts->count > 0)
        (void)close(mounts->fds[--mounts->count]);
}
