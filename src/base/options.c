// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/near.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

static const struct option_row *find_long(const struct option_table *table, const char *name,
                                          size_t len)
{
    for (; table; table = table->more)
        for (size_t i = 0; i < table->count; i++)
            if (strlen(table->rows[i].name) == len && strncmp(table->rows[i].name, name, len) == 0)
                return &table->rows[i];
    return NULL;
}

static const struct option_row *find_letter(const struct option_table *table, char letter)
{
    for (; table; table = table->more)
        for (size_t i = 0; i < table->count; i++)
            if (table->rows[i].letter == letter)
                return &table->rows[i];
    return NULL;
}

static int unknown_long(const struct option_table *table, const char *name, size_t len,
                        struct err *err)
{
    cleanup_free char *word = xasprintf("%.*s", (int)len, name);
    const char *near = NULL;
    int least = NEAR_MAX + 1;

    for (; table; table = table->more) {
        for (size_t i = 0; i < table->count; i++) {
            int distance = word_distance(word, table->rows[i].name);

            near = distance < least ? table->rows[i].name : near;
            least = distance < least ? distance : least;
        }
    }
    if (near)
        return err_set(err, ERR_INVALID, "unknown option --%s (did you mean --%s?)", word, near);
    return err_set(err, ERR_INVALID, "unknown option --%s", word);
}

static int set_text(const struct option_row *row, const char *value, const char **field)
{
    assert(value); /* only a flag has none */
    if ((row->type == OPTION_TYPE_NAME && !is_name(value)) ||
        (row->type == OPTION_TYPE_PATH && *value != '/'))
        return -EINVAL;
    *field = value;
    return 0;
}

static int set_u32(const struct option_row *row, const char *value, uint32_t *field)
{
    uint64_t number = 0;
    uint32_t millis = 0;
    int r = row->type == OPTION_TYPE_CPUS ? parse_cpus(value, &millis) : parse_u64(value, &number);

    if (row->type == OPTION_TYPE_CPUS)
        number = millis;
    if (r < 0 || number < row->least || number > UINT32_MAX)
        return -EINVAL;
    *field = (uint32_t)number;
    return 0;
}

static int set_u64(const struct option_row *row, const char *value, uint64_t *field)
{
    uint64_t number = 0;
    int r;

    if (row->type == OPTION_TYPE_SIZE)
        r = parse_size(value, &number);
    else if (row->type == OPTION_TYPE_DURATION)
        r = parse_duration_ms(value, &number);
    else
        r = parse_u64(value, &number);
    if (r < 0 || number < row->least)
        return -EINVAL;
    *field = number;
    return 0;
}

static int option_set(const struct option_row *row, void *into, const char *value, struct err *err)
{
    void *field = (char *)into + row->offset;
    int r = 0;

    switch (row->type) {
    case OPTION_TYPE_CALL:
        return row->set(into, value, err);
    case OPTION_TYPE_FLAG:
        *(bool *)field = true;
        break;
    case OPTION_TYPE_TEXT:
    case OPTION_TYPE_NAME:
    case OPTION_TYPE_PATH:
        r = set_text(row, value, field);
        break;
    case OPTION_TYPE_U32:
    case OPTION_TYPE_CPUS:
        r = set_u32(row, value, field);
        break;
    case OPTION_TYPE_U64:
    case OPTION_TYPE_SIZE:
    case OPTION_TYPE_DURATION:
        r = set_u64(row, value, field);
        break;
    }
    if (r < 0)
        return err_set(err, ERR_INVALID, "--%s '%.100s' is not %s", row->name, value, row->what);
    return 0;
}

/* Parses --name, --name=VALUE or --name VALUE; *used is the number of words. */
static int parse_long(const struct option_table *table, void *into, char *const *argv, int *used,
                      struct err *err)
{
    const char *name = argv[0] + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct option_row *row = find_long(table, name, len);

    *used = 1;
    if (!row)
        return unknown_long(table, name, len, err);
    if (!row->argument && equals)
        return err_set(err, ERR_INVALID, "option --%s takes no value", row->name);
    if (!row->argument || equals)
        return option_set(row, into, equals ? equals + 1 : NULL, err);
    if (!argv[1])
        return err_set(err, ERR_INVALID, "option --%s needs %s", row->name, row->argument);
    *used = 2;
    return option_set(row, into, argv[1], err);
}

/* Parses -abc, -nVALUE or -n VALUE. */
static int parse_letters(const struct option_table *table, void *into, char *const *argv, int *used,
                         struct err *err)
{
    *used = 1;
    for (const char *letter = argv[0] + 1; *letter; letter++) {
        const struct option_row *row = find_letter(table, *letter);
        int r;

        if (!row)
            return err_set(err, ERR_INVALID, "unknown option -%c", *letter);
        if (row->argument && letter[1])
            return option_set(row, into, letter + 1, err);
        if (row->argument && !argv[1])
            return err_set(err, ERR_INVALID, "option -%c needs %s", *letter, row->argument);
        if (row->argument) {
            *used = 2;
            return option_set(row, into, argv[1], err);
        }
        r = option_set(row, into, NULL, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Parses the option at argv[*position], or "--", which ends the options. */
static int parse_next(const struct option_table *table, void *into, char *const *argv,
                      int *position, bool *is_over, struct err *err)
{
    char *const *words = argv + *position;
    int used = 1, r = 0;

    if (strcmp(*words, "--") == 0)
        *is_over = true;
    else
        r = ((*words)[1] == '-' ? parse_long : parse_letters)(table, into, words, &used, err);
    *position += used;
    return r;
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

int options_parse(const struct option_table *table, void *into, int argc, char *const *argv,
                  int *ret_next, struct err *err)
{
    bool is_over = false;
    int i = 1;

    while (i < argc && !is_over && is_option(argv[i])) {
        int r = parse_next(table, into, argv, &i, &is_over, err);

        if (r < 0)
            return r;
    }
    *ret_next = i;
    return 0;
}

/* Moves the words argv[from..end) to `to`, before the operands that are there. */
static void move_words(char **argv, int to, int from, int end)
{
    for (; from < end; from++, to++) {
        char *word = argv[from];

        memmove(argv + to + 1, argv + to, (size_t)(from - to) * sizeof(*argv));
        argv[to] = word;
    }
}

int options_parse_anywhere(const struct option_table *table, void *into, int argc, char **argv,
                           int *ret_next, struct err *err)
{
    bool is_over = false;
    int i = 1, first = 1; /* operands found so far are in [first, i) */

    while (i < argc && !is_over) {
        int before = i, r;

        if (!is_option(argv[i])) {
            i++;
            continue;
        }
        r = parse_next(table, into, argv, &i, &is_over, err);
        if (r < 0)
            return r;
        move_words(argv, first, before, i);
        first += i - before;
    }
    *ret_next = first;
    return 0;
}

static void rows_help(const struct option_table *table, FILE *out)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option_row *row = &table->rows[i];
        char left[64];

        (void)snprintf(left, sizeof(left), "%c%c%s --%s%s%s", row->letter ? '-' : ' ',
                       row->letter ? row->letter : ' ', row->letter ? "," : " ", row->name,
                       row->argument ? " " : "", row->argument ? row->argument : "");
        (void)fprintf(out, "  %-28s %s\n", left, row->help);
    }
}

void options_help(const struct option_table *table, FILE *out)
{
    for (; table; table = table->more)
        rows_help(table, out);
}
