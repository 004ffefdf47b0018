// SPDX-License-Identifier: Apache-2.0
/* Volumes in directories of any filesystem: every tree is a directory, and a snapshot is a copy of
 * it that shares blocks if the filesystem can. It takes time per file and has no quotas. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/files/tree_copy.h"
#include "store/backend/backend.h"
#include "store/backend/layered.h"
#include "store/store_internal.h"
#include "store/volume/usage.h"

#define COPY "copy"
#define LINKS "links"

static int dir_make(int dir_fd, const char *name)
{
    int fd;

    if (mkdirat(dir_fd, name, 0700) < 0)
        return -errno;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* A new name is durable once its directory is synced. */
static int names_sync(const struct tree_target *target)
{
    if (fsync(target->dir_fd) < 0 || fsync(target->volume_fd) < 0 ||
        fsync(target->volume->store->volumes_fd) < 0)
        return -errno;
    return 0;
}

static int dir_tree_make(const struct tree_target *target)
{
    return mkdirat(target->dir_fd, target->name, 0700) < 0 ? -errno : 0;
}

/* Copies into a temporary directory, which is renamed after everything is synced. */
static int tree_copy_into(const struct tree_target *target, int from_fd, int temp_fd)
{
    cleanup_close int copy_fd = dir_make(temp_fd, COPY);
    cleanup_close int links_fd = dir_make(temp_fd, LINKS);
    struct tree_copy copy = { .links_fd = links_fd };
    int r;

    if (copy_fd < 0 || links_fd < 0)
        return copy_fd < 0 ? copy_fd : links_fd;
    r = tree_copy(&copy, from_fd, copy_fd);
    if (r == 0 && syncfs(copy_fd) < 0)
        r = -errno;
    if (r == 0 && renameat2(temp_fd, COPY, target->dir_fd, target->name, RENAME_NOREPLACE) < 0)
        r = -errno;
    return r < 0 ? r : names_sync(target);
}

static int dir_tree_copy(const struct tree_target *target, int from_fd)
{
    int volumes_fd = target->volume->store->volumes_fd, r;
    char temp[STORE_TEMP_NAME_MAX];
    cleanup_close int temp_fd = -EBADF;

    store_temp_name(COPY, temp);
    temp_fd = dir_make(volumes_fd, temp);
    if (temp_fd < 0)
        return temp_fd;
    r = tree_copy_into(target, from_fd, temp_fd);
    (void)tree_remove_at(volumes_fd, temp);
    return r;
}

/* Renamed first, so that a partly removed tree is never visible. */
static int dir_tree_remove(struct store *store, int dir_fd, const char *name)
{
    char gone[STORE_TEMP_NAME_MAX];

    store_temp_name("gone", gone);
    if (renameat(dir_fd, name, store->volumes_fd, gone) == 0)
        return tree_remove_at(store->volumes_fd, gone);
    return errno == ENOENT ? -ENOENT : tree_remove_at(dir_fd, name);
}

static const struct tree_ops trees = {
    .make = dir_tree_make,
    .copy = dir_tree_copy,
    .remove = dir_tree_remove,
};

static int dir_open(struct store *store, const struct store_options *options, struct err *err)
{
    int r = store_subdir(store->dir_fd, "volumes", &store->volumes_fd, err);

    (void)options;
    (void)snprintf(store->storage, sizeof(store->storage), "directory, as configured");
    return r < 0 ? r : layered_sweep(store, &trees, err);
}

static void dir_close(struct store *store)
{
    (void)store;
}

static int dir_space(struct store *store, struct store_space *ret, struct err *err)
{
    return store_space_of(store->volumes_fd, ret, err);
}

static int dir_create(struct volume *volume, struct err *err)
{
    return layered_create(volume, &trees, err);
}

static int dir_branch(struct volume *volume, uint32_t generation, struct volume *from,
                      const char *snapshot, struct err *err)
{
    return layered_branch(volume, generation, from, snapshot, &trees, err);
}

static int dir_snapshot(struct volume *volume, const char *name, struct err *err)
{
    return layered_snapshot(volume, name, &trees, err);
}

static int dir_drop(struct volume *volume, const char *snapshot, uint32_t generation)
{
    return layered_drop(volume, snapshot, generation, &trees);
}

/* Blocks that copies share count for each of them, because no system call reports sharing. */
static int dir_usage(struct volume *volume, uint64_t *ret_bytes)
{
    cleanup_close int fd = layered_volume_fd(volume);
    cleanup_with(usage_done) struct usage usage = { .bytes = 0 };
    int r = fd < 0 ? fd : usage_add(&usage, fd);

    *ret_bytes = usage.bytes;
    return r;
}

static int dir_destroy(struct volume *volume)
{
    return layered_destroy(volume, &trees);
}

const struct store_ops store_dir = {
    .name = "dir",
    .open = dir_open,
    .close = dir_close,
    .space = dir_space,
    .create = dir_create,
    .branch = dir_branch,
    .snapshot = dir_snapshot,
    .drop = dir_drop,
    .list = layered_list,
    .each = layered_each,
    .open_tree = layered_open_tree,
    .release = layered_release,
    .usage = dir_usage,
    .destroy = dir_destroy,
};
