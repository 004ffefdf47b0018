// SPDX-License-Identifier: Apache-2.0
/* Volumes as clones of zfs datasets; zfs_internal.h describes the layout. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/random.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "store/backend/backend.h"
#include "store/backend/zfs_internal.h"
#include "store/store_internal.h"

/* The state directory that a dataset belongs to. */
#define STATE_PROPERTY "holt:state"

enum { ID_MAX = 64, NAME_BYTES_MAX = 255, FIND_TRIES = 3 };

struct zfs *zfs_of(const struct volume *volume)
{
    return volume->store->backend;
}

char *zfs_parent(const struct volume *volume)
{
    return xasprintf("%s/volumes/%s", zfs_of(volume)->dataset, volume->id);
}

char *zfs_live(const struct volume *volume, uint32_t generation)
{
    return xasprintf("%s/volumes/%s/live-%" PRIu32, zfs_of(volume)->dataset, volume->id,
                     generation);
}

/* Returns the bytes left for a snapshot's name next to the longest tree name and NAME:1000. */
static size_t snapshot_name_max(const struct volume *volume)
{
    cleanup_free char *parent = zfs_parent(volume);

    return NAME_BYTES_MAX - strlen(parent) - strlen("/_old-0123456789abcdef@:1000");
}

/* Names become arguments of a command, so they are checked here again. */
static int check_names(const struct volume *volume, const char *snapshot)
{
    if (!zfs_is_safe(volume->id) || strlen(volume->id) > ID_MAX)
        return -EINVAL;
    if (snapshot && (!zfs_is_safe(snapshot) || strlen(snapshot) > snapshot_name_max(volume)))
        return -EINVAL;
    return 0;
}

static int name_error(const struct volume *volume, const char *snapshot, struct err *err)
{
    if (check_names(volume, NULL) < 0)
        return err_set(err, ERR_INVALID, "'%.64s' is not a volume name", volume->id);
    return err_set(err, ERR_INVALID,
                   "'%.64s' is not a snapshot name (letters, digits, '.', '_', '-'; here at "
                   "most %zu of them)",
                   snapshot, snapshot_name_max(volume));
}

/* --- the store ------------------------------------------------------------------------------ */

static int check_dataset(const char *dataset, struct err *err)
{
    cleanup_free char *copy = xstrdup(dataset);
    char *cursor = copy, *part;
    bool is_good = strlen(dataset) <= ZFS_DATASET_MAX && strchr(dataset, '/');

    while (is_good && (part = strsep(&cursor, "/")))
        is_good = zfs_is_safe(part);
    if (is_good)
        return 0;
    return err_set(err, ERR_INVALID,
                   "storage 'zfs:%.120s' is not 'zfs:POOL/DATASET' (at most %d bytes)", dataset,
                   ZFS_DATASET_MAX);
}

/* Reads the state as zpool reports it: ONLINE, DEGRADED, FAULTED, ... */
static int pool_state(const char *pool, char ret[static STORE_STATE_SIZE], struct err *err)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    char *cursor, *state;
    int r = zfs_run((const char *const[]){ "zpool", "list", "-H", "-o", "health", pool, NULL },
                    &output, err);

    if (r == -ENOENT)
        return err_set(err, ERR_NOT_FOUND, "no zfs pool '%s' (zpool create, or zpool import)",
                       pool);
    if (r < 0)
        return r;
    cursor = output.data;
    state = zfs_next_line(&cursor);
    (void)snprintf(ret, STORE_STATE_SIZE, "%s", state ? state : "UNKNOWN");
    return 0;
}

static bool is_usable_state(const char *state)
{
    return strcmp(state, "ONLINE") == 0 || strcmp(state, "DEGRADED") == 0;
}

static int check_pool(const char *dataset, struct err *err)
{
    cleanup_free char *pool = xstrdup(dataset);
    char state[STORE_STATE_SIZE];
    int r;

    *strchrnul(pool, '/') = '\0';
    r = pool_state(pool, state, err);
    if (r < 0 || is_usable_state(state))
        return r;
    return err_set(err, ERR_UNSUPPORTED, "zfs pool '%s' is %s (see 'zpool status')", pool, state);
}

static int zfs_state(struct store *store, char ret[static STORE_STATE_SIZE], struct err *err)
{
    const struct zfs *zfs = store->backend;
    cleanup_free char *pool = xstrdup(zfs->dataset);

    *strchrnul(pool, '/') = '\0';
    return pool_state(pool, ret, err);
}

static int make_dataset(const char *dataset, struct err *err)
{
    int r = ZFS(NULL, err, "create", "-o", "canmount=off", "-o", "mountpoint=none", dataset);

    return r == -EEXIST ? 0 : r;
}

/* Two daemons on one dataset would remove each other's volumes. */
static int claim_dataset(const char *dataset, const char *state_dir, struct err *err)
{
    cleanup_free char *owner = NULL, *claim = xasprintf(STATE_PROPERTY "=%s", state_dir);
    int r = zfs_get(dataset, STATE_PROPERTY, &owner, err);

    if (r < 0)
        return r;
    if (strcmp(owner, "-") == 0)
        return ZFS(NULL, err, "set", claim, dataset);
    if (strcmp(owner, state_dir) == 0)
        return 0;
    return err_set(
        err, ERR_BUSY,
        "zfs dataset '%s' belongs to state directory '%s' (run 'zfs inherit " STATE_PROPERTY
        " %s' to release it)",
        dataset, owner, dataset);
}

static int make_datasets(const struct zfs *zfs, const char *state_dir, struct err *err)
{
    static const char *const parts[] = { "templates", "volumes", "graveyard" };
    int r = check_pool(zfs->dataset, err);

    if (r == 0)
        r = make_dataset(zfs->dataset, err);
    if (r == 0)
        r = claim_dataset(zfs->dataset, state_dir, err);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++) {
        cleanup_free char *part = xasprintf("%s/%s", zfs->dataset, parts[i]);

        r = make_dataset(part, err);
    }
    return r;
}

static void backend_free(struct zfs *zfs)
{
    if (!zfs)
        return;
    lock_destroy(&zfs->reclaim_lock);
    lock_destroy(&zfs->fill_lock);
    free(zfs->mounts);
    free(zfs->dataset);
    free(zfs);
}

DEFINE_CLEANUP(backend_free, struct zfs *);

static int zfs_open(struct store *store, const struct store_options *options, struct err *err)
{
    cleanup_with(backend_free_slot) struct zfs *zfs = xcalloc(1, sizeof(*zfs));
    const char *dataset = options->storage + strlen("zfs:");
    int r = check_dataset(dataset, err);

    *zfs = (struct zfs){
        .dataset = xstrdup(dataset),
        .mounts = xasprintf("%s/zfs", options->state_dir),
        .points_fd = store->points_fd,
        .fill_lock = LOCK_INIT(LOCK_ZFS_FILL),
        .reclaim_lock = LOCK_INIT(LOCK_ZFS_RECLAIM),
    };
    if (r == 0)
        r = make_datasets(zfs, options->state_dir, err);
    if (r < 0)
        return r;
    r = tree_make(zfs->mounts, 0700);
    if (r < 0)
        return err_sys(err, r, "make '%s'", zfs->mounts);
    zfs_sweep(zfs);
    zfs_template_sweep(zfs, store);
    (void)snprintf(store->storage, sizeof(store->storage), "zfs dataset %s", zfs->dataset);
    store->shared_uid = ZFS_SHARED_UID;
    store->has_quota = store->is_quota_on = true;
    store->backend = TAKE_PTR(zfs);
    return 0;
}

static void zfs_close(struct store *store)
{
    backend_free(store->backend);
    store->backend = NULL;
}

static int get_bytes(const char *dataset, const char *property, uint64_t *ret, struct err *err)
{
    cleanup_free char *text = NULL;
    int r = zfs_get(dataset, property, &text, err);

    if (r < 0)
        return r;
    if (parse_u64(text, ret) < 0)
        return err_set(err, ERR_INTERNAL, "zfs reports property '%s' of '%s' as '%s'", property,
                       dataset, text);
    return 0;
}

static int zfs_space(struct store *store, struct store_space *ret, struct err *err)
{
    const struct zfs *zfs = store->backend;
    struct store_space space = { 0 };
    int r = get_bytes(zfs->dataset, "used", &space.used, err);

    if (r == 0)
        r = get_bytes(zfs->dataset, "available", &space.available, err);
    if (r == 0)
        *ret = space;
    return r;
}

/* --- trees ---------------------------------------------------------------------------------- */

static int parent_make(const struct volume *volume, struct err *err)
{
    cleanup_free char *parent = zfs_parent(volume);
    cleanup_free char *quota = xasprintf("quota=%" PRIu64, volume->quota_bytes);
    const char *const args[] = {
        "zfs",  "create",
        "-o",   "canmount=off",
        "-o",   "mountpoint=none",
        "-o",   volume->quota_bytes > 0 ? quota : "quota=none",
        parent, NULL,
    };
    int r = zfs_run(args, NULL, err);

    /* A destroyed volume of that name may still be in use. */
    if (r == -EEXIST && zfs_is_destroyed(volume)) {
        (void)zfs_drop_volume(zfs_of(volume), volume);
        r = zfs_run(args, NULL, err);
        if (r == -EEXIST)
            return err_set(err, ERR_BUSY, "the destroyed volume '%s' is still in use", volume->id);
    }
    return r;
}

static int zfs_create(struct volume *volume, struct err *err)
{
    cleanup_free char *snapshot = NULL, *tree = NULL;
    int r = check_names(volume, NULL);

    if (r < 0)
        return name_error(volume, NULL, err);
    r = zfs_template_ready(zfs_of(volume), volume->template, &snapshot, err);
    if (r == 0)
        r = parent_make(volume, err);
    if (r < 0)
        return r;
    tree = zfs_live(volume, 1);
    return zfs_clone_tree(zfs_of(volume), snapshot, tree, false, err);
}

static int branch_from(struct volume *volume, uint32_t generation, const char *snapshot,
                       struct err *err)
{
    cleanup_free char *tree = zfs_live(volume, generation);
    int r = parent_make(volume, err);

    if (r < 0 && r != -EEXIST)
        return r;
    return zfs_clone_tree(zfs_of(volume), snapshot, tree, false, err);
}

/* Retries because a removal may move the snapshot to another tree between the two steps. */
static int branch_from_named(struct volume *volume, uint32_t generation, struct volume *from,
                             const char *snapshot, struct err *err)
{
    int r = -ENOENT;

    for (int i = 0; r == -ENOENT && i < FIND_TRIES; i++) {
        cleanup_free char *source = NULL;

        r = zfs_find_snapshot(from, snapshot, &source, err);
        if (r < 0)
            return r;
        r = branch_from(volume, generation, source, err);
    }
    return r;
}

static int zfs_branch(struct volume *volume, uint32_t generation, struct volume *from,
                      const char *snapshot, struct err *err)
{
    cleanup_free char *source = NULL, *hidden = xasprintf("_fork-%016" PRIx64, random_u64());
    struct err ignored;
    int r;

    if (check_names(volume, NULL) < 0)
        return name_error(volume, NULL, err);
    if (check_names(from, snapshot) < 0)
        return name_error(from, snapshot, err);
    if (snapshot)
        return branch_from_named(volume, generation, from, snapshot, err);
    r = zfs_take_snapshot(from, hidden, &source, err);
    if (r < 0)
        return r;
    r = branch_from(volume, generation, source, err);
    /* Destroyed with its last clone; at once if there is none. */
    (void)ZFS_RETRY(&ignored, "destroy", "-d", source);
    return r;
}

static int zfs_snapshot(struct volume *volume, const char *name, struct err *err)
{
    cleanup_free char *found = NULL, *taken = NULL;
    int r = check_names(volume, name);

    if (r < 0)
        return name_error(volume, name, err);
    r = zfs_find_snapshot(volume, name, &found, err);
    if (r == 0)
        return err_refuse(err, CAUSE_SNAPSHOT_EXISTS, "snapshot '%s' already exists", name);
    if (err->cause != CAUSE_SNAPSHOT_NOT_FOUND)
        return r;
    return zfs_take_snapshot(volume, name, &taken, err);
}

static int zfs_drop(struct volume *volume, const char *snapshot, uint32_t generation)
{
    cleanup_free char *tree = zfs_live(volume, generation);

    if (check_names(volume, snapshot) < 0)
        return -EINVAL;
    return snapshot ? zfs_drop_snapshot(zfs_of(volume), volume, snapshot)
                    : zfs_drop_tree(zfs_of(volume), tree);
}

static int zfs_each(struct store *store, int (*each)(void *context, const char *id), void *context)
{
    const struct zfs *zfs = store->backend;
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    cleanup_free char *parent = xasprintf("%s/volumes", zfs->dataset);
    char *cursor, *name;
    struct err ignored;
    int r = ZFS(&output, &ignored, "list", "-H", "-r", "-t", "filesystem", "-o", "name", parent);

    cursor = r < 0 ? NULL : output.data;
    while (r >= 0 && (name = zfs_next_line(&cursor))) {
        const char *id = name + strlen(parent) + 1;

        if (strlen(name) > strlen(parent) + 1 && !strchr(id, '/'))
            r = each(context, id);
    }
    return r;
}

static int zfs_list(struct volume *volume,
                    void (*each)(void *context, const char *snapshot, uint32_t generation),
                    void *context)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    cleanup_free char *parent = zfs_parent(volume), *live = xasprintf("%s/live-", parent);
    char *cursor, *line;
    struct err ignored;
    int r = check_names(volume, NULL);

    /* Locked so that a snapshot that is moved to another tree is not missed. */
    zfs_lock_reclaim(zfs_of(volume));
    if (r == 0)
        r = ZFS(&output, &ignored, "list", "-H", "-r", "-t", "filesystem,snapshot", "-o",
                "name,defer_destroy", parent);
    zfs_unlock_reclaim(zfs_of(volume));
    cursor = r < 0 ? NULL : output.data;
    while ((line = zfs_next_line(&cursor))) {
        char *name = strsep(&line, "\t"), *snapshot = strchr(name, '@');
        uint64_t generation;

        if (snapshot && snapshot[1] != '_' && line && strcmp(line, "off") == 0) {
            *strchrnul(snapshot, ':') = '\0';
            each(context, snapshot + 1, 0);
        } else if (!snapshot && strncmp(name, live, strlen(live)) == 0 &&
                   parse_u64(name + strlen(live), &generation) == 0) {
            each(context, NULL, (uint32_t)generation);
        }
    }
    return r;
}

static int open_mounted(const struct zfs *zfs, const char *tree)
{
    cleanup_free char *path = zfs_mount_path(zfs, tree);
    struct err err;
    int fd, r = zfs_mount(tree, path, &err);

    if (r < 0)
        return r;
    fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int make_view(struct volume *volume, const char *name, const char *view)
{
    struct err err;
    int r = -ENOENT;

    /* A removal may move the snapshot to another tree between the two steps. */
    for (int i = 0; r == -ENOENT && i < FIND_TRIES; i++) {
        cleanup_free char *snapshot = NULL;

        r = zfs_find_snapshot(volume, name, &snapshot, &err);
        if (r < 0)
            return r;
        r = zfs_clone_tree(zfs_of(volume), snapshot, view, true, &err);
    }
    return r;
}

static int zfs_open_tree(struct volume *volume, const char *snapshot, char **ret_temporary)
{
    cleanup_free char *tree = NULL;
    int fd, r = check_names(volume, snapshot);

    if (r < 0)
        return r;
    if (!snapshot) {
        tree = zfs_live(volume, volume->generation);
        fd = open_mounted(zfs_of(volume), tree);
        if (fd >= 0)
            *ret_temporary = NULL;
        return fd;
    }
    tree = xasprintf("%s/volumes/%s/_view-%016" PRIx64, zfs_of(volume)->dataset, volume->id,
                     random_u64());
    r = make_view(volume, snapshot, tree);
    if (r < 0)
        return r;
    fd = open_mounted(zfs_of(volume), tree);
    if (fd < 0)
        (void)zfs_drop_tree(zfs_of(volume), tree);
    else
        *ret_temporary = TAKE_PTR(tree);
    return fd;
}

/* zfs_sweep removes what is still in use now. */
static void zfs_release(struct volume *volume, char *temporary)
{
    if (temporary)
        (void)zfs_drop_tree(zfs_of(volume), temporary);
    free(temporary);
}

static int zfs_usage(struct volume *volume, uint64_t *ret_bytes)
{
    cleanup_free char *parent = zfs_parent(volume);
    struct err err;
    int r = check_names(volume, NULL);

    return r < 0 ? r : get_bytes(parent, "used", ret_bytes, &err);
}

static int zfs_destroy(struct volume *volume)
{
    int r = check_names(volume, NULL);

    return r < 0 ? r : zfs_drop_volume(zfs_of(volume), volume);
}

/* Locked, because a removal may have lifted the quota, and would restore the old one. */
static int zfs_limit(struct volume *volume, uint64_t quota_bytes, struct err *err)
{
    cleanup_free char *parent = zfs_parent(volume);
    cleanup_free char *option =
        quota_bytes > 0 ? xasprintf("quota=%" PRIu64, quota_bytes) : xstrdup("quota=none");
    int r;

    zfs_lock_reclaim(zfs_of(volume));
    zfs_restore_quota(parent);
    r = ZFS(NULL, err, "set", option, parent);
    zfs_unlock_reclaim(zfs_of(volume));
    return r;
}

const struct store_ops store_zfs = {
    .name = "zfs",
    .is_whole = true,
    .is_atomic = true,
    .open = zfs_open,
    .close = zfs_close,
    .space = zfs_space,
    .state = zfs_state,
    .create = zfs_create,
    .branch = zfs_branch,
    .snapshot = zfs_snapshot,
    .drop = zfs_drop,
    .list = zfs_list,
    .each = zfs_each,
    .open_tree = zfs_open_tree,
    .release = zfs_release,
    .usage = zfs_usage,
    .limit = zfs_limit,
    .destroy = zfs_destroy,
};
