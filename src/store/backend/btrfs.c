// SPDX-License-Identifier: Apache-2.0
/* Volumes on btrfs: every tree is a subvolume.
 *
 * If quotas are enabled, each volume has a quota group (qgroup), whose id and limit are extended
 * attributes of its directory, and every tree is created as a member of it. So the limit covers
 * the volume with all of its snapshots, also after rollbacks, and the usage of the group is their
 * total. A group cannot be removed while a fork shares extents that the volume wrote: until then
 * its directory is kept as volumes/.gone-*, and removals of other volumes retry it. */
#include "kernel/btrfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "kernel/path.h"
#include "store/backend/backend.h"
#include "store/backend/btrfs_image.h"
#include "store/backend/layered.h"
#include "store/disk.h"
#include "store/store_internal.h"
#include "store/volume/usage.h"

#define GROUP "trusted.holt.group"
#define QUOTA "trusted.holt.quota"

enum {
    NUMBER_BYTES = 24,
    SLACK_BYTES = 4 << 20,
    DROPS_PER_PRUNE = 16, /* a search for stale groups takes a call for every tree of the volume */
    RETRIES_PER_DESTROY = 2,
};

/* The directory of a removed volume whose quota group still exists. */
struct pending_dir {
    struct pending_dir *next;
    char name[];
};

struct btrfs_backend {
    struct lock lock;
    bool has_groups; /* quotas are enabled */
    struct pending_dir *first, **last;
};

/* Reads a number from an extended attribute; 0 if there is none. */
static int number_read(int volume_fd, const char *attribute, uint64_t *ret_number)
{
    char text[NUMBER_BYTES] = "";
    ssize_t len = fgetxattr(volume_fd, attribute, text, sizeof(text) - 1);

    if (len < 0 && errno == ENODATA) {
        *ret_number = 0;
        return 0;
    }
    return len < 0 ? -errno : parse_u64(text, ret_number);
}

static int number_write(int volume_fd, const char *attribute, uint64_t number)
{
    char text[NUMBER_BYTES];
    int len = snprintf(text, sizeof(text), "%" PRIu64, number);

    return fsetxattr(volume_fd, attribute, text, (size_t)len, 0) < 0 ? -errno : 0;
}

static int group_read(int volume_fd, uint64_t *ret_group)
{
    return number_read(volume_fd, GROUP, ret_group);
}

/* Creates a group with an unused id. The id is recorded before the group exists, so that none can
 * be lost. */
static int group_new(int volume_fd, uint64_t *ret_group)
{
    uint64_t group;
    int r;

    do {
        group = btrfs_group(random_u64());
        r = number_write(volume_fd, GROUP, group);
        if (r == 0)
            r = btrfs_group_make(volume_fd, group);
    } while (r == -EEXIST);
    *ret_group = group;
    return r;
}

/* On a filesystem that is not ours alone, quotas are enabled when a volume first needs one. */
static int groups_enable(struct store *store, bool is_wanted, bool *ret_enabled)
{
    struct btrfs_backend *backend = store->backend;
    int r = 0;

    lock_take(&backend->lock);
    if (!backend->has_groups && is_wanted) {
        r = btrfs_quota_enable(store->volumes_fd);
        backend->has_groups = r == 0;
    }
    *ret_enabled = backend->has_groups;
    lock_release(&backend->lock);
    return r;
}

static int btrfs_prepare(struct volume *volume, int volume_fd, struct err *err)
{
    bool has_groups;
    uint64_t group = 0;
    int r = groups_enable(volume->store, volume->quota_bytes > 0, &has_groups);

    if (r < 0)
        return err_sys(err, r, "enable quotas for volume '%s'", volume->id);
    if (!has_groups)
        return 0;
    r = group_new(volume_fd, &group);
    if (r == 0 && volume->quota_bytes > 0)
        r = number_write(volume_fd, QUOTA, volume->quota_bytes);
    if (r == 0 && volume->quota_bytes > 0)
        r = btrfs_group_limit(volume_fd, group, volume->quota_bytes);
    return r < 0 ? err_sys(err, r, "make the quota group of volume '%s'", volume->id) : 0;
}

static int subvolume_make(const struct tree_target *target)
{
    uint64_t group = 0;
    int r = group_read(target->volume_fd, &group);

    return r < 0 ? r : btrfs_subvolume_make(target->dir_fd, target->name, group);
}

static int subvolume_copy(const struct tree_target *target, int from_fd)
{
    struct btrfs_snapshot snapshot = {
        .from_fd = from_fd,
        .dir_fd = target->dir_fd,
        .name = target->name,
        .is_read_only = target->is_read_only,
    };
    int r = group_read(target->volume_fd, &snapshot.group);

    return r < 0 ? r : btrfs_snapshot_make(&snapshot);
}

static int subvolume_remove(struct store *store, int dir_fd, const char *name)
{
    int r = btrfs_subvolume_remove(dir_fd, name);

    (void)store;
    /* Not a subvolume: the directory backend created it. */
    return r == -EINVAL || r == -ENOTDIR ? tree_remove_at(dir_fd, name) : r;
}

/* Removes the volume's group. Returns whether it is gone, or there was none. */
static bool group_release(int volume_fd)
{
    uint64_t group = 0;
    int r = group_read(volume_fd, &group);

    if (r < 0 || group == 0)
        return true;
    (void)btrfs_group_prune(volume_fd, group);
    r = btrfs_group_remove(volume_fd, group);
    return r != -EBUSY;
}

static void pending_add(struct btrfs_backend *backend, struct pending_dir *pending)
{
    lock_take(&backend->lock);
    pending->next = NULL;
    *backend->last = pending;
    backend->last = &pending->next;
    lock_release(&backend->lock);
}

static struct pending_dir *pending_take(struct btrfs_backend *backend)
{
    struct pending_dir *pending;

    lock_take(&backend->lock);
    pending = backend->first;
    if (pending)
        backend->first = pending->next;
    if (!backend->first)
        backend->last = &backend->first;
    lock_release(&backend->lock);
    return pending;
}

static bool volume_release(struct store *store, int volume_fd, const char *name)
{
    struct pending_dir *pending;

    if (group_release(volume_fd))
        return true;
    pending = xcalloc(1, sizeof(*pending) + strlen(name) + 1);
    memcpy(pending->name, name, strlen(name) + 1);
    pending_add(store->backend, pending);
    return false;
}

/* Retries the removal of a few groups. */
static void pending_retry(struct store *store)
{
    for (int i = 0; i < RETRIES_PER_DESTROY; i++) {
        cleanup_free struct pending_dir *pending = pending_take(store->backend);
        cleanup_close int fd = -EBADF;

        if (!pending)
            return;
        fd = open_no_links(store->volumes_fd, pending->name, O_RDONLY | O_DIRECTORY, 0);
        if (fd >= 0 && !group_release(fd))
            pending_add(store->backend, TAKE_PTR(pending));
        else
            (void)tree_remove_at(store->volumes_fd, pending->name);
    }
}

static const struct tree_ops trees = {
    .prepare = btrfs_prepare,
    .make = subvolume_make,
    .copy = subvolume_copy,
    .remove = subvolume_remove,
    .release_volume = volume_release,
};

/* Our own image has quotas from the start. */
static int quota_detect(struct store *store, bool is_own, struct err *err)
{
    struct btrfs_backend *backend = store->backend;
    enum btrfs_quota state = BTRFS_QUOTA_OFF;
    int r = btrfs_quota_state(store->volumes_fd, &state);

    if (r == 0 && is_own && state == BTRFS_QUOTA_OFF && btrfs_can_simple_quota()) {
        r = btrfs_quota_enable(store->volumes_fd);
        state = BTRFS_QUOTA_SIMPLE;
    }
    if (r < 0)
        return err_sys(err, r, "enable quotas");
    backend->has_groups = state == BTRFS_QUOTA_SIMPLE;
    store->has_quota =
        backend->has_groups || (state == BTRFS_QUOTA_OFF && btrfs_can_simple_quota());
    store->is_quota_on = backend->has_groups;
    return 0;
}

static void btrfs_close(struct store *store)
{
    struct btrfs_backend *backend = store->backend;

    for (struct pending_dir *pending; (pending = pending_take(backend));)
        free(pending);
    lock_destroy(&backend->lock);
    free(backend);
    store->backend = NULL;
}

static int btrfs_open(struct store *store, const struct store_options *options, struct err *err)
{
    bool is_own = !is_btrfs(store->dir_fd);
    struct btrfs_backend *backend;
    int r = is_own ? store_image(store, options, err) : 0;

    if (r == 0)
        r = store_subdir(is_own ? store->image_fd : store->dir_fd, "volumes", &store->volumes_fd,
                         err);
    if (r < 0)
        return r;
    backend = xcalloc(1, sizeof(*backend));
    lock_init(&backend->lock, LOCK_BTRFS);
    backend->last = &backend->first;
    store->backend = backend;
    (void)snprintf(store->storage, sizeof(store->storage), "%s",
                   is_own ? "btrfs image" : "directory on btrfs");
    r = quota_detect(store, is_own, err);
    if (r == 0)
        r = layered_sweep(store, &trees, err);
    if (r < 0)
        btrfs_close(store);
    return r;
}

static int btrfs_space(struct store *store, struct store_space *ret, struct err *err)
{
    struct disk_space below;
    int r = store_space_of(store->volumes_fd, ret, err);

    if (r < 0 || !store->image)
        return r;
    r = store_disk(store, &below, err);
    if (r < 0)
        return r;
    if (!image_is_sparse(store->image))
        ret->available += below.spare;
    else if (below.available < ret->available)
        ret->available = below.available;
    return 0;
}

static int btrfs_create(struct volume *volume, struct err *err)
{
    return layered_create(volume, &trees, err);
}

static int btrfs_branch(struct volume *volume, uint32_t generation, struct volume *from,
                        const char *snapshot, struct err *err)
{
    return layered_branch(volume, generation, from, snapshot, &trees, err);
}

static int btrfs_snapshot(struct volume *volume, const char *name, struct err *err)
{
    return layered_snapshot(volume, name, &trees, err);
}

static int btrfs_drop(struct volume *volume, const char *snapshot, uint32_t generation)
{
    int r = layered_drop(volume, snapshot, generation, &trees);
    cleanup_close int fd = -EBADF;
    uint64_t group = 0;

    if (r == 0 && (atomic_fetch_add(&volume->drops, 1) + 1) % DROPS_PER_PRUNE == 0) {
        fd = layered_volume_fd(volume);
        if (fd >= 0 && group_read(fd, &group) == 0 && group != 0)
            (void)btrfs_group_prune(fd, group);
    }
    return r;
}

static int btrfs_destroy(struct volume *volume)
{
    struct store *store = volume->store;
    int r = layered_destroy(volume, &trees);

    pending_retry(store);
    return r;
}

struct walk_trees {
    struct volume *volume;
    struct usage usage;
    int r;
};

static int tree_add(struct walk_trees *walk, const char *snapshot)
{
    cleanup_close int fd = layered_open_tree(walk->volume, snapshot, NULL);

    return fd < 0 ? fd : usage_add(&walk->usage, fd);
}

static void add_snapshot(void *context, const char *snapshot, uint32_t generation)
{
    struct walk_trees *walk = context;

    (void)generation;
    if (walk->r == 0 && snapshot)
        walk->r = tree_add(walk, snapshot);
}

/* Without quotas, usage is measured by a walk. Blocks that a file in a snapshot shares with its
 * changed version count twice, because finding that out is expensive. */
static int usage_walk(struct volume *volume, uint64_t *ret_bytes)
{
    struct walk_trees walk = { .volume = volume, .usage = { .is_shared = true } };
    int r = tree_add(&walk, NULL);

    if (r == 0)
        r = layered_list(volume, add_snapshot, &walk);
    if (r == 0)
        r = walk.r;
    *ret_bytes = walk.usage.bytes;
    usage_done(&walk.usage);
    return r;
}

static int btrfs_usage_settled(struct volume *volume, uint64_t *ret_bytes)
{
    cleanup_close int fd = layered_volume_fd(volume);
    uint64_t group = 0;
    int r = fd < 0 ? fd : group_read(fd, &group);

    *ret_bytes = 0;
    return r < 0 || group == 0 ? r : btrfs_group_usage(fd, group, ret_bytes);
}

static int btrfs_usage(struct volume *volume, uint64_t *ret_bytes)
{
    cleanup_close int fd = layered_volume_fd(volume);
    uint64_t group = 0;
    int r = fd < 0 ? fd : group_read(fd, &group);

    if (r < 0)
        return r;
    if (group == 0)
        return usage_walk(volume, ret_bytes);
    /* A commit would give the exact number, but everybody on this filesystem waits for one. */
    r = btrfs_group_charge(fd, group, ret_bytes);
    return r < 0 ? btrfs_group_usage(fd, group, ret_bytes) : 0;
}

/* The attribute comes first: after a crash in between, the next mount sets the limit from it. */
static int btrfs_limit(struct volume *volume, uint64_t quota_bytes, struct err *err)
{
    cleanup_close int fd = layered_volume_fd(volume);
    uint64_t group = 0;
    int r = fd < 0 ? fd : group_read(fd, &group);

    if (r == 0 && group == 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "volume '%s' was created while quotas were off; fork the sandbox to get one",
                       volume->id);
    if (r == 0)
        r = number_write(fd, QUOTA, quota_bytes);
    if (r == 0)
        r = btrfs_group_limit(fd, group, quota_bytes ? quota_bytes : BTRFS_NO_LIMIT);
    return r < 0 ? err_sys(err, r, "set the quota of volume '%s'", volume->id) : 0;
}

/* A crash in between leaves the limit raised until the next mount. */
static void btrfs_relax(struct volume *volume, bool is_relaxed)
{
    cleanup_close int fd = layered_volume_fd(volume);
    uint64_t group = 0, quota = 0;

    if (fd < 0 || group_read(fd, &group) < 0 || number_read(fd, QUOTA, &quota) < 0)
        return;
    if (group != 0 && quota != 0)
        (void)btrfs_group_limit(fd, group, quota + (is_relaxed ? SLACK_BYTES : 0));
}

const struct store_ops store_btrfs = {
    .name = "btrfs",
    .is_atomic = true,
    .open = btrfs_open,
    .close = btrfs_close,
    .space = btrfs_space,
    .create = btrfs_create,
    .branch = btrfs_branch,
    .snapshot = btrfs_snapshot,
    .drop = btrfs_drop,
    .list = layered_list,
    .each = layered_each,
    .open_tree = layered_open_tree,
    .release = layered_release,
    .usage = btrfs_usage,
    .usage_settled = btrfs_usage_settled,
    .limit = btrfs_limit,
    .relax = btrfs_relax,
    .destroy = btrfs_destroy,
};
