/* The latest bytes of a stream, in memory: a ring that grows up to a limit and then forgets the
 * oldest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct window {
    char *data;
    size_t capacity;
    size_t max;
    uint64_t start, end; /* offsets: it holds [start, end) */
};

/* An empty one whose first byte will have this offset. */
void window_init(struct window *window, size_t max, uint64_t offset);
void window_done(struct window *window);

/* Appends; 0 or -ENOMEM, with nothing changed. */
int window_add(struct window *window, const void *data, size_t len);

/* Whether so many bytes more fit without more memory, and without forgetting. */
bool window_has_room(const struct window *window, size_t len);

/* Forgets what lies below an offset. */
void window_forget(struct window *window, uint64_t offset);

/* Copies what there is from an offset in [start, end] on: how many bytes, at most size. */
size_t window_copy(const struct window *window, uint64_t offset, void *into, size_t size);

/* Gives back memory that it does not use, for a stream that has ended. */
void window_trim(struct window *window);

/* Forgets everything, and takes what comes from `end` on. */
void window_drop(struct window *window);
