/* What a storage backend is: one file, store_<name>.c, exporting one const table. Calls are made
 * only through volume.c and store.c, which have checked the arguments; a backend may assume that.
 *
 * Two kinds. Layered (btrfs, dir): a tree is a directory with the upper and work directories of
 * each tree of the template, which volume.c puts over the template's own. Whole (zfs): a tree is
 * the root itself, cloned from the template's; the template's other trees are shown read-only.
 */
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
    bool is_atomic; /* a snapshot is of one moment, whatever is written meanwhile */

    /* Fills store->backend, storage, has_quota, shared_uid and, for layered kinds, volumes_fd.
     * ERR_UNSUPPORTED when this host cannot; leaves nothing behind on failure. */
    int (*open)(struct store *store, const struct store_options *options, struct err *err);
    void (*close)(struct store *store);
    int (*space)(struct store *store, struct store_space *ret, struct err *err);

    /* See store_state; NULL: ONLINE whenever space can be asked for. */
    int (*state)(struct store *store, char ret[static STORE_STATE_SIZE], struct err *err);

    /* Makes the volume's place, with its quota, and its live tree of generation 1: empty, or for a
     * whole kind a clone of the template. */
    int (*create)(struct volume *volume, struct err *err);

    /* Makes the live tree `generation` of volume from a tree of `from`, which may be another
     * volume: its snapshot, or (NULL) its live tree as it is now. Makes the volume's place first
     * where it is missing. */
    int (*branch)(struct volume *volume, uint32_t generation, struct volume *from,
                  const char *snapshot, struct err *err);
    int (*snapshot)(struct volume *volume, const char *name, struct err *err);

    /* Removes one tree: a snapshot, or (NULL) the live tree `generation`. 0 or -errno; -ENOENT when
     * it is not there. */
    int (*drop)(struct volume *volume, const char *snapshot, uint32_t generation);

    /* Calls each for every tree there is: a snapshot's name, or NULL and a generation. -ENOENT when
     * there is no such volume. */
    int (*list)(struct volume *volume,
                void (*each)(void *context, const char *snapshot, uint32_t generation),
                void *context);

    /* A descriptor of a tree's directory: a snapshot's, or (NULL) the live one's. What had to be
     * made for that is named by *ret_temporary (NULL: nothing) and undone by release. */
    int (*open_tree)(struct volume *volume, const char *snapshot, char **ret_temporary);
    void (*release)(struct volume *volume, char *temporary);

    int (*usage)(struct volume *volume, uint64_t *ret_bytes);

    /* The same right behind a snapshot, when all has been written out; 0 bytes where that would
     * take a walk. NULL: as usage. */
    int (*usage_settled)(struct volume *volume, uint64_t *ret_bytes);

    /* Lets a volume that is full be mounted, which takes a few blocks, and ends that again. May be
     * NULL. */
    void (*relax)(struct volume *volume, bool is_relaxed);
    int (*destroy)(struct volume *volume); /* also of a half-made volume */
};

extern const struct store_ops store_btrfs, store_zfs, store_dir;
