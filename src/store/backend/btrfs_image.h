/* A btrfs filesystem in a sparse file of the state directory, for hosts whose own filesystem makes
 * and deletes files slowly or cannot take snapshots.
 *
 * It is mounted detached: no mount table shows it, and when the last sandbox and the daemon are
 * gone the kernel lets go of the mount and of the loop device by itself.
 */
#pragma once

struct err;

/* Makes volumes.img where it is missing and mounts it: a descriptor of its root, or ERR_UNSUPPORTED
 * with what this host lacks, ERR_BUSY when one that is there cannot be mounted now, or another
 * error. */
int image_mount(int state_fd, const char *state_dir, int *ret_fd, struct err *err);
