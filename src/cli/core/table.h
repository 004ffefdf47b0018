/* Tables of aligned columns, each as wide as its widest cell. On a terminal that is too narrow for
 * the table, long cells of some columns are cut. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table {
    const char *const *titles;
    size_t columns;
    unsigned right;    /* a bit for each column that is flush right */
    unsigned flexible; /* a bit for each column that may be cut to fit a terminal */
    unsigned spare;    /* a bit for each column that may be cut when that is not enough */
    bool is_clipped;   /* no line is longer than the terminal, whatever has to be cut */
    char **cells;      /* row after row */
    size_t count;
};

/* Adds the next cell, control characters as "?". */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the titles and all rows to stdout. */
void table_print(const struct table *table);

void table_done(struct table *table);

/* Returns the width of a text on a terminal, one column per UTF-8 character. */
int text_width(const char *text);

enum { CELL_SIZE = 40 };

/* "1.5 MiB". */
void format_size(char cell[CELL_SIZE], uint64_t bytes);

/* "1.5M", "512M": at most six characters below 1 EiB. */
void format_size_short(char cell[CELL_SIZE], uint64_t bytes);

/* Formats how long ago a time, in milliseconds since 1970, was: "5m ago"; "-" for 0. */
void format_age(char cell[CELL_SIZE], int64_t ms);
