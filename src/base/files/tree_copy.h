/* Copies directory trees that strangers have filled. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Zero but for what the caller sets. */
struct tree_copy {
    int links_fd;      /* an empty directory beside the copy, on its filesystem; the caller's to
                          remove: there hard links find each other, however many there are */
    uid_t owner_shift; /* taken off every owner and group */

    uint64_t bytes, files; /* copied; holes are no bytes */
};

/* Copies a directory, with everything below it, into the empty directory to_fd: modes, owners,
 * times, hard links, symbolic links, holes, devices and all extended attributes. Blocks are shared
 * where the filesystem can. No link is followed; memory does not grow with what is copied, but with
 * its depth. 0 or -errno; the copy is worth nothing then. */
int tree_copy(struct tree_copy *copy, int from_fd, int to_fd);
