/* The interface of a storage backend: one file, store/backend/NAME.c, that exports one const
 * table. Only volume.c, store.c and the files beside them call it, after they have checked the
 * arguments.
 *
 * There are two kinds. Layered (btrfs, dir): a tree is a directory with the upper and work
 * directories of each tree of the template, which volume/mount.c mounts over the template's own.
 * Whole (zfs): a tree is the root itself, cloned from the template's; the template's other trees
 * are mounted read-only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct err;
struct store;
struct store_options;
struct store_space;
struct volume;

struct store_ops {
    const char *name;
    bool is_whole;
    bool is_atomic; /* a snapshot is taken at one point in time, even during writes */

    /* Fills store->backend, storage, has_quota, shared_uid and, for layered kinds, volumes_fd.
     * ERR_UNSUPPORTED if this host cannot use it; leaves nothing behind on failure. */
    int (*open)(struct store *store, const struct store_options *options, struct err *err);
    void (*close)(struct store *store);
    int (*space)(struct store *store, struct store_space *ret, struct err *err);

    /* See store_state. NULL: ONLINE whenever space can be read. */
    int (*state)(struct store *store, char ret[static STORE_STATE_SIZE], struct err *err);

    /* Creates the volume's directory or dataset, its quota, and its live tree of generation 1:
     * empty, or for a whole kind a clone of the template. */
    int (*create)(struct volume *volume, struct err *err);

    /* Creates the live tree `generation` of volume from a tree of `from`, which may be another
     * volume: from a snapshot, or from the current live tree (NULL). Creates the volume's
     * directory or dataset first if it is missing. */
    int (*branch)(struct volume *volume, uint32_t generation, struct volume *from,
                  const char *snapshot, struct err *err);
    int (*snapshot)(struct volume *volume, const char *name, struct err *err);

    /* Removes one tree: a snapshot, or the live tree `generation` (NULL). Returns 0 or -errno;
     * -ENOENT if it does not exist. */
    int (*drop)(struct volume *volume, const char *snapshot, uint32_t generation);

    /* Calls each for every tree: with a snapshot's name, or with NULL and a generation. Returns
     * -ENOENT if there is no such volume. */
    int (*list)(struct volume *volume,
                void (*each)(void *context, const char *snapshot, uint32_t generation),
                void *context);

    /* Calls each for the id of every volume; a result below 0 ends it and is returned. */
    int (*each)(struct store *store, int (*each)(void *context, const char *id), void *context);

    /* Opens the directory of a snapshot, or of the live tree (NULL). If something had to be
     * created for that, *ret_temporary names it (otherwise NULL) and release removes it. */
    int (*open_tree)(struct volume *volume, const char *snapshot, char **ret_temporary);
    void (*release)(struct volume *volume, char *temporary);

    int (*usage)(struct volume *volume, uint64_t *ret_bytes);

    /* Like usage, but directly after a snapshot, when all data is written; 0 bytes if that would
     * need a walk. NULL: usage is used. */
    int (*usage_settled)(struct volume *volume, uint64_t *ret_bytes);

    /* Changes the quota (0: none) at once. ERR_UNSUPPORTED if this volume cannot have one. NULL: no
     * volume can. */
    int (*limit)(struct volume *volume, uint64_t quota_bytes, struct err *err);

    /* Allows a full volume to be mounted, which needs a few blocks, and ends that. May be NULL. */
    void (*relax)(struct volume *volume, bool is_relaxed);
    int (*destroy)(struct volume *volume); /* also an incomplete volume */
};

extern const struct store_ops store_btrfs, store_zfs, store_dir;
