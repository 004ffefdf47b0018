/* The contents of files from one to another. */
#pragma once

#include <sys/types.h>

/* Copies a regular file of size bytes into an empty one: shares the blocks where the filesystem
 * can, else copies what is not a hole. A file that shrinks meanwhile leaves a hole. 0 or -errno. */
int file_copy_content(int from_fd, int to_fd, off_t size);
