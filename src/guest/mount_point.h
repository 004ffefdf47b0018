/* Mount points inside a root whose files the sandbox may have changed. */
#pragma once

#include <stdbool.h>

struct err;

/* Opens the directory at a path of the root, creating missing components. Symbolic links resolve
 * as for processes of the sandbox and never leave the root. */
int mount_point_open(int root_fd, const char *path, int *ret_fd, struct err *err);

/* Returns whether a mount point is dir_fd or below it. The root itself is within nothing but the
 * root. Returns true if that cannot be determined. */
bool mount_point_is_within(int mount_point_fd, int dir_fd, int root_fd);
