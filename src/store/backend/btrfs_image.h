/* A btrfs filesystem in a file of the state directory, for hosts whose own filesystem creates and
 * deletes files slowly or has no snapshots.
 *
 * It is mounted detached: it is in no mount table, and once the last sandbox and the daemon have
 * ended the kernel releases the mount and the loop device.
 *
 * The blocks of the file are allocated ahead, in steps, and btrfs grows into them. So a disk that
 * others fill up never makes a write of btrfs fail, which would turn it read-only for everybody: a
 * sandbox gets ENOSPC before. Images of earlier versions are sparse and larger than what is
 * allocated; they are shrunk to that first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct image;

/* Creates volumes.img if it is missing and mounts it. ERR_UNSUPPORTED names what this host lacks;
 * ERR_EXHAUSTED means that no loop device is free, ERR_BUSY that an existing image cannot be
 * mounted now. state_fd stays open until the image is closed. */
int image_open(int state_fd, const char *state_dir, struct image **ret, struct err *err);

/* Closes the image, which stays mounted while sandboxes use it. Accepts NULL. */
void image_close(struct image *image);

/* Returns a descriptor of the root, which belongs to the image. */
int image_root(const struct image *image);

/* Allocates the next step if the free space is below one. `spare` is how many bytes the filesystem
 * below can give. Returns 0, or -ENOSPC when more was wanted than that. */
int image_grow(struct image *image, uint64_t spare);

/* Returns whether parts of the image are not allocated, because it could not be shrunk. */
bool image_is_sparse(const struct image *image);
