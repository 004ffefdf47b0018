/* Tells of a directory tree entry by entry, as copies and listings want it: a directory before what
 * is in it, names in the order of their bytes. Strangers may be changing the tree: everything is
 * reached by descriptors, no link below the top is followed, and nothing but a regular file is
 * opened for reading. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_entry;

struct tree_source_ops {
    /* Something is there, or was a moment ago. 0 to go on, -errno to stop with it. */
    int (*entry)(void *context, const struct file_entry *entry);

    /* Bytes of the file that was told of last, where contents are wanted. As above. */
    int (*data)(void *context, const void *data, size_t len);

    /* Something cannot be read: -errnum says why. 0 to go on without it, or -errno. */
    int (*trouble)(void *context, const char *path, int errnum);
};

struct tree_source {
    uint32_t depth;     /* how deep to go; 0: to the bottom */
    bool wants_data;    /* contents, and which names are one file */
    bool follows_top;   /* a link at the top stands for what it points to */
    bool skips_top;     /* only what is in it is told of, by paths from there */
    const char *after;  /* NULL: all; else only what comes behind this path */
    const char *rename; /* what the top is called; NULL: as it is */
};

enum { TREE_SOURCE_DEPTH_MAX = 256 };

/* The top is `name` below dir_fd. Paths begin with its last part (or what it is renamed to), or
 * with nothing when the top is skipped. 0 or -errno. */
int tree_source_run(int dir_fd, const char *name, const struct tree_source *options,
                    const struct tree_source_ops *ops, void *context);

/* How listings are ordered: by bytes, but "a/b" comes before "a-b", as a directory's contents
 * follow it. */
int tree_source_compare(const char *one, const char *other);
