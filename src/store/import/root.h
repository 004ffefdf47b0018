/* The tree that an import writes to. The kernel resolves every path as if the tree were "/"
 * (RESOLVE_IN_ROOT), so that no symbolic link in it leads outside. Paths are results of
 * import_path. */
#pragma once

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "store/import/inodes.h"

struct err;
struct import_budget;

enum { IMPLIED_BYTES_MAX = 16 << 20 };

#define IMPLIED_BY_ENTRY 'e'
#define IMPLIED_BY_WHITEOUT 'w'

struct import_root {
    int fd;                       /* borrowed */
    struct import_budget *budget; /* borrowed */
    uid_t owner_shift;            /* added to every owner */
    bool is_plain;   /* contents only: owners, modes and attributes of entries are ignored */
    bool is_layered; /* records what is written, so that whiteouts spare it */
    struct inode_set written; /* by the current layer */

    /* A layer of its own: whiteouts become those of overlayfs, and nothing is removed. Where the
     * result would need to know the layers below, needs_below is set and the entry fails. */
    bool is_upper;
    bool needs_below;
    bool is_in_whiteout; /* directories are made for a whiteout */
    struct buf implied;  /* paths of directories that have no entry, each after one of IMPLIED_* */

    /* The directory of the last entry. Its time is restored when an entry goes elsewhere, so
     * directories keep the times that the archive gave them without a list of all directories. */
    int parent_fd;
    char parent[PATH_MAX];
    struct timespec parent_mtime;
};

/* Metadata of one entry to create. */
struct import_node {
    const char *path;
    mode_t mode; /* with the file type */
    int64_t uid, gid;
    struct timespec mtime;
};

#define IMPORT_ROOT_INIT(fd_, budget_)                                                             \
    {                                                                                              \
        .fd = (fd_), .budget = (budget_), .implied = BUF_INIT(IMPLIED_BYTES_MAX),                  \
        .parent_fd = -EBADF                                                                        \
    }

/* Starts the next layer: everything written so far belongs to lower layers. */
void import_root_next_layer(struct import_root *root);
void import_root_done(struct import_root *root);

/* Restores the time of the directory of the last entry. */
void import_root_leave(struct import_root *root);

/* Creates and opens a regular file or a directory, replacing what was there except a directory by
 * a directory. The caller writes the content, then calls import_root_finish. */
int import_root_make(struct import_root *root, const struct import_node *node, int *ret_fd,
                     struct err *err);

/* Sets the owner, mode and time of the node. Extended attributes are set afterwards. */
int import_root_finish(struct import_root *root, const struct import_node *node, int fd,
                       struct err *err);

int import_root_symlink(struct import_root *root, const struct import_node *node,
                        const char *target, struct err *err);
int import_root_fifo(struct import_root *root, const struct import_node *node, struct err *err);

/* Links path to an earlier path of the tree; a symbolic link at its end is not followed. */
int import_root_hardlink(struct import_root *root, const char *path, const char *target,
                         struct err *err);

/* Sets one attribute for which import_keeps_xattr returns true. Ignored on a filesystem without
 * attributes. */
int import_root_xattr(struct import_root *root, int fd, const char *name, const void *value,
                      size_t len, struct err *err);

/* Remove what lower layers have at path, or below it if the directory itself stays (opaque). */
int import_root_whiteout(struct import_root *root, const char *path, struct err *err);
int import_root_opaque(struct import_root *root, const char *path, struct err *err);
