/* Directory trees on the host side. */
#pragma once

#include <sys/types.h>

/* Creates every missing directory of an absolute path: 0 or -errno. */
int tree_make(const char *path, mode_t mode);

/* Removes name below dir_fd and everything in it, following no link; a missing name is fine. 0 or
 * the first -errno. */
int tree_remove_at(int dir_fd, const char *name);
