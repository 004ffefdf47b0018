/* Walks a directory tree with untrusted contents that may change meanwhile: follows no link, needs
 * neither stack nor descriptors in proportion to the depth, and never leaves the tree, whatever is
 * moved. */
#pragma once

#include <sys/stat.h>

/* Callbacks return 0 to continue or -errno to stop. All except entry may be NULL. */
struct walk_ops {
    /* A file other than a directory, as dir_fd/name was a moment ago. */
    int (*entry)(void *context, int dir_fd, const char *name, const struct stat *st);

    /* A directory, before its contents; name is NULL for the top. */
    int (*enter)(void *context, int fd, const char *name, const struct stat *st);

    /* The same directory, after its contents; st is as on entering. */
    int (*leave)(void *context, int fd, const struct stat *st);
};

enum { WALK_DEPTH_MAX = 65536 };

/* Walks everything below the directory fd, which stays open. Names that vanish are skipped.
 * -ESTALE if a parent directory was moved meanwhile, -ENAMETOOLONG below WALK_DEPTH_MAX. */
int tree_walk(int fd, const struct walk_ops *ops, void *context);
