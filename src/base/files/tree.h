/* Creates and removes directory trees on the host. */
#pragma once

#include <sys/types.h>

/* Creates every missing directory of an absolute path. Returns 0 or -errno. */
int tree_make(const char *path, mode_t mode);

/* Removes name below dir_fd recursively, following no link; a missing name is not an error.
 * Returns 0 or the first -errno. */
int tree_remove_at(int dir_fd, const char *name);

/* Does the same for at most this many entries (at least 1). Returns -EAGAIN when there are more, to
 * be called again. */
int tree_remove_some_at(int dir_fd, const char *name, unsigned entries);
