/* Formats a matching line as "path:12: text", and a line of context as "path-13- text". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum { GREP_LINE_CHARS = 500 }; /* longer lines are cut around the match */

struct grep_line {
    const char *path;
    uint64_t number;
    const char *text;
    size_t len;
    size_t match, match_len; /* position in the text */
    bool is_context;
};

/* Appends the line; output that does not fit is dropped. */
void grep_line_put(const struct grep_line *line, struct buf *out);
