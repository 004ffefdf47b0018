/* A btrfs filesystem in a sparse file of the state directory, for hosts whose own filesystem
 * creates and deletes files slowly or has no snapshots.
 *
 * It is mounted detached: it is in no mount table, and once the last sandbox and the daemon have
 * ended the kernel releases the mount and the loop device. */
#pragma once

struct err;

/* Creates volumes.img if it is missing, mounts it and returns a descriptor of its root.
 * ERR_UNSUPPORTED names what this host lacks; ERR_BUSY means that an existing image cannot be
 * mounted now. */
int image_mount(int state_fd, const char *state_dir, int *ret_fd, struct err *err);
