// SPDX-License-Identifier: Apache-2.0
#include "host/process/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 1024 };

void window_init(struct window *window, size_t max, uint64_t offset)
{
    *window = (struct window){ .max = max, .start = offset, .end = offset };
}

void window_done(struct window *window)
{
    free(window->data);
    window->data = NULL;
}

size_t window_copy(const struct window *window, uint64_t offset, void *into, size_t size)
{
    uint64_t left = window->end - offset;
    size_t len = left < size ? (size_t)left : size, at, first;

    if (len == 0)
        return 0;
    at = (size_t)(offset % window->capacity);
    first = window->capacity - at < len ? window->capacity - at : len;
    memcpy(into, window->data + at, first);
    memcpy((char *)into + first, window->data, len - first);
    return len;
}

/* Positions in the ring depend on the capacity, so all bytes are copied. */
static int window_resize(struct window *window, size_t capacity)
{
    uint64_t offset = window->start;
    char *data = malloc(capacity);

    if (!data)
        return -ENOMEM;
    while (offset < window->end) {
        size_t at = (size_t)(offset % capacity);

        offset += window_copy(window, offset, data + at, capacity - at);
    }
    free(window->data);
    window->data = data;
    window->capacity = capacity;
    return 0;
}

static int window_make_room(struct window *window, size_t len)
{
    size_t wanted = window->capacity ? window->capacity : CAPACITY_MIN;
    uint64_t needed = window->end - window->start + len;

    while (wanted < needed && wanted < window->max)
        wanted *= 2;
    if (wanted > window->max)
        wanted = window->max;
    return wanted > window->capacity ? window_resize(window, wanted) : 0;
}

int window_add(struct window *window, const void *data, size_t len)
{
    const char *from = data;
    int r = window_make_room(window, len);

    if (r < 0)
        return r;
    while (len > 0) {
        size_t at = (size_t)(window->end % window->capacity);
        size_t part = window->capacity - at < len ? window->capacity - at : len;

        memcpy(window->data + at, from, part);
        window->end += part;
        from += part;
        len -= part;
    }
    if (window->end - window->start > window->capacity)
        window->start = window->end - window->capacity;
    return 0;
}

bool window_has_room(const struct window *window, size_t len)
{
    return window->end - window->start + len <= window->capacity;
}

void window_forget(struct window *window, uint64_t offset)
{
    if (window->start < offset)
        window->start = offset < window->end ? offset : window->end;
}

void window_trim(struct window *window)
{
    size_t len = (size_t)(window->end - window->start);

    if (len == 0)
        window_drop(window);
    else if (len < window->capacity)
        (void)window_resize(window, len);
}

void window_drop(struct window *window)
{
    window_done(window);
    window->capacity = 0;
    window->start = window->end;
}
