// SPDX-License-Identifier: Apache-2.0
/* Removing trees, snapshots and volumes, of which others may be clones.
 *
 * zfs refuses to destroy what something hangs on, and that refusal is all the safety there is: it
 * is never asked to take clones along. What is refused is put aside instead:
 *
 * - A snapshot with clones is marked to go with the last of them; marked ones do not exist for
 *   anybody else.
 * - A tree with snapshots hands them to a clone of the newest one (_old-X), which has nothing of
 *   its own, and goes. So what was written after the last snapshot does not stay.
 * - A volume with clones in others does the same, and its _old-X are in the graveyard.
 * - A volume that is in use is marked and tried again.
 *
 * Whoever removes a clone looks whether what it was cloned from had only waited for that. One
 * thread removes at a time, so that nobody else does in between.
 *
 * Nothing is ever renamed: for that, zfs unmounts every clone and mounts it anew, under the feet of
 * whoever runs there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "store/backend/zfs_internal.h"
#include "store/store_internal.h"

/* On a volume that is destroyed, but in use. */
#define GONE_PROPERTY "holt:gone"

static const char gone_mark[] = GONE_PROPERTY "=on";

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_aside(const char *dataset)
{
    return has_prefix(zfs_leaf(dataset), "_old-");
}

/* Names below a dataset, oldest first, one a line; `what` is filesystem or snapshot. */
static int list_below(const char *dataset, const char *what, const char *columns, struct buf *ret)
{
    struct err ignored;

    return ZFS(ret, &ignored, "list", "-H", "-r", "-t", what, "-s", "createtxg", "-o", columns,
               dataset);
}

/* The newest snapshot that hangs on a dataset, or NULL; the caller frees it. Whether one of them is
 * not only there for its clones is told, too. */
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

/* The dataset that another was cloned from, or NULL; the caller frees it. */
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

/* Makes a clone the owner of the snapshot it was made from and of all before it. They count twice
 * meanwhile. */
static int promote(const char *clone, const char *place)
{
    struct err ignored;
    int r = ZFS(NULL, &ignored, "promote", clone);

    if (r == -ENOSPC && zfs_lift_quota(place) == 0)
        r = ZFS(NULL, &ignored, "promote", clone);
    return r;
}

/* Gives all snapshots of a tree to a clone of the newest, below `to`. */
static int hand_on_snapshots(const char *tree, const char *to)
{
    bool is_wanted;
    cleanup_free char *snapshot = newest_snapshot(tree, &is_wanted), *place = parent_of(tree);
    cleanup_free char *aside = xasprintf("%s/_old-%016" PRIx64, to, zfs_unique());
    struct err ignored;
    int r;

    if (!snapshot)
        return -EIO;
    r = ZFS(NULL, &ignored, "clone", "-o", "canmount=off", "-o", "mountpoint=none", snapshot,
            aside);
    if (r < 0)
        return r;
    r = promote(aside, place);
    if (r < 0)
        (void)ZFS_PATIENTLY(&ignored, "destroy", aside);
    return r;
}

/* The tree beside a dataset that was cloned from this snapshot, or NULL; the caller frees it. */
static char *clone_beside(const char *place, const char *snapshot)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    char *cursor, *line;

    if (list_below(place, "filesystem", "name,origin", &output) < 0)
        return NULL;
    cursor = output.data;
    while ((line = zfs_next_line(&cursor))) {
        char *name = strsep(&line, "\t");

        if (line && strcmp(line, snapshot) == 0)
            return xstrdup(name);
    }
    return NULL;
}

/* What is aside only for the clones of its snapshots gives them to the clone beside it: else every
 * rollback would leave one more tree for as long as the volume lives. */
static bool hand_back(const char *dataset, const char *newest)
{
    cleanup_free char *place = parent_of(dataset), *clone = clone_beside(place, newest);
    struct err ignored;
    int r;

    if (!clone)
        return false;
    r = promote(clone, place);
    if (r == 0)
        r = ZFS_PATIENTLY(&ignored, "destroy", dataset);
    zfs_restore_quota(place);
    return r == 0;
}

/* What is aside has nothing of its own as long as the newest snapshot is the one it was made from.
 * When that goes, it would keep what nobody can see. */
static bool has_own_data(const char *dataset)
{
    cleanup_free char *unique = NULL;
    struct err ignored;

    return zfs_get(dataset, "unique", &unique, &ignored) == 0 && strcmp(unique, "0") != 0;
}

static void hand_on_again(const char *dataset)
{
    cleanup_free char *place = parent_of(dataset);
    struct err ignored;

    if (hand_on_snapshots(dataset, place) == 0)
        (void)ZFS_PATIENTLY(&ignored, "destroy", dataset);
    zfs_restore_quota(place);
}

/* Destroys what is aside and what nothing hangs on any more, then looks at its origin. Takes the
 * name, which may be NULL. */
static void settle(char *dataset)
{
    struct err ignored;

    while (dataset && is_aside(dataset)) {
        bool is_wanted;
        cleanup_free char *snapshot = newest_snapshot(dataset, &is_wanted);
        char *origin;

        if (snapshot) {
            if ((is_wanted || !hand_back(dataset, snapshot)) && has_own_data(dataset))
                hand_on_again(dataset);
            break;
        }
        origin = origin_of(dataset);
        if (ZFS_PATIENTLY(&ignored, "destroy", dataset) < 0) {
            free(origin);
            break;
        }
        free(dataset);
        dataset = origin;
    }
    free(dataset);
}

/* Removes one tree; the snapshots that hang on it stay. */
static int drop_tree(const struct zfs *zfs, const char *tree)
{
    cleanup_free char *path = zfs_mount_path(zfs, tree), *place = parent_of(tree);
    struct err ignored;
    char *origin;
    int r = zfs_unmount(path);

    if (r < 0)
        return r;
    origin = origin_of(tree);
    r = ZFS_PATIENTLY(&ignored, "destroy", tree);
    if (r == -ENOTEMPTY || r == -EMLINK) {
        r = hand_on_snapshots(tree, place);
        if (r == 0)
            r = ZFS_PATIENTLY(&ignored, "destroy", tree);
    }
    settle(origin);
    zfs_restore_quota(place);
    return r;
}

/* Lets a snapshot go with its last clone; at once, if there is none. */
static int destroy_later(const char *snapshot)
{
    struct err ignored;

    return ZFS_PATIENTLY(&ignored, "destroy", "-d", snapshot);
}

/* The same with every snapshot below; `is_ours` limits it to those that no client knows. */
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

/* Unmounts every tree of a volume and notes what they are clones of, one a line. */
static int unmount_all(const struct zfs *zfs, const char *place, struct buf *ret_origins)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    char *cursor, *line;
    int first = 0, r = list_below(place, "filesystem", "name,origin", &output);

    cursor = r < 0 ? NULL : output.data;
    while ((line = zfs_next_line(&cursor))) {
        char *tree = strsep(&line, "\t");
        cleanup_free char *path = zfs_mount_path(zfs, tree);

        r = strcmp(tree, place) == 0 ? 0 : zfs_unmount(path);
        first = first ? first : r;
        if (line && strchr(line, '@'))
            (void)buf_printf(ret_origins, "%.*s\n", (int)strcspn(line, "@"), line);
        r = first;
    }
    return r;
}

/* Moves every snapshot that somebody is cloned from to the graveyard, and destroys the rest. */
static int vacate(const struct zfs *zfs, const char *place)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    cleanup_free char *graveyard = xasprintf("%s/graveyard", zfs->dataset);
    struct err ignored;
    char *cursor, *tree;
    int r;

    destroy_all_later(place, false);
    r = list_below(place, "filesystem", "name", &output);
    cursor = r < 0 ? NULL : output.data;
    while (r == 0 && (tree = zfs_next_line(&cursor))) {
        bool is_wanted;
        cleanup_free char *snapshot = newest_snapshot(tree, &is_wanted);

        if (snapshot && strcmp(tree, place) != 0)
            r = hand_on_snapshots(tree, graveyard);
    }
    return r < 0 ? r : ZFS_PATIENTLY(&ignored, "destroy", "-r", place);
}

static int drop_place(struct zfs *zfs, const char *place)
{
    cleanup_with(buf_done) struct buf origins = BUF_INIT(ZFS_OUTPUT_MAX);
    cleanup_free char *path = zfs_mount_path(zfs, place);
    struct err ignored;
    char *cursor, *origin;
    int r = unmount_all(zfs, place, &origins);

    if (r == 0)
        r = ZFS_PATIENTLY(&ignored, "destroy", "-r", place);
    if (r == -EMLINK)
        r = vacate(zfs, place);
    (void)rmdir(path);
    cursor = origins.data;
    while ((origin = zfs_next_line(&cursor))) {
        if (!has_prefix(origin, place) || origin[strlen(place)] != '/')
            settle(xstrdup(origin));
    }
    return r == -ENOENT ? 0 : r; /* never made, or gone already */
}

/* Tries again what was in use when it was to go. */
static void drop_gone(struct zfs *zfs)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    cleanup_free char *volumes = xasprintf("%s/volumes", zfs->dataset);
    char *cursor, *line;

    if (!zfs->has_gone || list_below(volumes, "filesystem", "name," GONE_PROPERTY, &output) < 0)
        return;
    zfs->has_gone = false;
    cursor = output.data;
    while ((line = zfs_next_line(&cursor))) {
        char *place = strsep(&line, "\t");

        /* Its trees inherit the mark. */
        if (strlen(place) <= strlen(volumes) || strchr(place + strlen(volumes) + 1, '/'))
            continue;
        if (line && strcmp(line, "on") == 0 && drop_place(zfs, place) < 0)
            zfs->has_gone = true;
    }
}

/* --- what the others call ------------------------------------------------------------------- */

void zfs_hold(struct zfs *zfs)
{
    lock_take(&zfs->reclaim_lock);
}

void zfs_let_go(struct zfs *zfs)
{
    lock_release(&zfs->reclaim_lock);
}

static int unlock(struct zfs *zfs, int r)
{
    drop_gone(zfs);
    zfs_let_go(zfs);
    return r;
}

int zfs_drop_tree(struct zfs *zfs, const char *tree)
{
    zfs_hold(zfs);
    return unlock(zfs, drop_tree(zfs, tree));
}

int zfs_drop_snapshot(struct zfs *zfs, const struct volume *volume, const char *name)
{
    cleanup_free char *place = zfs_place(volume);
    char *snapshot = NULL;
    struct err err;
    int r;

    zfs_hold(zfs);
    r = zfs_find_snapshot(volume, name, &snapshot, &err);
    if (r < 0)
        return unlock(zfs, r);
    r = destroy_later(snapshot);
    *strchrnul(snapshot, '@') = '\0';
    settle(snapshot);
    zfs_restore_quota(place);
    return unlock(zfs, r);
}

int zfs_drop_volume(struct zfs *zfs, const struct volume *volume)
{
    cleanup_free char *place = zfs_place(volume);
    struct err ignored;
    int r;

    zfs_hold(zfs);
    r = drop_place(zfs, place);
    if (r == -EBUSY && ZFS(NULL, &ignored, "set", gone_mark, place) == 0) {
        zfs->has_gone = true;
        /* Not at once again, as unlock would. */
        zfs_let_go(zfs);
        return 0;
    }
    return unlock(zfs, r);
}

bool zfs_is_gone(const struct volume *volume)
{
    cleanup_free char *place = zfs_place(volume), *gone = NULL;
    struct err ignored;

    return zfs_get(place, GONE_PROPERTY, &gone, &ignored) == 0 && strcmp(gone, "on") == 0;
}

/* Views of an earlier life, trees aside that hold nothing any more, quotas that were lifted. */
static void sweep_trees(const struct zfs *zfs, const char *below)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    char *cursor, *tree;

    if (list_below(below, "filesystem", "name", &output) < 0)
        return;
    cursor = output.data;
    while ((tree = zfs_next_line(&cursor))) {
        if (has_prefix(zfs_leaf(tree), "_view-"))
            (void)drop_tree(zfs, tree);
        else if (is_aside(tree))
            settle(xstrdup(tree));
        else if (strlen(tree) > strlen(below) && !strchr(tree + strlen(below) + 1, '/'))
            zfs_restore_quota(tree);
    }
}

void zfs_sweep(struct zfs *zfs)
{
    cleanup_free char *volumes = xasprintf("%s/volumes", zfs->dataset);
    cleanup_free char *graveyard = xasprintf("%s/graveyard", zfs->dataset);

    zfs_hold(zfs);
    destroy_all_later(volumes, true);
    destroy_all_later(graveyard, false);
    sweep_trees(zfs, volumes);
    sweep_trees(zfs, graveyard);
    zfs->has_gone = true;
    (void)unlock(zfs, 0);
}
