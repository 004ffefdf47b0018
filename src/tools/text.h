/* Text in the form in which a model reads it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum {
    LINE_BYTES_MAX = 2000, /* of a line that are shown */
    BINARY_LOOK = 8192,    /* bytes that are searched for a NUL */
    NUMBER_BYTES_MAX = 24,
};

/* Returns whether a file with this beginning is binary: it has a NUL. */
bool text_is_binary(const char *data, size_t len);

/* Returns the MIME type of an image with this beginning, or NULL. */
const char *text_image_type(const char *data, size_t len);

/* Appends a line number, as "    12<tab>". Returns 0 or -errno. */
int text_add_number(struct buf *out, uint64_t number);

/* Appends a line with its number and a newline, cut after LINE_BYTES_MAX. of_bytes is the length of
 * the line, of which data may be only the beginning. Returns 0 or -errno. */
int text_add_line(struct buf *out, uint64_t number, const char *data, size_t len,
                  uint64_t of_bytes);

/* Appends a name, with unprintable bytes as \n, \t or \xNN. Returns 0 or -errno. */
int text_add_name(struct buf *out, const char *name);

/* Returns "1 line" or "2 lines", in one of four static buffers that are reused in turn. */
const char *text_count(uint64_t count, const char *noun);
