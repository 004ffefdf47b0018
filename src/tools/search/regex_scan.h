/* What can be known about a regular expression by reading it, to search faster. Whatever is not
 * understood here makes a search slower, never wrong.
 *
 * A search is about lines: an expression sees one line and nothing else. To look for it in many
 * lines at once, nothing in it may match the newline between two of them: then every match is
 * within a line, and all that it sees around itself ends where the line does. So \s becomes
 * [^\S\n], [^a] becomes [^\na], and so on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct regex_scan {
    struct buf text;   /* the expression, rewritten as above */
    bool is_for_lines; /* it has to be shown one line at a time */
    bool needs_utf;    /* bytes and characters are not the same to it */
    bool ignore_case;
    struct buf literal; /* a text that every match contains, if any; perhaps in another case */
    bool is_literal;    /* it is nothing but that text */
    bool has_newline;   /* it names a newline, which no line has */
};

/* 0 or -ENOMEM. */
int regex_scan(struct regex_scan *scan, const char *pattern, size_t len, bool ignore_case);
void regex_scan_done(struct regex_scan *scan);
