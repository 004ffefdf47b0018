/* Output for a terminal as plain text: without escape sequences and control characters, and with
 * the last state of lines that a program has overwritten, such as progress bars. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { PLAIN_LINE_MAX = 64 * 1024 }; /* a longer line is passed on, and cannot be overwritten */

struct plain_text {
    int state;         /* in an escape sequence; 0: none */
    size_t string_len; /* of an escape sequence that is a string */
    bool has_returned; /* the next character overwrites the line */
    bool has_c2;       /* the first byte of a control character of two bytes, or of another */
    struct buf line;   /* the present one */
};

#define PLAIN_TEXT_INIT                                                                            \
    {                                                                                              \
        .line = BUF_INIT(PLAIN_LINE_MAX)                                                           \
    }

/* Appends the lines of UTF-8 that arrives in pieces, and keeps the present one back. Returns 0,
 * -ENOBUFS or -ENOMEM. */
int plain_add(struct plain_text *plain, const char *data, size_t len, struct buf *out);

/* Appends what was kept back, at the end of the data. */
int plain_end(struct plain_text *plain, struct buf *out);

void plain_done(struct plain_text *plain);
