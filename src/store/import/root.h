/* The tree an import writes. Every path is resolved by the kernel as if the tree were "/", so that
 * no link in it, however made, leads anywhere else. Paths are those that import_path returns. */
#pragma once

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "store/import/inodes.h"

struct err;
struct import_budget;

struct import_root {
    int fd;                       /* borrowed */
    struct import_budget *budget; /* borrowed */
    uid_t owner_shift;            /* every owner is written this much higher */
    bool is_plain;            /* bytes only: owners, modes and attributes are ours, not theirs */
    bool is_layered;          /* remember what is written, for whiteouts to spare */
    struct inode_set written; /* by the layer at hand */

    /* The directory the last entry went to. Its time is put back when the next entry goes
     * elsewhere: thus directories keep the times the archive gave them, without a list of all. */
    int parent_fd;
    char parent[PATH_MAX];
    struct timespec parent_mtime;
};

/* What one entry is to become. */
struct import_node {
    const char *path;
    mode_t mode; /* with the file type */
    int64_t uid, gid;
    struct timespec mtime;
};

#define IMPORT_ROOT_INIT(fd_, budget_)                                                             \
    {                                                                                              \
        .fd = (fd_), .budget = (budget_), .parent_fd = -EBADF                                      \
    }

/* Forgets what was written so far: from now on it is a lower layer. */
void import_root_next_layer(struct import_root *root);
void import_root_done(struct import_root *root);

/* Opens a new regular file, or a new or existing directory, in place of whatever was there.
 * The caller writes the content, then calls import_root_finish. */
int import_root_make(struct import_root *root, const struct import_node *node, int *ret_fd,
                     struct err *err);

/* Gives it the owner, mode and time of the node. Extended attributes come after. */
int import_root_finish(struct import_root *root, const struct import_node *node, int fd,
                       struct err *err);

int import_root_symlink(struct import_root *root, const struct import_node *node,
                        const char *target, struct err *err);
int import_root_fifo(struct import_root *root, const struct import_node *node, struct err *err);

/* Links path to an earlier path of the tree, whose last component is not followed. */
int import_root_hardlink(struct import_root *root, const char *path, const char *target,
                         struct err *err);

/* Sets one attribute that import_keeps_xattr. A filesystem without attributes keeps none. */
int import_root_xattr(struct import_root *root, int fd, const char *name, const void *value,
                      size_t len, struct err *err);

/* Removes what lower layers have at path, or below it where it is a directory that stays. */
int import_root_whiteout(struct import_root *root, const char *path, struct err *err);
int import_root_opaque(struct import_root *root, const char *path, struct err *err);
