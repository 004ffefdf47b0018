/* Places in a root that the sandbox has written to, for something to be mounted on. */
#pragma once

#include <stdbool.h>

struct err;

/* The directory at a path of the root, made with all those above it where they are missing. Links
 * are followed as processes of the sandbox would, and never lead out. */
int place_open(int root_fd, const char *path, int *ret_fd, struct err *err);

/* Whether a place is this directory or below it; both are below the root, which is within itself
 * alone. What cannot be found out counts as yes. */
bool place_is_within(int place_fd, int dir_fd, int root_fd);
