/* A growable byte buffer with a mandatory limit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data; /* NUL-terminated unless NULL */
    size_t len;
    size_t cap;
    size_t max; /* limit of len */
};

#define BUF_INIT(limit)                                                                            \
    {                                                                                              \
        .max = (limit)                                                                             \
    }

void buf_done(struct buf *buf);

/* Clears the content and keeps the memory. */
void buf_clear(struct buf *buf);

/* Makes room for `more` bytes after the content. Returns 0, -ENOBUFS beyond the limit, or -ENOMEM.
 */
int buf_reserve(struct buf *buf, size_t more);

/* Append everything or nothing. Return 0, -ENOBUFS or -ENOMEM. */
int buf_add(struct buf *buf, const void *data, size_t len);
int buf_add_str(struct buf *buf, const char *text);
int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Drops the first len bytes. */
void buf_consume(struct buf *buf, size_t len);
