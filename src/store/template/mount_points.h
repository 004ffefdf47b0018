/* The mount points of the files of /etc that Holt provides in every sandbox (guest/identity.h): an
 * empty layer below the root of a template that lacks one of them, so that none has to be created
 * in a volume, where it would be a change. */
#pragma once

#include <stdbool.h>

struct err;
struct template_tree;

/* Opens STATE/mount-points, which is created if it is missing. */
int mount_points_open(int state_fd, int *ret_fd, struct err *err);

/* Returns whether a root lacks one of the mount points. */
bool mount_points_are_missing(const struct template_tree *root);
