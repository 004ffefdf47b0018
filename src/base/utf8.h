/* UTF-8 of bytes that nobody vouches for, and that come in pieces. */
#pragma once

#include <stddef.h>

struct buf;

/* What has come of a character that is not whole yet. All zeros at first. */
struct utf8_cleaner {
    char held[4];
    size_t len;
};

/* Appends the bytes as valid UTF-8: what is not becomes U+FFFD, and so does a NUL. A character that
 * is not whole is held back. 0, -ENOBUFS or -ENOMEM, and then some of it may be there. */
int utf8_clean(struct utf8_cleaner *cleaner, const char *data, size_t len, struct buf *out);

/* Nothing more comes. */
int utf8_clean_end(struct utf8_cleaner *cleaner, struct buf *out);

/* The last place at or before `at` where no character of a valid text is cut in two. */
size_t utf8_boundary(const char *text, size_t len, size_t at);
