/* Copies files of this machine into the tree of an import. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct import_root;

/* Zero but for what the caller sets. */
struct import_copy {
    struct import_root *root;
    bool is_public; /* only what everybody may read, as root's own; else all, as it is */
    dev_t skip_dev; /* a directory to leave out, wherever it turns up; 0 for none */
    ino_t skip_ino;

    void *links;         /* files with more than one name, already copied */
    char path[PATH_MAX]; /* of the entry at hand, in the tree */
};

void import_copy_done(struct import_copy *copy);

/* Copies name below dir_fd, with everything in it, to path ("." to "" for a whole root). Links are
 * copied as links, hard links stay linked; other filesystems mounted below are left out. */
int import_copy_tree(struct import_copy *copy, int dir_fd, const char *name, const char *path,
                     struct err *err);
