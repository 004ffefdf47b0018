/* The disk below the state directory: what others leave of it.
 *
 * A thread allocates the image ahead, and keeps a ballast file. When others have filled the disk,
 * the ballast is removed, so that the registry and the logs can still be written: sandboxes can be
 * removed and used. It is made again when there is space. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct disk;
struct err;
struct image;

struct disk_space {
    uint64_t total; /* bytes */
    uint64_t available;
    uint64_t spare;        /* of these, what the image may still take */
    uint64_t inodes;       /* free ones */
    uint64_t inodes_total; /* 0: not limited */
    bool is_low;           /* less than half of what the image leaves to the host */
    bool is_full;          /* nothing is left but the ballast, or that had to be removed */
};

/* Starts the thread; image may be NULL. Both state_fd and image stay open until the disk is closed.
 */
int disk_open(int state_fd, struct image *image, struct disk **ret, struct err *err);

/* Stops the thread; the ballast stays. Accepts NULL. */
void disk_close(struct disk *disk);

/* Reads the space now. */
int disk_read(const struct disk *disk, struct disk_space *ret);

/* The file in the state directory that is removed when the disk is full. */
#define BALLAST_FILE "holt.ballast"
