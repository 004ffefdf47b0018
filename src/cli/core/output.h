/* The one way in which commands print results: a table, the JSON of the API, or only ids. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/core/command.h"
#include "cli/core/table.h"

/* A list as a command prints it. The functions get the options of the command, which start with
 * output_options, and the number of a row. */
struct listing {
    const void *result; /* of libholt */
    const char *field;  /* the list in its message; NULL: the JSON is the whole message */
    size_t count;       /* rows */
    const char *const *titles;
    size_t columns;
    unsigned right;    /* a bit for each column that is flush right */
    unsigned flexible; /* a bit for each column that may be cut to fit a terminal */
    unsigned spare;    /* a bit for each column that may be cut when that is not enough */

    /* Returns what --quiet prints for a row; NULL: nothing. */
    const char *(*id)(const void *result, size_t row);
    void (*add)(struct table *cells, const void *options, const void *result, size_t row);
    /* Returns the owner of a row, for a first column if there are several owners. NULL: no owners.
     */
    const char *(*owner)(const void *result, size_t row);
    /* NULL: every row is printed. */
    bool (*is_wanted)(const void *options, const void *result, size_t row);
};

/* Prints the list as the options ask for. Returns the exit status. */
int listing_print(const struct listing *listing, const void *options);

/* Prints a field of the message that a result was read from, or all of it if field is NULL; an
 * absent field is []. The bytes are those of the daemon; a terminal gets them indented. Returns the
 * exit status. */
int output_json(const void *result, const char *field);

/* Returns the text of a field of that message and its length, or NULL. */
const char *output_json_find(const void *result, const char *field, size_t *ret_len);

/* Returns the text of an item of a list of that message and its length, or NULL. */
const char *output_json_item(const void *result, const char *field, size_t index, size_t *ret_len);

/* Prints a text of that message on one line, also on a terminal. */
void output_json_line(const char *text, size_t len);

/* Prints the id of an object, or its field of the message as JSON. Returns the exit status. */
int output_id(const struct output_options *options, const void *result, const char *field,
              const char *id);

/* Prints a JSON text in the same way. */
int output_json_text(const char *text);

/* Formats a number of bytes as "1.5 MiB", or as a plain number with --bytes. */
void output_size(const struct output_options *options, char cell[CELL_SIZE], uint64_t bytes);

/* The same as "1.5M", for tables with many columns. */
void output_size_short(const struct output_options *options, char cell[CELL_SIZE], uint64_t bytes);
