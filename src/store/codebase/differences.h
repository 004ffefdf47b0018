/* The paths that differ between two plain directory trees. */
#pragma once

#include <stddef.h>

#include "base/buf.h"

struct err;

enum { DIFFERENCES_BYTES_MAX = 256 << 20 };

/* Paths relative to the top ("": the top itself), in byte order. As in a diff, a directory is only
 * named if it is empty in the tree that has it, or if its mode or owner differs. */
struct differences {
    struct buf bytes; /* the paths, each with its NUL */
    const char **paths;
    size_t count;
};

#define DIFFERENCES_INIT                                                                           \
    {                                                                                              \
        .bytes = BUF_INIT(DIFFERENCES_BYTES_MAX)                                                   \
    }

/* Lists what differs between two trees, at `path` and below it (absolute as seen from the top;
 * NULL: everywhere). */
int differences_list(struct differences *list, int a_fd, int b_fd, const char *path,
                     struct err *err);
void differences_done(struct differences *list);
