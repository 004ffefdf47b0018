// SPDX-License-Identifier: Apache-2.0
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

ssize_t read_full(int fd, void *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, (char *)data + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int write_all(int fd, const void *data, size_t len)
{
    const char *next = data;

    while (len > 0) {
        ssize_t n = write(fd, next, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        next += n;
        len -= (size_t)n;
    }
    return 0;
}

int file_read_at(int dir_fd, const char *path, struct buf *content)
{
    cleanup_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    char chunk[4096];
    ssize_t n;
    int r;

    if (fd < 0)
        return -errno;
    while ((n = read_full(fd, chunk, sizeof(chunk))) > 0) {
        r = buf_add(content, chunk, (size_t)n);
        if (r < 0)
            return r;
    }
    return n < 0 ? (int)n : buf_reserve(content, 0);
}

int file_write_at(int dir_fd, const char *path, const char *text)
{
    cleanup_close int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    return write_all(fd, text, strlen(text));
}

int file_create_at(int dir_fd, const char *path, mode_t mode, const char *text)
{
    cleanup_close int fd =
        openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);

    if (fd < 0)
        return -errno;
    return write_all(fd, text, strlen(text));
}

int file_replace_at(int dir_fd, const char *name, const void *data, size_t len)
{
    cleanup_close int fd = -EBADF;
    char new_name[NAME_MAX + 1];
    int r = snprintf(new_name, sizeof(new_name), "%s.new", name);

    if (r < 0 || (size_t)r >= sizeof(new_name))
        return -ENAMETOOLONG;
    fd = openat(dir_fd, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = write_all(fd, data, len);
    if (r < 0)
        return r;
    if (fsync(fd) < 0 || renameat(dir_fd, new_name, dir_fd, name) < 0 || fsync(dir_fd) < 0)
        return -errno;
    return 0;
}

int file_read_number_at(int dir_fd, const char *path, long long *ret_value)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(64);
    char *end;
    long long value;
    int r = file_read_at(dir_fd, path, &text);

    if (r < 0)
        return r;
    errno = 0;
    value = strtoll(text.data, &end, 10);
    if (errno || end == text.data)
        return -EINVAL;
    *ret_value = value;
    return 0;
}

int pwrite_all(int fd, const void *data, size_t len, off_t offset)
{
    const char *next = data;

    while (len > 0) {
        ssize_t n = pwrite(fd, next, len, offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        next += n;
        len -= (size_t)n;
        offset += n;
    }
    return 0;
}

void iov_advance(struct msghdr *message, size_t n)
{
    while (message->msg_iovlen > 0 && n >= message->msg_iov->iov_len) {
        n -= message->msg_iov->iov_len;
        message->msg_iov++;
        message->msg_iovlen--;
    }
    if (message->msg_iovlen > 0) {
        message->msg_iov->iov_base = (char *)message->msg_iov->iov_base + n;
        message->msg_iov->iov_len -= n;
    }
}
