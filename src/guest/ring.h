/* A bounded window [acked, produced) of a byte stream: output that the daemon has not acknowledged
 * yet, or input that the process has not read yet. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
    char *data; /* mapped when the first byte arrives */
    size_t capacity;
    uint64_t acked;    /* offset of the oldest buffered byte */
    uint64_t produced; /* offset after the newest byte */
};

void ring_init(struct ring *ring, size_t capacity);
void ring_done(struct ring *ring);

bool ring_is_full(const struct ring *ring);

/* Reads from fd as much as fits. Returns the bytes read, 0 at end of file, or -errno. */
long ring_fill(struct ring *ring, int fd);

/* Appends bytes. Returns 0, -ENOBUFS if they do not fit, or -errno. */
int ring_put(struct ring *ring, const char *data, size_t len);

/* Sends buffered bytes to the socket and drops them. Returns the bytes sent, 0 if the ring is
 * empty, or -errno. */
long ring_drain(struct ring *ring, int fd);

/* Returns the length of the contiguous run of bytes at offset, 0 if there is none. */
size_t ring_peek(const struct ring *ring, uint64_t offset, const char **ret_data);

/* Drops all bytes below offset. Returns false if the offset is outside [acked, produced]. */
bool ring_ack(struct ring *ring, uint64_t offset);
