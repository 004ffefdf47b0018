/* Command lines as a table: one row per option provides parsing, --help and the man page check. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct err;

/* What an option puts into its field. */
enum option_type {
    OPTION_TYPE_CALL,     /* set() does it */
    OPTION_TYPE_FLAG,     /* bool: true */
    OPTION_TYPE_TEXT,     /* const char *: the value as it is */
    OPTION_TYPE_NAME,     /* const char *: see is_name */
    OPTION_TYPE_PATH,     /* const char *: with a slash first */
    OPTION_TYPE_U32,      /* uint32_t */
    OPTION_TYPE_U64,      /* uint64_t */
    OPTION_TYPE_CPUS,     /* uint32_t: thousandths */
    OPTION_TYPE_SIZE,     /* uint64_t: bytes */
    OPTION_TYPE_DURATION, /* uint64_t: milliseconds */
};

/* In the order in which rows are written, which costs a few bytes of padding. */
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct option_row {
    const char *name;     /* long name without the dashes */
    char letter;          /* short form, or 0 */
    const char *argument; /* name of the argument in --help; NULL for a flag */
    const char *help;

    /* Stores the value (NULL for a flag) in the command's own struct. */
    int (*set)(void *into, const char *value, struct err *err);

    /* Or the value goes into a field of that struct; see the macros below. */
    enum option_type type;
    size_t offset;
    const char *what; /* ends "--name 'value' is not ..." */
    uint64_t least;   /* of a number; the most is that of its field */
};

/* The offset of a field; a field of another type does not compile. */
#define OPTION_FIELD(of, field, type)                                                              \
    (offsetof(of, field) + 0 * sizeof(_Generic(((of *)0)->field, type : 1)))

/* The end of a row, behind the help. */
#define OPTION_CALL(set) set, OPTION_TYPE_CALL, 0, NULL, 0
#define OPTION_FLAG(of, field) NULL, OPTION_TYPE_FLAG, OPTION_FIELD(of, field, bool), NULL, 0
#define OPTION_TEXT(of, field)                                                                     \
    NULL, OPTION_TYPE_TEXT, OPTION_FIELD(of, field, const char *), NULL, 0
#define OPTION_NAME(of, field)                                                                     \
    NULL, OPTION_TYPE_NAME, OPTION_FIELD(of, field, const char *), "a name", 0
#define OPTION_PATH(of, field, what)                                                               \
    NULL, OPTION_TYPE_PATH, OPTION_FIELD(of, field, const char *), what, 0
#define OPTION_U32(of, field, least, what)                                                         \
    NULL, OPTION_TYPE_U32, OPTION_FIELD(of, field, uint32_t), what, least
#define OPTION_U64(of, field, least, what)                                                         \
    NULL, OPTION_TYPE_U64, OPTION_FIELD(of, field, uint64_t), what, least
#define OPTION_CPUS(of, field, least, what)                                                        \
    NULL, OPTION_TYPE_CPUS, OPTION_FIELD(of, field, uint32_t), what, least
#define OPTION_SIZE(of, field, least, what)                                                        \
    NULL, OPTION_TYPE_SIZE, OPTION_FIELD(of, field, uint64_t), what, least
#define OPTION_DURATION(of, field, least, what)                                                    \
    NULL, OPTION_TYPE_DURATION, OPTION_FIELD(of, field, uint64_t), what, least

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
