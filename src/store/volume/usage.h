/* What trees take in storage, by walking them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/import/inodes.h"

/* Zero but for what the caller sets. */
struct usage {
    /* The trees are snapshots of each other: a file that is in several, unchanged, counts once. */
    bool is_shared;

    uint64_t bytes;
    struct inode_set seen;
};

/* Adds all that is below a directory; a file with several names counts once. 0 or -errno. */
int usage_add(struct usage *usage, int fd);

void usage_done(struct usage *usage);
