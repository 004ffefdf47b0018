/* Measures the storage that trees use by walking them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/import/inodes.h"

/* Zero-initialised except for is_shared. */
struct usage {
    /* The trees are snapshots of each other: an unchanged file in several of them counts once. */
    bool is_shared;

    uint64_t bytes;
    struct inode_set seen;
};

/* Adds everything below a directory; a file with several hard links counts once. Returns 0 or
 * -errno. */
int usage_add(struct usage *usage, int fd);

void usage_done(struct usage *usage);
