/* The latest bytes of a stream, in memory: a ring buffer that grows up to a limit and then
 * overwrites the oldest bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct window {
    char *data;
    size_t capacity;
    size_t max;
    uint64_t start, end; /* holds the offsets [start, end) */
};

/* Initializes an empty window whose first byte will have this offset. */
void window_init(struct window *window, size_t max, uint64_t offset);
void window_done(struct window *window);

/* Appends bytes. 0, or -ENOMEM with nothing changed. */
int window_add(struct window *window, const void *data, size_t len);

/* Returns whether len more bytes fit without growing or overwriting. */
bool window_has_room(const struct window *window, size_t len);

/* Drops the bytes below an offset. */
void window_forget(struct window *window, uint64_t offset);

/* Copies up to size bytes from an offset in [start, end], and returns their number. */
size_t window_copy(const struct window *window, uint64_t offset, void *into, size_t size);

/* Frees unused memory, for a stream that has ended. */
void window_trim(struct window *window);

/* Drops all bytes and their memory; the next byte has the offset `end`. */
void window_drop(struct window *window);
