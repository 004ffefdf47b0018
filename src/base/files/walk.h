/* Walks a directory tree that strangers have filled and may be changing: no link is followed, depth
 * costs neither stack nor descriptors, and whatever is moved meanwhile, the walk stays inside. */
#pragma once

#include <sys/stat.h>

/* Each returns 0 to go on or -errno to stop with it. Any but entry may be NULL. */
struct walk_ops {
    /* Something that is no directory, as dir_fd/name was a moment ago. */
    int (*entry)(void *context, int dir_fd, const char *name, const struct stat *st);

    /* A directory, before what is in it; name is NULL for the top. */
    int (*enter)(void *context, int fd, const char *name, const struct stat *st);

    /* The same directory, after that; st is as it was on entering. */
    int (*leave)(void *context, int fd, const struct stat *st);
};

enum { WALK_DEPTH_MAX = 65536 };

/* Walks everything below the directory fd, which is left open. Names that vanish are passed over.
 * -ESTALE when a directory on the way back was moved, -ENAMETOOLONG below WALK_DEPTH_MAX. */
int tree_walk(int fd, const struct walk_ops *ops, void *context);
