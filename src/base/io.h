/* Complete reads and writes on blocking descriptors, and small files. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct buf;
struct msghdr;

/* Reads len bytes or until end of file. Returns the bytes read or -errno. */
ssize_t read_full(int fd, void *data, size_t len);

/* Writes all len bytes. Returns 0 or -errno. */
int write_all(int fd, const void *data, size_t len);

/* Appends a whole file, within the buffer's limit. Returns 0 or -errno. */
int file_read_at(int dir_fd, const char *path, struct buf *content);

/* Writes text to an existing file in one write(2), as /proc, /sys and cgroup files require. */
int file_write_at(int dir_fd, const char *path, const char *text);

/* Creates or replaces a file with text (not atomically). Returns 0 or -errno. */
int file_create_at(int dir_fd, const char *path, mode_t mode, const char *text);

/* Replaces a file (mode 0600) by way of NAME.new, so that a crash leaves either the old or the new
 * one; it is durable on return. Returns 0 or -errno. */
int file_replace_at(int dir_fd, const char *name, const void *data, size_t len);

/* Reads a file that contains one number, such as a cgroup counter. Returns 0 or -errno. */
int file_read_number_at(int dir_fd, const char *path, long long *ret_value);

/* Writes all len bytes at an offset of a file. Returns 0 or -errno. */
int pwrite_all(int fd, const void *data, size_t len, off_t offset);

/* Removes n sent bytes from the front of a message's iovec, which it modifies. */
void iov_advance(struct msghdr *message, size_t n);
