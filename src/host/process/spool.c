// SPDX-License-Identifier: Apache-2.0
#include "host/process/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

void spool_init(struct spool *spool, uint64_t max_bytes)
{
    *spool = (struct spool){ .fd = -EBADF, .half = max_bytes / 2, .tail_from = max_bytes / 2 };
}

void spool_done(struct spool *spool)
{
    spool->fd = fd_close(spool->fd);
}

int spool_create(struct spool *spool, int dir_fd, const char *name)
{
    spool->fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return spool->fd < 0 ? -errno : 0;
}

int spool_reopen(struct spool *spool, int dir_fd, const char *name, uint64_t end, uint64_t ahead)
{
    spool->fd = openat(dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (spool->fd < 0)
        return -errno;
    spool->end = end;
    spool_reserve(spool, (size_t)ahead);
    return 0;
}

/* The ring of a full file may have wrapped any number of times: only its head is certain. */
int spool_recover(struct spool *spool, int dir_fd, const char *name)
{
    struct stat st;

    spool->fd = openat(dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (spool->fd < 0 || fstat(spool->fd, &st) < 0)
        return -errno;
    spool->end = (uint64_t)st.st_size < 2 * spool->half ? (uint64_t)st.st_size : spool->half;
    return 0;
}

void spool_reserve(struct spool *spool, size_t len)
{
    uint64_t end = spool->end + len;

    if (end > 2 * spool->half && spool->tail_from < end - spool->half)
        spool->tail_from = end - spool->half;
}

static uint64_t spool_position(const struct spool *spool, uint64_t offset)
{
    return offset < spool->half ? offset : spool->half + (offset - spool->half) % spool->half;
}

/* Returns how many of len bytes from an offset are contiguous in the file. */
static size_t spool_contiguous(const struct spool *spool, uint64_t offset, size_t len)
{
    uint64_t room = offset < spool->half ? spool->half - offset
                                         : spool->half - (offset - spool->half) % spool->half;

    return room < len ? (size_t)room : len;
}

int spool_write(const struct spool *spool, uint64_t offset, const void *data, size_t len)
{
    const char *from = data;

    while (len > 0) {
        size_t part = spool_contiguous(spool, offset, len);
        int r = pwrite_all(spool->fd, from, part, (off_t)spool_position(spool, offset));

        if (r < 0)
            return r;
        offset += part;
        from += part;
        len -= part;
    }
    return 0;
}

uint64_t spool_head_end(const struct spool *spool)
{
    return spool->end < spool->half ? spool->end : spool->half;
}

uint64_t spool_tail_start(const struct spool *spool)
{
    return spool->end < spool->half ? spool->end : spool->tail_from;
}

bool spool_has(const struct spool *spool, uint64_t offset)
{
    return spool->fd >= 0 && offset < spool->end &&
           (offset < spool->half || offset >= spool->tail_from);
}

ssize_t spool_read(const struct spool *spool, uint64_t offset, uint64_t end, void *into,
                   size_t size)
{
    uint64_t left = end - offset;
    size_t len = spool_contiguous(spool, offset, left < size ? (size_t)left : size);
    ssize_t n;

    do {
        n = pread(spool->fd, into, len, (off_t)spool_position(spool, offset));
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}
