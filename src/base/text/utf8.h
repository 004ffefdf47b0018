/* UTF-8 out of bytes that may be anything, whole or in pieces. */
#pragma once

#include <stddef.h>

struct buf;

/* Bytes of the character that data begins with (1 to 4), or 0 when none does. */
size_t utf8_char(const char *data, size_t len);

/* How many bytes from the start on are valid and hold no NUL. */
size_t utf8_valid(const char *data, size_t len);

/* The most bytes, up to max, that end at the end of a character. */
size_t utf8_cut(const char *data, size_t len, size_t max);

/* Appends the bytes with U+FFFD in the place of each one that is none, and of NUL: how many were
 * replaced, -ENOBUFS or -ENOMEM. */
long utf8_add(struct buf *out, const char *data, size_t len);

/* What has come of a character that is not whole yet. All zeros at first. */
struct utf8_cleaner {
    char held[4];
    size_t len;
};

/* As utf8_add for bytes that come in pieces: a character that is not whole is held back. 0,
 * -ENOBUFS or -ENOMEM, and then some of it may be there. */
int utf8_clean(struct utf8_cleaner *cleaner, const char *data, size_t len, struct buf *out);

/* Nothing more comes. */
int utf8_clean_end(struct utf8_cleaner *cleaner, struct buf *out);
