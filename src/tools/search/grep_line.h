/* How a line that was found is shown: "path:12: text", or "path-13- text" around it. */
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
    size_t match, match_len; /* where in the text */
    bool is_context;
};

/* What does not fit is left away. */
void grep_line_put(const struct grep_line *line, struct buf *out);
