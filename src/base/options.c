// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"

static const struct option_row *find_long(const struct option_table *table, const char *name,
                                          size_t len)
{
    for (size_t i = 0; i < table->count; i++)
        if (strlen(table->rows[i].name) == len && strncmp(table->rows[i].name, name, len) == 0)
            return &table->rows[i];
    return NULL;
}

static const struct option_row *find_letter(const struct option_table *table, char letter)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].letter == letter)
            return &table->rows[i];
    return NULL;
}

/* --name, --name=VALUE or --name VALUE; *used is how many words of argv it took. */
static int parse_long(const struct option_table *table, void *into, char *const *argv, int *used,
                      struct err *err)
{
    const char *name = argv[0] + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct option_row *row = find_long(table, name, len);

    *used = 1;
    if (!row)
        return err_set(err, ERR_INVALID, "unknown option --%.*s", (int)len, name);
    if (!row->argument && equals)
        return err_set(err, ERR_INVALID, "option --%s takes no value", row->name);
    if (!row->argument || equals)
        return row->set(into, equals ? equals + 1 : NULL, err);
    if (!argv[1])
        return err_set(err, ERR_INVALID, "option --%s needs %s", row->name, row->argument);
    *used = 2;
    return row->set(into, argv[1], err);
}

/* -abc, -nVALUE or -n VALUE. */
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
            return row->set(into, letter + 1, err);
        if (row->argument && !argv[1])
            return err_set(err, ERR_INVALID, "option -%c needs %s", *letter, row->argument);
        if (row->argument) {
            *used = 2;
            return row->set(into, argv[1], err);
        }
        r = row->set(into, NULL, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int options_parse(const struct option_table *table, void *into, int argc, char *const *argv,
                  int *ret_next, struct err *err)
{
    int i = 1;

    while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
        bool is_long = argv[i][1] == '-';
        int used, r;

        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        r = (is_long ? parse_long : parse_letters)(table, into, argv + i, &used, err);
        if (r < 0)
            return r;
        i += used;
    }
    *ret_next = i;
    return 0;
}

void options_help(const struct option_table *table, FILE *out)
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
