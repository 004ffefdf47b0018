/* Copies the contents of files. */
#pragma once

#include <sys/types.h>

/* Copies a regular file of size bytes into an empty one. Shares the blocks (reflink) if the
 * filesystem can, otherwise copies the data and keeps holes. A file that shrinks meanwhile leaves
 * a hole. Returns 0 or -errno. */
int file_copy_content(int from_fd, int to_fd, off_t size);

/* Overwrites a regular file that cannot be replaced by another, because it is a mount point.
 * Returns 0 or -errno. */
int file_overwrite_at(int from_fd, int dir_fd, const char *name);
