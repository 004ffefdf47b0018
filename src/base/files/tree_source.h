/* Reports a directory tree entry by entry, for copies and listings: a directory before its
 * contents, names in byte order. The tree may change meanwhile and is not trusted: everything is
 * reached by descriptors, no link below the top is followed, and only regular files are opened for
 * reading. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_entry;

struct tree_source_ops {
    /* Reports an entry. Returns 0 to continue, or -errno to stop. */
    int (*entry)(void *context, const struct file_entry *entry);

    /* Reports bytes of the last file, if contents are wanted. Returns like entry. */
    int (*data)(void *context, const void *data, size_t len);

    /* Reports a path that cannot be read; errnum is positive. Returns 0 to continue without it, or
     * -errno. */
    int (*trouble)(void *context, const char *path, int errnum);

    /* Returns whether a path is left out, with all below it. NULL: none is. */
    bool (*omits)(void *context, const char *path, bool is_directory);
};

struct tree_source {
    uint32_t depth;     /* levels to descend; 0: all */
    bool wants_data;    /* report contents, and hard links of the same file */
    bool follows_top;   /* follow a link at the top */
    bool skips_top;     /* report only the contents of the top, with paths relative to it */
    const char *after;  /* report only paths after this one; NULL: all */
    const char *rename; /* name of the top in the report; NULL: its own */
};

enum { TREE_SOURCE_DEPTH_MAX = 256 };

/* Walks the tree whose top is `name` below dir_fd. Paths begin with its last component (or with
 * rename), or are relative to it when the top is skipped. Returns 0 or -errno. */
int tree_source_run(int dir_fd, const char *name, const struct tree_source *options,
                    const struct tree_source_ops *ops, void *context);

/* Compares paths in the order of listings: by bytes, but "a/b" precedes "a-b", because a
 * directory's contents follow it. */
int tree_source_compare(const char *one, const char *other);
