// SPDX-License-Identifier: Apache-2.0
#include "guest/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

void ring_init(struct ring *ring, size_t capacity)
{
    *ring = (struct ring){ .capacity = capacity };
}

void ring_done(struct ring *ring)
{
    if (ring->data)
        (void)munmap(ring->data, ring->capacity);
    ring->data = NULL;
}

bool ring_is_full(const struct ring *ring)
{
    return ring->produced - ring->acked == ring->capacity;
}

/* Most processes write little or nothing, and a mapping costs only the pages that are touched. */
static int ring_map(struct ring *ring)
{
    void *data;

    if (ring->data)
        return 0;
    data = mmap(NULL, ring->capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return -ENOMEM;
    ring->data = data;
    return 0;
}

/* Describes the len bytes from offset on as one or two parts of the buffer. */
static int ring_parts(const struct ring *ring, uint64_t offset, size_t len, struct iovec parts[2])
{
    size_t start = offset % ring->capacity;
    size_t first = len < ring->capacity - start ? len : ring->capacity - start;

    parts[0] = (struct iovec){ .iov_base = ring->data + start, .iov_len = first };
    parts[1] = (struct iovec){ .iov_base = ring->data, .iov_len = len - first };
    return len > first ? 2 : 1;
}

long ring_fill(struct ring *ring, int fd)
{
    size_t room = ring->capacity - (size_t)(ring->produced - ring->acked);
    struct iovec parts[2];
    int count, r = ring_map(ring);
    ssize_t n;

    if (r < 0)
        return r;
    if (room == 0)
        return -ENOBUFS;
    count = ring_parts(ring, ring->produced, room, parts);
    do {
        n = readv(fd, parts, count);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    ring->produced += (uint64_t)n;
    return n;
}

int ring_put(struct ring *ring, const char *data, size_t len)
{
    struct iovec parts[2];
    int r = ring_map(ring);

    if (r < 0)
        return r;
    if (len > ring->capacity - (size_t)(ring->produced - ring->acked))
        return -ENOBUFS;
    (void)ring_parts(ring, ring->produced, len, parts);
    memcpy(parts[0].iov_base, data, parts[0].iov_len);
    memcpy(parts[1].iov_base, data + parts[0].iov_len, parts[1].iov_len);
    ring->produced += len;
    return 0;
}

long ring_drain(struct ring *ring, int fd)
{
    size_t len = (size_t)(ring->produced - ring->acked);
    struct iovec parts[2];
    struct msghdr message = { .msg_iov = parts };
    ssize_t n;

    if (len == 0)
        return 0;
    message.msg_iovlen = ring_parts(ring, ring->acked, len, parts);
    do {
        n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    ring->acked += (uint64_t)n;
    return n;
}

size_t ring_peek(const struct ring *ring, uint64_t offset, const char **ret_data)
{
    size_t start = offset % ring->capacity;
    size_t len = (size_t)(ring->produced - offset);

    if (offset < ring->acked || offset >= ring->produced)
        return 0;
    *ret_data = ring->data + start;
    return len < ring->capacity - start ? len : ring->capacity - start;
}

bool ring_ack(struct ring *ring, uint64_t offset)
{
    if (offset < ring->acked || offset > ring->produced)
        return false;
    ring->acked = offset;
    return true;
}
