/* Small files that are replaced as a whole. */
#pragma once

#include <stddef.h>

/* Replaces a file of its owner's alone, by way of NAME.new, so that a crash leaves the old one or
 * the new one: 0 or -errno. It is on disk when this returns. */
int file_replace_at(int dir_fd, const char *name, const void *data, size_t len);
