/* UTF-8 from arbitrary bytes, whole or in pieces. */
#pragma once

#include <stddef.h>

struct buf;

/* Returns the length (1 to 4) of the character at the start of data, 0 if it is invalid. */
size_t utf8_char(const char *data, size_t len);

/* Returns the length of the prefix that is valid and contains no NUL. */
size_t utf8_valid(const char *data, size_t len);

/* Returns the largest length, up to max, that ends at a character boundary. */
size_t utf8_cut(const char *data, size_t len, size_t max);

/* Appends the bytes, replacing each invalid one and NUL by U+FFFD. Returns the number of
 * replacements, -ENOBUFS or -ENOMEM. */
long utf8_add(struct buf *out, const char *data, size_t len);

/* The bytes of an incomplete character. Zero-initialised. */
struct utf8_cleaner {
    char held[4];
    size_t len;
};

/* Like utf8_add for bytes that arrive in pieces: an incomplete character is held back. Returns 0,
 * -ENOBUFS or -ENOMEM, after which some of it may have been appended. */
int utf8_clean(struct utf8_cleaner *cleaner, const char *data, size_t len, struct buf *out);

/* Appends a held incomplete character, as replacements, at the end of the data. */
int utf8_clean_end(struct utf8_cleaner *cleaner, struct buf *out);
