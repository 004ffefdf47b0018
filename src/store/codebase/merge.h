/* Copies a directory, or the upper directory of an overlay, into a tree of a codebase. */
#pragma once

#include <stdbool.h>

struct codebase_changes;
struct err;

struct merge {
    int from_fd;
    int to_fd;
    bool is_layer;           /* from_fd is an upper directory: whiteouts remove, opaque directories
                                replace, owners stay, and links must not leave the codebase */
    bool keeps_links;        /* links of a layer may leave the codebase */
    const char *mount_point; /* of the codebase in the sandbox, for absolute links of a layer */
};

/* Copies files, directories and links, and counts what it does. Follows no link, and neither reads
 * nor makes anything else. ERR_INVALID for a link that leaves the codebase, ERR_EXHAUSTED for more
 * than MERGE_DEPTH_MAX directories in each other. */
enum { MERGE_DEPTH_MAX = 512 };
int merge_run(const struct merge *merge, struct codebase_changes *changes, struct err *err);
