/* Copies files of this machine into the tree of an import. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct import_root;

/* Zero-initialised except for what the caller sets. */
struct import_copy {
    struct import_root *root;
    bool is_public; /* copies only world-readable files, owned by root; otherwise all files with
                       their owners */
    dev_t skip_dev; /* directory to skip wherever it appears; 0: none */
    ino_t skip_ino;

    void *links;         /* files with several hard links that are already copied */
    char path[PATH_MAX]; /* of the current entry, in the tree */
};

void import_copy_done(struct import_copy *copy);

/* Copies name below dir_fd recursively to path ("." to "" for a whole root). Symbolic links are
 * copied as links and hard links stay linked; filesystems mounted below are skipped. */
int import_copy_tree(struct import_copy *copy, int dir_fd, const char *name, const char *path,
                     struct err *err);
