// SPDX-License-Identifier: Apache-2.0
/* Removes trees, snapshots and volumes that others may be cloned from.
 *
 * zfs refuses to destroy a dataset that has dependents, and Holt relies on that: it never asks for
 * clones to be destroyed as well. What zfs refuses is set aside:
 *
 * - A snapshot with clones is marked for deferred destruction with the last of them; everybody
 *   else treats it as absent.
 * - A tree with snapshots hands them to a clone of the newest one (_old-X), which has no data of
 *   its own, and is destroyed. So data written after the last snapshot is freed.
 * - A volume with clones in other volumes does the same, with its _old-X in the graveyard.
 * - A volume in use is marked, and its removal is retried.
 *
 * The removal of a clone checks whether its origin was only kept for that clone. Removals are
 * serialised by reclaim_lock.
 *
 * Nothing is ever renamed: for a rename zfs unmounts every clone and mounts it again, under
 * running processes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "store/backend/zfs_internal.h"
#include "store/store_internal.h"

/* Marks a volume that is destroyed but in use. */
#define DESTROYED_PROPERTY "holt:gone"

static const char destroyed_mark[] = DESTROYED_PROPERTY "=on";

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_aside(const char *dataset)
{
    return has_prefix(zfs_leaf(dataset), "_old-");
}

/* Lists the names below a dataset, oldest first, one per line; `what` is filesystem or snapshot.
 */
static int list_below(const char *dataset, const char *what, const char *columns, struct buf *ret)
{
    struct err ignored;

    return ZFS(ret, &ignored, "list", "-H", "-r", "-t", what, "-s", "createtxg", "-o", columns,
               dataset);
}

/* Returns the newest snapshot of a dataset, or NULL; the caller frees it. *ret_is_wanted says
 * whether one of its snapshots is not marked for deferred destruction. */
static char *newest_snapshot(const char *dataset, bool *ret_is_wanted)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    char *cursor, *line, *last = NULL;

    *ret_is_wanted = false;
    if (list_below(dataset, "snapshot", "name,defer_destroy", &output) < 0)
        return NULL;
    cursor = output.data;
    while ((line = zfs_next_line(&cursor))) {
        last = strsep(&line, "\t");
        if (!line || strcmp(line, "off") == 0)
            *ret_is_wanted = true;
    }
    return last ? xstrdup(last) : NULL;
}

/* Returns the dataset that another was cloned from, or NULL; the caller frees it. */
static char *origin_of(const char *dataset)
{
    struct err ignored;
    char *origin = NULL;

    if (zfs_get(dataset, "origin", &origin, &ignored) < 0)
        return NULL;
    *strchrnul(origin, '@') = '\0';
    return origin;
}

static char *parent_of(const char *dataset)
{
    return xasprintf("%.*s", (int)(zfs_leaf(dataset) - dataset - 1), dataset);
}

/* Makes a clone the owner of its origin snapshot and of all earlier ones. They count twice against
 * the quota meanwhile, so it may be lifted. */
static int promote(const char *clone, const char *parent)
{
    struct err ignored;
    int r = ZFS(NULL, &ignored, "promote", clone);

    if (r == -ENOSPC && zfs_lift_quota(parent) == 0)
        r = ZFS(NULL, &ignored, "promote", clone);
    return r;
}

/* Moves all snapshots of a tree to a clone of the newest one, created below `to`. */
static int snapshots_move(const char *tree, const char *to)
{
    bool is_wanted;
    cleanup_free char *snapshot = newest_snapshot(tree, &is_wanted), *parent = parent_of(tree);
    cleanup_free char *aside = xasprintf("%s/_old-%016" PRIx64, to, random_u64());
    struct err ignored;
    int r;

    if (!snapshot)
        return -EIO;
    r = ZFS(NULL, &ignored, "clone", "-o", "canmount=off", "-o", "mountpoint=none", snapshot,
            aside);
    if (r < 0)
        return r;
    r = promote(aside, parent);
    if (r < 0)
        (void)ZFS_RETRY(&ignored, "destroy", aside);
    return r;
}

/* Returns the tree below parent that was cloned from this snapshot, or NULL; the caller frees it.
 */
static char *clone_beside(const char *parent, const char *snapshot)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    char *cursor, *line;

    if (list_below(parent, "filesystem", "name,origin", &output) < 0)
        return NULL;
    cursor = output.data;
    while ((line = zfs_next_line(&cursor))) {
        char *name = strsep(&line, "\t");

        if (line && strcmp(line, snapshot) == 0)
            return xstrdup(name);
    }
    return NULL;
}

/* If only clones need the snapshots of a dataset that is set aside, they move to the clone beside
 * it: otherwise every rollback would add a tree for as long as the volume exists. */
static bool snapshots_to_sibling(const char *dataset, const char *newest)
{
    cleanup_free char *parent = parent_of(dataset), *clone = clone_beside(parent, newest);
    struct err ignored;
    int r;

    if (!clone)
        return false;
    r = promote(clone, parent);
    if (r == 0)
        r = ZFS_RETRY(&ignored, "destroy", dataset);
    zfs_restore_quota(parent);
    return r == 0;
}

/* A dataset that is set aside has no data of its own while its newest snapshot is its origin. Once
 * that is destroyed, the dataset would keep data that is not visible anywhere. */
static bool has_own_data(const char *dataset)
{
    cleanup_free char *unique = NULL;
    struct err ignored;

    return zfs_get(dataset, "unique", &unique, &ignored) == 0 && strcmp(unique, "0") != 0;
}

static void aside_replace(const char *dataset)
{
    cleanup_free char *parent = parent_of(dataset);
    struct err ignored;

    if (snapshots_move(dataset, parent) == 0)
        (void)ZFS_RETRY(&ignored, "destroy", dataset);
    zfs_restore_quota(parent);
}

/* Destroys a dataset that is set aside and has no dependents left, then continues with its origin.
 * Takes ownership of the name, which may be NULL. */
static void aside_reclaim(char *dataset)
{
    struct err ignored;

    while (dataset && is_aside(dataset)) {
        bool is_wanted;
        cleanup_free char *snapshot = newest_snapshot(dataset, &is_wanted);
        char *origin;

        if (snapshot) {
            if ((is_wanted || !snapshots_to_sibling(dataset, snapshot)) && has_own_data(dataset))
                aside_replace(dataset);
            break;
        }
        origin = origin_of(dataset);
        if (ZFS_RETRY(&ignored, "destroy", dataset) < 0) {
            free(origin);
            break;
        }
        free(dataset);
        dataset = origin;
    }
    free(dataset);
}

/* Removes one tree; its snapshots stay. */
static int tree_drop(const struct zfs *zfs, const char *tree)
{
    cleanup_free char *path = zfs_mount_path(zfs, tree), *parent = parent_of(tree);
    struct err ignored;
    char *origin;
    int r = zfs_unmount(path);

    if (r < 0)
        return r;
    origin = origin_of(tree);
    r = ZFS_RETRY(&ignored, "destroy", tree);
    if (r == -ENOTEMPTY || r == -EMLINK) {
        r = snapshots_move(tree, parent);
        if (r == 0)
            r = ZFS_RETRY(&ignored, "destroy", tree);
    }
    aside_reclaim(origin);
    zfs_restore_quota(parent);
    return r;
}

/* Destroys a snapshot with its last clone; at once if there is none. */
static int destroy_later(const char *snapshot)
{
    struct err ignored;

    return ZFS_RETRY(&ignored, "destroy", "-d", snapshot);
}

/* Does the same with every snapshot below; `is_ours` limits it to names that clients cannot use.
 */
static void destroy_all_later(const char *below, bool is_ours)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    char *cursor, *line;

    if (list_below(below, "snapshot", "name,defer_destroy", &output) < 0)
        return;
    cursor = output.data;
    while ((line = zfs_next_line(&cursor))) {
        char *name = strsep(&line, "\t");

        if (line && strcmp(line, "off") == 0 && (!is_ours || strstr(name, "@_")))
            (void)destroy_later(name);
    }
}

/* --- volumes -------------------------------------------------------------------------------- */

/* Unmounts every tree of a volume and lists their origins, one per line. */
static int unmount_all(const struct zfs *zfs, const char *parent, struct buf *ret_origins)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    char *cursor, *line;
    int first = 0, r = list_below(parent, "filesystem", "name,origin", &output);

    cursor = r < 0 ? NULL : output.data;
    while ((line = zfs_next_line(&cursor))) {
        char *tree = strsep(&line, "\t");
        cleanup_free char *path = zfs_mount_path(zfs, tree);

        r = strcmp(tree, parent) == 0 ? 0 : zfs_unmount(path);
        first = first ? first : r;
        if (line && strchr(line, '@'))
            (void)buf_printf(ret_origins, "%.*s\n", (int)strcspn(line, "@"), line);
        r = first;
    }
    return r;
}

/* Moves every snapshot that has clones to the graveyard, and destroys the rest. */
static int parent_evacuate(const struct zfs *zfs, const char *parent)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    cleanup_free char *graveyard = xasprintf("%s/graveyard", zfs->dataset);
    struct err ignored;
    char *cursor, *tree;
    int r;

    destroy_all_later(parent, false);
    r = list_below(parent, "filesystem", "name", &output);
    cursor = r < 0 ? NULL : output.data;
    while (r == 0 && (tree = zfs_next_line(&cursor))) {
        bool is_wanted;
        cleanup_free char *snapshot = newest_snapshot(tree, &is_wanted);

        if (snapshot && strcmp(tree, parent) != 0)
            r = snapshots_move(tree, graveyard);
    }
    return r < 0 ? r : ZFS_RETRY(&ignored, "destroy", "-r", parent);
}

static int parent_drop(struct zfs *zfs, const char *parent)
{
    cleanup_with(buf_done) struct buf origins = BUF_INIT(ZFS_OUTPUT_MAX);
    cleanup_free char *path = zfs_mount_path(zfs, parent);
    struct err ignored;
    char *cursor, *origin;
    int r = unmount_all(zfs, parent, &origins);

    if (r == 0)
        r = ZFS_RETRY(&ignored, "destroy", "-r", parent);
    if (r == -EMLINK)
        r = parent_evacuate(zfs, parent);
    (void)rmdir(path);
    cursor = origins.data;
    while ((origin = zfs_next_line(&cursor))) {
        if (!has_prefix(origin, parent) || origin[strlen(parent)] != '/')
            aside_reclaim(xstrdup(origin));
    }
    return r == -ENOENT ? 0 : r; /* never created, or already gone */
}

/* Retries the volumes that were in use when they were destroyed. */
static void retry_destroyed(struct zfs *zfs)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    cleanup_free char *volumes = xasprintf("%s/volumes", zfs->dataset);
    char *cursor, *line;

    if (!zfs->has_destroyed ||
        list_below(volumes, "filesystem", "name," DESTROYED_PROPERTY, &output) < 0)
        return;
    zfs->has_destroyed = false;
    cursor = output.data;
    while ((line = zfs_next_line(&cursor))) {
        char *parent = strsep(&line, "\t");

        /* Its trees inherit the mark. */
        if (strlen(parent) <= strlen(volumes) || strchr(parent + strlen(volumes) + 1, '/'))
            continue;
        if (line && strcmp(line, "on") == 0 && parent_drop(zfs, parent) < 0)
            zfs->has_destroyed = true;
    }
}

/* --- interface ------------------------------------------------------------------------------ */

void zfs_lock_reclaim(struct zfs *zfs)
{
    lock_take(&zfs->reclaim_lock);
}

void zfs_unlock_reclaim(struct zfs *zfs)
{
    lock_release(&zfs->reclaim_lock);
}

static int reclaim_finish(struct zfs *zfs, int r)
{
    retry_destroyed(zfs);
    zfs_unlock_reclaim(zfs);
    return r;
}

int zfs_drop_tree(struct zfs *zfs, const char *tree)
{
    zfs_lock_reclaim(zfs);
    return reclaim_finish(zfs, tree_drop(zfs, tree));
}

int zfs_drop_snapshot(struct zfs *zfs, const struct volume *volume, const char *name)
{
    cleanup_free char *parent = zfs_parent(volume);
    char *snapshot = NULL;
    struct err err;
    int r;

    zfs_lock_reclaim(zfs);
    r = zfs_find_snapshot(volume, name, &snapshot, &err);
    if (r < 0)
        return reclaim_finish(zfs, r);
    r = destroy_later(snapshot);
    *strchrnul(snapshot, '@') = '\0';
    aside_reclaim(snapshot);
    zfs_restore_quota(parent);
    return reclaim_finish(zfs, r);
}

int zfs_drop_volume(struct zfs *zfs, const struct volume *volume)
{
    cleanup_free char *parent = zfs_parent(volume);
    struct err ignored;
    int r;

    zfs_lock_reclaim(zfs);
    r = parent_drop(zfs, parent);
    if (r == -EBUSY && ZFS(NULL, &ignored, "set", destroyed_mark, parent) == 0) {
        zfs->has_destroyed = true;
        /* Without the immediate retry of reclaim_finish. */
        zfs_unlock_reclaim(zfs);
        return 0;
    }
    return reclaim_finish(zfs, r);
}

bool zfs_is_destroyed(const struct volume *volume)
{
    cleanup_free char *parent = zfs_parent(volume), *gone = NULL;
    struct err ignored;

    return zfs_get(parent, DESTROYED_PROPERTY, &gone, &ignored) == 0 && strcmp(gone, "on") == 0;
}

/* Removes views of an earlier run and empty datasets that are set aside, and restores lifted
 * quotas. */
static void sweep_trees(const struct zfs *zfs, const char *below)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    char *cursor, *tree;

    if (list_below(below, "filesystem", "name", &output) < 0)
        return;
    cursor = output.data;
    while ((tree = zfs_next_line(&cursor))) {
        if (has_prefix(zfs_leaf(tree), "_view-"))
            (void)tree_drop(zfs, tree);
        else if (is_aside(tree))
            aside_reclaim(xstrdup(tree));
        else if (strlen(tree) > strlen(below) && !strchr(tree + strlen(below) + 1, '/'))
            zfs_restore_quota(tree);
    }
}

void zfs_sweep(struct zfs *zfs)
{
    cleanup_free char *volumes = xasprintf("%s/volumes", zfs->dataset);
    cleanup_free char *graveyard = xasprintf("%s/graveyard", zfs->dataset);

    zfs_lock_reclaim(zfs);
    destroy_all_later(volumes, true);
    destroy_all_later(graveyard, false);
    sweep_trees(zfs, volumes);
    sweep_trees(zfs, graveyard);
    zfs->has_destroyed = true;
    (void)reclaim_finish(zfs, 0);
}
