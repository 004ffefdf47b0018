/* Shared by the layered backends: the layout of a volume's trees.
 *
 *   volumes/ID/live-N          a live tree: TREE and TREE.work for each tree of the template
 *   volumes/ID/snapshots/NAME  a snapshot, with the same contents
 *   volumes/.*                 being created or removed: the next store_open removes it
 *
 * A volume without a tree was being created when the host crashed; it is removed too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;
struct volume;

/* Where a new tree is created. */
struct tree_target {
    struct volume *volume;
    int volume_fd; /* volumes/ID */
    int dir_fd;    /* volume_fd, or its snapshots/ */
    const char *name;
    bool is_read_only;
};

/* How one kind of storage creates and removes trees. Each returns 0 or -errno and is atomic across
 * a crash of the host. */
struct tree_ops {
    /* Called before the first tree of a volume; may be NULL. */
    int (*prepare)(struct volume *volume, int volume_fd, struct err *err);
    int (*make)(const struct tree_target *target);
    int (*copy)(const struct tree_target *target, int from_fd);
    int (*remove)(struct store *store, int dir_fd, const char *name);

    /* Called after the last tree of a volume. Returns whether its directory may be removed now;
     * may be NULL. */
    bool (*release_volume)(struct store *store, int volume_fd, const char *name);
};

/* Removes incomplete volumes of an earlier run. */
int layered_sweep(struct store *store, const struct tree_ops *trees, struct err *err);

/* Opens volumes/ID. Returns a descriptor or -errno. */
int layered_volume_fd(const struct volume *volume);

/* Implement the calls of struct store_ops. */
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
int layered_each(struct store *store, int (*each)(void *context, const char *id), void *context);
int layered_open_tree(struct volume *volume, const char *snapshot, char **ret_temporary);
void layered_release(struct volume *volume, char *temporary);
int layered_destroy(struct volume *volume, const struct tree_ops *trees);
