/* Opens untrusted paths safely: always relative to a directory descriptor, never as a joined
 * string. */
#pragma once

#include <sys/types.h>

/* Opens path below dir_fd. Fails with -EXDEV or -ELOOP if "..", an absolute link or a magic link
 * leaves it. */
int open_beneath(int dir_fd, const char *path, int flags, mode_t mode);

/* Opens path as if dir_fd were "/": links and ".." stay inside. Magic links fail. */
int open_in_root(int dir_fd, const char *path, int flags, mode_t mode);

/* Opens path below dir_fd. Fails with -ELOOP for any symbolic link in it. */
int open_no_links(int dir_fd, const char *path, int flags, mode_t mode);
