/* Lines as a model sees them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum {
    LINE_BYTES_MAX = 2000, /* shown of a line */
    BINARY_LOOK = 8192,    /* bytes that are looked at to find out whether it is text */
    NUMBER_BYTES_MAX = 24,
};

/* Whether a file that begins so is no text. */
bool text_is_binary(const char *data, size_t len);

/* "image/png", ..., or NULL: what such a file is. */
const char *text_image_type(const char *data, size_t len);

/* "    12<tab>": 0 or -errno. */
int text_add_number(struct buf *out, uint64_t number);

/* A line with its number, without what ends it, and cut where it is too long: 0 or -errno. of_bytes
 * is how long the line is, of which data may only be the first part. */
int text_add_line(struct buf *out, uint64_t number, const char *data, size_t len,
                  uint64_t of_bytes);

/* A name, with what is not printable escaped as \n, \t or \xNN: 0 or -errno. */
int text_add_name(struct buf *out, const char *name);

/* "1 line", "2 lines": valid until the next but three. */
const char *text_count(uint64_t count, const char *noun);
