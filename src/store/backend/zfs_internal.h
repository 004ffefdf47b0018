/* What the files of the zfs backend share.
 *
 *   DATASET                       POOL/DATASET of the configuration
 *     templates/NAME-HASH@base    a copy of a template's root, owners from ZFS_SHARED_UID
 *     volumes/ID                  a volume: its quota, and nothing itself
 *       live-N                    the live tree of generation N, a clone
 *       _old-X                    never mounted: holds snapshots whose tree was dropped
 *       _view-X                   a snapshot that somebody looks at; read-only
 *     graveyard/_old-X            of destroyed volumes that others are still cloned from
 *
 * What begins with '_' can be no client's. Snapshots hang on live-N and _old-X. One that is marked
 * to be destroyed with its last clone is gone for everybody else; a new one of that name on the
 * same tree is called NAME:1, and so on. A tree is mounted on STATE/zfs/ID/TREE.
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
    ZFS_SHARED_UID = 524288,   /* the first of the range that is set aside for containers */
    ZFS_OUTPUT_MAX = 32 << 20, /* of a list */
    ZFS_DATASET_MAX = 100,     /* bytes; a full name ends at 255, snapshot included */
};

struct zfs {
    char *dataset;
    char *mounts; /* STATE/zfs */
    struct lock fill_lock;
    struct lock reclaim_lock;
    bool has_gone; /* destroyed volumes that were in use; under reclaim_lock */
};

/* Runs `zfs` or `zpool`. What it prints is added to output, which may be NULL. Returns -EBUSY,
 * -EEXIST, -ENOENT, -ENOSPC, -EDQUOT (a quota below what is used), -ENOTEMPTY (snapshots hang on
 * it) or -EMLINK (clones do) where zfs says that, and the kind that goes with it. */
int zfs_run(const char *const args[], struct buf *output, struct err *err);
#define ZFS(output, err, ...)                                                                      \
    zfs_run((const char *const[]){ "zfs", __VA_ARGS__, NULL }, output, err)

/* The same; -EBUSY is tried again for a while: the daemon lets go of a tree some time after it was
 * unmounted. */
int zfs_run_patiently(const char *const args[], struct err *err);
#define ZFS_PATIENTLY(err, ...)                                                                    \
    zfs_run_patiently((const char *const[]){ "zfs", __VA_ARGS__, NULL }, err)

/* One property of a dataset as zfs prints it ("-": none); the caller frees it. */
int zfs_get(const char *dataset, const char *property, char **ret, struct err *err);

/* The next line of a list, or NULL. */
char *zfs_next_line(char **cursor);

/* Whether an identifier cannot be anything but one component of a name. */
bool zfs_is_safe(const char *name);

/* A name that nobody has. */
uint64_t zfs_unique(void);

/* The last component of a dataset's name. */
const char *zfs_leaf(const char *dataset);

struct zfs *zfs_of(const struct volume *volume);
char *zfs_place(const struct volume *volume); /* DATASET/volumes/ID */
char *zfs_live(const struct volume *volume, uint32_t generation);

/* The full name of a volume's snapshot, wherever it hangs; or -ENOENT. */
int zfs_find_snapshot(const struct volume *volume, const char *name, char **ret, struct err *err);

/* Takes a snapshot of the live tree; its full name, which the caller frees. The name must not be
 * taken, but a snapshot that is marked to go may still have it. */
int zfs_take_snapshot(const struct volume *volume, const char *name, char **ret, struct err *err);

/* Where the tree DATASET/volumes/ID/TREE is mounted; the caller frees it. */
char *zfs_mount_path(const struct zfs *zfs, const char *tree);

/* Mounts a dataset on its mountpoint, which is path, unless it is mounted and alive. */
int zfs_mount(const char *dataset, const char *path, struct err *err);

/* Takes what is mounted there away, and the directory too. -EBUSY when it is in use. */
int zfs_unmount(const char *path);

/* Clones a snapshot to the tree and mounts it. Nothing is left of a failure. */
int zfs_clone_tree(const struct zfs *zfs, const char *snapshot, const char *tree, bool is_view,
                   struct err *err);

/* The snapshot that trees of a template are cloned from, made at its first use. */
int zfs_template_ready(struct zfs *zfs, const struct template *template, char **ret_snapshot,
                       struct err *err);

/* Removes datasets of templates that are half-made, or whose template is gone or another by now,
 * unless a tree is cloned from them. */
void zfs_template_sweep(struct zfs *zfs, struct store *store);

/* Lifts the quota of a volume until zfs_restore_quota, also when that is in the next life. */
int zfs_lift_quota(const char *place);

/* Sets a quota back that was lifted. If more is used by now, the next removal tries again. */
void zfs_restore_quota(const char *place);

/* Removal. What something else still needs is put aside, out of sight, and goes as soon as that
 * does. */
int zfs_drop_tree(struct zfs *zfs, const char *tree);
int zfs_drop_snapshot(struct zfs *zfs, const struct volume *volume, const char *name);

/* Keeps removals from moving snapshots about meanwhile. */
void zfs_hold(struct zfs *zfs);
void zfs_let_go(struct zfs *zfs);

/* Succeeds for a volume in use, too: it goes later, and zfs_is_gone until then. */
int zfs_drop_volume(struct zfs *zfs, const struct volume *volume);
bool zfs_is_gone(const struct volume *volume);

/* Removes what an earlier life left in the middle of something. */
void zfs_sweep(struct zfs *zfs);
