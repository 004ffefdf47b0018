/* Analyzes a regular expression to make searches faster. An expression that is not understood here
 * makes a search slower, but not wrong.
 *
 * An expression is matched against single lines. To search many lines at once, no part of it may
 * match a newline: then every match is within a line, and assertions see only that line. So \s is
 * rewritten as [^\S\n], [^a] as [^\na], and so on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct regex_scan {
    struct buf text;   /* the rewritten expression */
    bool is_for_lines; /* it must be matched line by line */
    bool needs_utf;    /* matching by bytes and by characters differs */
    bool ignore_case;
    struct buf
        literal;      /* a string that every match contains, in any case with ignore_case; or "" */
    bool is_literal;  /* the expression is only this string */
    bool has_newline; /* it contains a newline, so it matches no line */
};

/* Analyzes an expression. Returns 0 or -ENOMEM. */
int regex_scan(struct regex_scan *scan, const char *pattern, size_t len, bool ignore_case);
void regex_scan_done(struct regex_scan *scan);
