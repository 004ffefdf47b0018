/* The formats of `holt diff`. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"

struct holt_change;

/* Returns 'A', 'M', 'D' or 'R', or 0 if the change continues the patch of the previous one. */
char diff_letter(const struct holt_change *change);

/* Appends a path as git writes it: in quotes and with escapes if it has control characters, quotes
 * or backslashes. The prefix (may be "") is inside the quotes. */
void diff_path_add(struct buf *out, const char *prefix, const char *path);

enum { DIFF_NAME_MAX = 16 * 1024 * 1024 };

/* Prints "M path", as git status does. */
void diff_print_name(const struct holt_change *change);

/* Prints a part of a patch for `git apply`; reports changes that a patch cannot express. */
void diff_print_patch(const struct holt_change *change, FILE *out);

/* The rows of git diff --stat, collected until all are known. */
struct diff_stat {
    struct diff_stat_row *rows;
    size_t count;
};

void diff_stat_add(struct diff_stat *stat, const struct holt_change *change);
void diff_stat_print(const struct diff_stat *stat);
void diff_stat_done(struct diff_stat *stat);
