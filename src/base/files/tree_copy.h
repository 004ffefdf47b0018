/* Copies directory trees with untrusted contents. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Zero-initialised except for what the caller sets. */
struct tree_copy {
    int links_fd; /* empty directory beside the copy, on its filesystem, which the caller removes:
                     holds one link per hard-linked file, however many there are */
    uid_t owner_shift; /* subtracted from every owner and group */

    uint64_t bytes, files; /* copied; holes do not count as bytes */
};

/* Copies a directory recursively into the empty directory to_fd: modes, owners, times, hard links,
 * symbolic links, holes, devices and all extended attributes. Shares blocks if the filesystem can.
 * Follows no link; memory grows only with the depth. Returns 0 or -errno, after which the copy is
 * unusable. */
int tree_copy(struct tree_copy *copy, int from_fd, int to_fd);
