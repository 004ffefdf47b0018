// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/xalloc.h"

enum { CHUNK_BYTES = 256 << 10 };

struct range {
    int from_fd, to_fd;
    off_t at, end;
    char *chunk; /* allocated if the kernel cannot copy itself */
};

/* Copies one chunk in user space. Returns the bytes copied, 0 at end of file, or -errno. */
static ssize_t chunk_copy(struct range *range)
{
    size_t want =
        range->end - range->at < CHUNK_BYTES ? (size_t)(range->end - range->at) : CHUNK_BYTES;
    ssize_t n;
    int r;

    if (!range->chunk)
        range->chunk = xcalloc(1, CHUNK_BYTES);
    n = pread(range->from_fd, range->chunk, want, range->at);
    if (n <= 0)
        return n < 0 ? -errno : 0;
    r = pwrite_all(range->to_fd, range->chunk, (size_t)n, range->at);
    return r < 0 ? r : n;
}

/* Copies one chunk with copy_file_range, which does not work between all filesystems. */
static ssize_t range_step(struct range *range)
{
    off_t from = range->at, to = range->at;
    ssize_t n;

    if (range->chunk)
        return chunk_copy(range);
    n = copy_file_range(range->from_fd, &from, range->to_fd, &to, (size_t)(range->end - range->at),
                        0);
    if (n > 0)
        return n;
    /* Some filesystems return 0 instead of an error. */
    if (n == 0 || errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
        return chunk_copy(range);
    return -errno;
}

static int range_copy(struct range *range)
{
    while (range->at < range->end) {
        ssize_t n = range_step(range);

        if (n == -EINTR)
            continue;
        if (n <= 0)
            return (int)n;
        range->at += n;
    }
    return 0;
}

int file_copy_content(int from_fd, int to_fd, off_t size)
{
    struct range range = { .from_fd = from_fd, .to_fd = to_fd };
    off_t data = 0;
    int r = 0;

    if (ioctl(to_fd, FICLONE, from_fd) == 0)
        return ftruncate(to_fd, size) < 0 ? -errno : 0;
    while (r == 0 && data < size && (data = lseek(from_fd, data, SEEK_DATA)) >= 0 && data < size) {
        range.at = data;
        range.end = lseek(from_fd, data, SEEK_HOLE);
        if (range.end < 0 || range.end > size)
            range.end = size;
        data = range.end;
        r = range_copy(&range);
    }
    if (data < 0 && errno != ENXIO) /* ENXIO: only a hole is left */
        r = -errno;
    free(range.chunk);
    if (r == 0 && ftruncate(to_fd, size) < 0)
        r = -errno;
    return r;
}

int file_overwrite_at(int from_fd, int dir_fd, const char *name)
{
    cleanup_close int fd =
        openat(dir_fd, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat from, to;

    if (fd < 0 || fstat(from_fd, &from) < 0 || fstat(fd, &to) < 0)
        return -errno;
    if (!S_ISREG(to.st_mode))
        return -EBUSY;
    if (ftruncate(fd, 0) < 0)
        return -errno;
    return file_copy_content(from_fd, fd, from.st_size);
}
