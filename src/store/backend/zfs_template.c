// SPDX-License-Identifier: Apache-2.0
/* Templates as datasets: a flat copy of the template's root, with its owners shifted into the
 * range that all volumes share, because FUSE has no id-mapped mounts. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "kernel/mount.h"
#include "store/backend/zfs_internal.h"
#include "store/import/copy.h"
#include "store/import/import.h"
#include "store/import/root.h"
#include "store/store_internal.h"

enum { HASH_DIGITS = 16, PROC_FD_BYTES = 32 };

static const uint64_t fnv_basis = 14695981039346656037U, fnv_prime = 1099511628211U;

static uint64_t hash_add(uint64_t hash, uint64_t value)
{
    for (unsigned shift = 0; shift < 64; shift += 8)
        hash = (hash ^ (value >> shift & 0xff)) * fnv_prime;
    return hash;
}

static int hash_dir(uint64_t *hash, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    *hash = hash_add(*hash, st.st_ino);
    *hash = hash_add(*hash, (uint64_t)st.st_ctim.tv_sec);
    *hash = hash_add(*hash, (uint64_t)st.st_ctim.tv_nsec);
    return 0;
}

/* NAME-HASH: the hash differs when the template was replaced by another of the same name. A
 * template is never written to after its creation, so the inodes and change times of its
 * directories identify it. */
static int dataset_name(const struct zfs *zfs, const struct template *template, char **ret)
{
    const struct template_tree *root = &template->trees[0];
    uint64_t hash = fnv_basis;
    int r = hash_dir(&hash, root->fd);

    for (size_t i = 0; r == 0 && i < root->layer_count; i++)
        r = hash_dir(&hash, root->layers[i]);
    if (template->lacks_points)
        hash = hash_add(hash, true);
    if (r == 0)
        *ret = xasprintf("%s/templates/%s-%016" PRIx64, zfs->dataset, template->name, hash);
    return r;
}

/* Opens the tree of the root: itself, or a read-only overlay of its layers and, if it lacks some,
 * of the mount points. */
static int merge_root(const struct zfs *zfs, const struct template *template)
{
    const struct template_tree *tree = &template->trees[0];
    char paths[TEMPLATE_LAYERS_MAX + 2][PROC_FD_BYTES];
    struct mount_option options[TEMPLATE_LAYERS_MAX + 2];
    int fds[TEMPLATE_LAYERS_MAX + 2];
    size_t count = tree->layer_count;

    memcpy(fds, tree->layers, count * sizeof(tree->layers[0]));
    fds[count++] = tree->fd;
    if (template->lacks_points)
        fds[count++] = zfs->points_fd;
    if (count == 1) {
        int fd = openat(tree->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
    }
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", fds[i]);
        options[i] = (struct mount_option){ .key = "lowerdir+", .value = paths[i] };
    }
    return mount_new("overlay", options, count, MOUNT_ATTR_RDONLY);
}

static int copy_root(const struct zfs *zfs, const struct template *template, const char *path,
                     struct err *err)
{
    cleanup_close int from_fd = merge_root(zfs, template);
    cleanup_close int to_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct import_budget budget = { .bytes_max = UINT64_MAX, .files_max = UINT64_MAX };
    cleanup_with(import_root_done) struct import_root root = IMPORT_ROOT_INIT(to_fd, &budget);
    cleanup_with(import_copy_done) struct import_copy copy = { .root = &root };
    int r;

    if (from_fd < 0)
        return err_sys(err, from_fd, "open the root of template '%s'", template->name);
    if (to_fd < 0)
        return err_sys(err, -errno, "open '%s'", path);
    root.owner_shift = ZFS_SHARED_UID;
    r = import_copy_tree(&copy, from_fd, ".", "", err);
    return r < 0 ? err_wrap(err, "copy template '%s'", template->name) : 0;
}

static int dataset_fill(struct zfs *zfs, const struct template *template, const char *dataset,
                        const char *snapshot, struct err *err)
{
    cleanup_free char *path = xasprintf("%s/.templates/%s", zfs->mounts, zfs_leaf(dataset));
    cleanup_free char *option = xasprintf("mountpoint=%s", path);
    struct err ignored;
    int r;

    /* Without @base it is left over from an interrupted copy. */
    (void)zfs_unmount(path);
    (void)ZFS_RETRY(&ignored, "destroy", dataset);
    r = ZFS(NULL, err, "create", "-o", "canmount=noauto", "-o", option, dataset);
    if (r == 0)
        r = zfs_mount(dataset, path, err);
    if (r == 0)
        r = copy_root(zfs, template, path, err);
    if (r == 0)
        r = ZFS(NULL, err, "snapshot", snapshot);
    (void)zfs_unmount(path);
    if (r < 0)
        (void)ZFS_RETRY(&ignored, "destroy", dataset);
    return r;
}

static bool dataset_exists(const char *name)
{
    struct err ignored;

    return ZFS(NULL, &ignored, "list", "-H", "-o", "name", name) == 0;
}

int zfs_template_ready(struct zfs *zfs, const struct template *template, char **ret_snapshot,
                       struct err *err)
{
    cleanup_free char *dataset = NULL, *snapshot = NULL;
    int r = dataset_name(zfs, template, &dataset);

    if (r < 0)
        return err_sys(err, r, "stat template '%s'", template->name);
    snapshot = xasprintf("%s@base", dataset);
    if (!dataset_exists(snapshot)) {
        lock_take(&zfs->fill_lock);
        if (!dataset_exists(snapshot))
            r = dataset_fill(zfs, template, dataset, snapshot, err);
        lock_release(&zfs->fill_lock);
    }
    if (r == 0)
        *ret_snapshot = TAKE_PTR(snapshot);
    return r;
}

/* Returns whether new volumes may use this dataset; true in doubt. */
static bool dataset_is_wanted(struct zfs *zfs, struct store *store, const char *dataset)
{
    cleanup_with(template_close_slot) struct template *template = NULL;
    cleanup_free char *current = NULL, *name = xstrdup(zfs_leaf(dataset));
    size_t len = strlen(name);
    struct err err = { 0 };

    if (len <= HASH_DIGITS + 1)
        return false;
    name[len - HASH_DIGITS - 1] = '\0';
    if (template_open(store, name, &template, &err) < 0)
        return err.kind != ERR_NOT_FOUND && err.kind != ERR_INVALID;
    (void)dataset_name(zfs, template, &current);
    return !current || strcmp(current, dataset) == 0;
}

void zfs_template_sweep(struct zfs *zfs, struct store *store)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    cleanup_free char *templates = xasprintf("%s/templates", zfs->dataset);
    char *cursor, *dataset;
    struct err ignored;

    if (ZFS(&output, &ignored, "list", "-H", "-r", "-t", "filesystem", "-o", "name", templates) < 0)
        return;
    cursor = output.data;
    while ((dataset = zfs_next_line(&cursor))) {
        cleanup_free char *snapshot = xasprintf("%s@base", dataset);
        cleanup_free char *path = xasprintf("%s/.templates/%s", zfs->mounts, zfs_leaf(dataset));

        if (strcmp(dataset, templates) == 0 ||
            (dataset_is_wanted(zfs, store, dataset) && dataset_exists(snapshot)))
            continue;
        /* zfs refuses if trees are cloned from it. */
        (void)zfs_unmount(path);
        if (ZFS(NULL, &ignored, "destroy", snapshot) == 0 || ignored.kind == ERR_NOT_FOUND)
            (void)ZFS_RETRY(&ignored, "destroy", dataset);
    }
}
