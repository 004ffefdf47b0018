/* Whole reads and writes on blocking descriptors; small files; descriptors over a unix socket. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct buf;
struct msghdr;

/* Reads until len bytes or end of file: bytes read, or -errno. */
ssize_t read_full(int fd, void *data, size_t len);

/* Writes all len bytes: 0 or -errno. */
int write_all(int fd, const void *data, size_t len);

/* Appends the whole of a file, as far as the buffer's limit allows: 0 or -errno. */
int file_read_at(int dir_fd, const char *path, struct buf *content);

/* Writes text to an existing file in one write(2), as /proc, /sys and cgroup files want it. */
int file_write_at(int dir_fd, const char *path, const char *text);

/* Creates or replaces a file with text (not atomically): 0 or -errno. */
int file_create_at(int dir_fd, const char *path, mode_t mode, const char *text);

/* A number that stands alone in a file, as cgroup statistics do: 0 or -errno. */
int file_read_number_at(int dir_fd, const char *path, long long *ret_value);

/* Writes everything at an offset of a file: 0 or -errno. */
int pwrite_all(int fd, const void *data, size_t len, off_t offset);

/* Takes n bytes that were sent off the front of a message's parts, which are changed. */
void iov_advance(struct msghdr *message, size_t n);
