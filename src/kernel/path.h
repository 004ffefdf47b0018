/* The one door for names that come from outside: (directory, name), never a joined string. */
#pragma once

#include <sys/types.h>

/* Opens path below dir_fd; leaving it by "..", an absolute link or a magic link is -EXDEV/-ELOOP.
 */
int open_beneath(int dir_fd, const char *path, int flags, mode_t mode);

/* Opens path as if dir_fd were "/": links and ".." stay inside. Magic links are refused. */
int open_in_root(int dir_fd, const char *path, int flags, mode_t mode);

/* Opens path below dir_fd and refuses every symbolic link on the way and at its end (-ELOOP). */
int open_no_links(int dir_fd, const char *path, int flags, mode_t mode);
