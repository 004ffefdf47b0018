/* Command lines as a table: one row per option provides parsing, --help and the man page check. */
#pragma once

#include <stddef.h>
#include <stdio.h>

struct err;

struct option_row {
    const char *name;     /* long name without the dashes */
    char letter;          /* short form, or 0 */
    const char *argument; /* name of the argument in --help; NULL for a flag */
    const char *help;

    /* Stores the value (NULL for a flag) in the command's own struct. */
    int (*set)(void *into, const char *value, struct err *err);
};

struct option_table {
    const struct option_row *rows;
    size_t count;
    const struct option_table *more; /* rows shared by several commands, or NULL */
};

/* Parses argv up to the first operand or past "--"; ret_next is the index of what follows. Accepts
 * --name VALUE, --name=VALUE, -n VALUE, -nVALUE and grouped flags. */
int options_parse(const struct option_table *table, void *into, int argc, char *const *argv,
                  int *ret_next, struct err *err);

/* Does the same, but options may also follow operands, up to "--". Reorders argv so that the
 * operands come last, in their order. */
int options_parse_anywhere(const struct option_table *table, void *into, int argc, char **argv,
                           int *ret_next, struct err *err);

/* Prints one aligned line per option. */
void options_help(const struct option_table *table, FILE *out);
