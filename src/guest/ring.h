/* A bounded window [acked, produced) of a byte stream: output that nobody has acknowledged yet, or
 * input that nobody has taken. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
    char *data; /* mapped at the first byte */
    size_t capacity;
    uint64_t acked;    /* offset of the oldest byte still kept */
    uint64_t produced; /* offset behind the newest */
};

void ring_init(struct ring *ring, size_t capacity);
void ring_done(struct ring *ring);

bool ring_is_full(const struct ring *ring);

/* Reads what the descriptor has and the ring can take: bytes, 0 at end of file, or -errno. */
long ring_fill(struct ring *ring, int fd);

/* Adds these bytes: 0, -ENOBUFS when they do not fit, or -errno. */
int ring_put(struct ring *ring, const char *data, size_t len);

/* Writes what is kept to the socket and lets go of it: bytes, 0 when there are none, or -errno. */
long ring_drain(struct ring *ring, int fd);

/* The bytes from offset on that lie in one piece: how many (0: none). */
size_t ring_peek(const struct ring *ring, uint64_t offset, const char **ret_data);

/* Lets go of everything below offset. False if that offset was never produced, or is gone already.
 */
bool ring_ack(struct ring *ring, uint64_t offset);
