/* Functions of a shared library that is loaded only when it is needed: linked, it would slow down
 * every start of a command.
 *
 * The caller lists the functions once:
 *
 *     #define FUNCTIONS(FUNCTION) FUNCTION(archive_read_new) FUNCTION(archive_read_free)
 *     struct functions { FUNCTIONS(LIBRARY_MEMBER) };
 *     #define ROW(name) LIBRARY_ROW(struct functions, name)
 *     static const struct library_row rows[] = { FUNCTIONS(ROW) };
 */
#pragma once

#include <stddef.h>

#define LIBRARY_MEMBER(name) __typeof__(name) *name;
#define LIBRARY_ROW(table, name) { #name, offsetof(table, name) },

struct library_row {
    const char *name;
    size_t offset; /* of the pointer in the caller's table */
};

/* Loads the library for the rest of the process and fills in the table. Returns NULL, or why it
 * failed. */
const char *library_load(const char *file, const struct library_row *rows, size_t count,
                         void *ret_table);
