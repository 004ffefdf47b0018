/* Internals shared by the files of the zfs backend.
 *
 *   DATASET                       POOL/DATASET of the configuration
 *     templates/NAME-HASH@base    a copy of a template's root, owners from ZFS_SHARED_UID
 *     volumes/ID                  a volume: carries its quota, holds no files itself
 *       live-N                    the live tree of generation N, a clone
 *       _old-X                    never mounted: holds snapshots whose tree was dropped
 *       _view-X                   a snapshot that is open for reading; read-only
 *     graveyard/_old-X            of destroyed volumes that others are still cloned from
 *
 * Clients cannot use names that begin with '_'. Snapshots belong to live-N and _old-X. A snapshot
 * that is marked for deferred destruction (with its last clone) is treated as absent; a new one of
 * that name on the same tree is called NAME:1, and so on. A tree is mounted on STATE/zfs/ID/TREE.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"

struct buf;
struct err;
struct store;
struct template;
struct volume;

enum {
    ZFS_SHARED_UID = 524288,   /* first uid of the range reserved for containers */
    ZFS_OUTPUT_MAX = 32 << 20, /* of a list */
    ZFS_DATASET_MAX = 100,     /* bytes; a full name has at most 255, including the snapshot */
};

struct zfs {
    char *dataset;
    char *mounts;  /* STATE/zfs */
    int points_fd; /* of the store: see store/template/mount_points.h */
    struct lock fill_lock;
    struct lock reclaim_lock;
    bool has_destroyed; /* destroyed volumes that were in use; protected by reclaim_lock */
};

/* Runs `zfs` or `zpool` and appends its stdout to output, which may be NULL. Maps messages of zfs
 * to -EBUSY, -EEXIST, -ENOENT, -ENOSPC, -EDQUOT (a quota below the usage), -ENOTEMPTY (has
 * snapshots) or -EMLINK (has clones), with the matching error kind. */
int zfs_run(const char *const args[], struct buf *output, struct err *err);
#define ZFS(output, err, ...)                                                                      \
    zfs_run((const char *const[]){ "zfs", __VA_ARGS__, NULL }, output, err)

/* Like zfs_run, but retries -EBUSY for a while: zfs releases a tree some time after its unmount.
 */
int zfs_run_retry(const char *const args[], struct err *err);
#define ZFS_RETRY(err, ...) zfs_run_retry((const char *const[]){ "zfs", __VA_ARGS__, NULL }, err)

/* Reads one property of a dataset as zfs prints it ("-": none); the caller frees it. */
int zfs_get(const char *dataset, const char *property, char **ret, struct err *err);

/* Returns the next line of a list, or NULL. */
char *zfs_next_line(char **cursor);

/* Returns whether a name is safe as one component of a dataset name. */
bool zfs_is_safe(const char *name);

/* Returns the last component of a dataset's name. */
const char *zfs_leaf(const char *dataset);

struct zfs *zfs_of(const struct volume *volume);
char *zfs_parent(const struct volume *volume); /* DATASET/volumes/ID */
char *zfs_live(const struct volume *volume, uint32_t generation);

/* Finds the full name of a volume's snapshot, on whatever tree it is. ERR_NOT_FOUND if there is
 * none. */
int zfs_find_snapshot(const struct volume *volume, const char *name, char **ret, struct err *err);

/* Takes a snapshot of the live tree and returns its full name, which the caller frees. The name
 * must be unused, except by snapshots marked for deferred destruction. */
int zfs_take_snapshot(const struct volume *volume, const char *name, char **ret, struct err *err);

/* Returns the mount point of the tree DATASET/volumes/ID/TREE; the caller frees it. */
char *zfs_mount_path(const struct zfs *zfs, const char *tree);

/* Mounts a dataset on its mountpoint, path, unless it is mounted and responds. */
int zfs_mount(const char *dataset, const char *path, struct err *err);

/* Unmounts path and removes the directory. Returns -EBUSY if it is in use. */
int zfs_unmount(const char *path);

/* Clones a snapshot to the tree and mounts it. Leaves nothing behind on failure. */
int zfs_clone_tree(const struct zfs *zfs, const char *snapshot, const char *tree, bool is_view,
                   struct err *err);

/* Returns the snapshot that trees of a template are cloned from; creates it at its first use. */
int zfs_template_ready(struct zfs *zfs, const struct template *template, char **ret_snapshot,
                       struct err *err);

/* Removes datasets of templates that are incomplete, or whose template was removed or replaced,
 * unless a tree is cloned from them. */
void zfs_template_sweep(struct zfs *zfs, struct store *store);

/* Lifts the quota of a volume until zfs_restore_quota, across a restart too. */
int zfs_lift_quota(const char *parent);

/* Restores a lifted quota. If more is used by now, the next removal tries again. */
void zfs_restore_quota(const char *parent);

/* Remove a tree or a snapshot. What clones still need is set aside and removed with the last of
 * them. */
int zfs_drop_tree(struct zfs *zfs, const char *tree);
int zfs_drop_snapshot(struct zfs *zfs, const struct volume *volume, const char *name);

/* Lock against removals, which move snapshots between trees. */
void zfs_lock_reclaim(struct zfs *zfs);
void zfs_unlock_reclaim(struct zfs *zfs);

/* Destroys a volume. Also succeeds for one in use: it is then removed later, and zfs_is_destroyed
 * returns true until then. */
int zfs_drop_volume(struct zfs *zfs, const struct volume *volume);
bool zfs_is_destroyed(const struct volume *volume);

/* Removes leftovers of an interrupted operation of an earlier run. */
void zfs_sweep(struct zfs *zfs);
