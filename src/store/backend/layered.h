/* What the layered backends share: where the trees of a volume are.
 *
 *   volumes/ID/live-N          a live tree: TREE and TREE.work for each tree of the template
 *   volumes/ID/snapshots/NAME  the same, kept
 *   volumes/.*                 being made or removed: the next store_open ends it
 *
 * A volume without a tree is one that was being made when the host went down; it is removed too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;
struct volume;

/* Where a tree is to go. */
struct tree_place {
    struct volume *volume;
    int volume_fd; /* volumes/ID */
    int dir_fd;    /* that, or its snapshots/ */
    const char *name;
    bool is_read_only;
};

/* How one kind of storage makes and removes trees. 0 or -errno; each is whole or not done at all,
 * whenever the host goes down. */
struct tree_ops {
    /* Before the first tree of a volume; may be NULL. */
    int (*prepare)(struct volume *volume, int volume_fd, struct err *err);
    int (*make)(const struct tree_place *place);
    int (*copy)(const struct tree_place *place, int from_fd);
    int (*remove)(struct store *store, int dir_fd, const char *name);

    /* After the last tree of a volume: whether its directory may go now; may be NULL. */
    bool (*forget)(struct store *store, int volume_fd, const char *name);
};

/* Ends what an earlier life had begun. */
int layered_sweep(struct store *store, const struct tree_ops *trees, struct err *err);

/* volumes/ID, or -errno. */
int layered_volume_fd(const struct volume *volume);

/* As in struct store_ops. */
int layered_create(struct volume *volume, const struct tree_ops *trees, struct err *err);
int layered_branch(struct volume *volume, uint32_t generation, struct volume *from,
                   const char *snapshot, const struct tree_ops *trees, struct err *err);
int layered_snapshot(struct volume *volume, const char *name, const struct tree_ops *trees,
                     struct err *err);
int layered_drop(struct volume *volume, const char *snapshot, uint32_t generation,
                 const struct tree_ops *trees);
int layered_list(struct volume *volume,
                 void (*each)(void *context, const char *snapshot, uint32_t generation),
                 void *context);
int layered_open_tree(struct volume *volume, const char *snapshot, char **ret_temporary);
void layered_release(struct volume *volume, char *temporary);
int layered_destroy(struct volume *volume, const struct tree_ops *trees);
