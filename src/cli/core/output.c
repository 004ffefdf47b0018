// SPDX-License-Identifier: Apache-2.0
#include "cli/core/output.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/core/report.h"
#include "holt.h"

enum { TEXT_MAX = 256 * 1024 * 1024 };

/* --- JSON ------------------------------------------------------------------------------------- */

/* Returns the end of the string behind its first quote. */
static const char *string_end(const char *text)
{
    for (; *text && *text != '"'; text++)
        if (*text == '\\' && text[1])
            text++;
    return *text ? text + 1 : text;
}

/* Returns the end of the value that the text starts with. The text is valid JSON without spaces
 * between values: the daemon writes none. */
static const char *value_end(const char *text)
{
    size_t depth = 0;

    do {
        if (*text == '"') {
            text = string_end(text + 1);
            continue;
        }
        if (*text == '{' || *text == '[')
            depth++;
        else if ((*text == '}' || *text == ']') && depth > 0)
            depth--;
        text++;
    } while (*text && (depth > 0 || !strchr(",:]}", *text)));
    return text;
}

/* Returns the value of a member of the object, or NULL. */
static const char *member_find(const char *object, const char *name)
{
    const size_t len = strlen(name);

    while (*object == '{' || *object == ',') {
        const char *key = object + 1, *end = value_end(key);

        if (*end != ':')
            return NULL;
        if ((size_t)(end - key) == len + 2 && strncmp(key + 1, name, len) == 0)
            return end + 1;
        object = value_end(end + 1);
    }
    return NULL;
}

static int text_print(const char *text, size_t len)
{
    cleanup_json json_t *value = NULL;

    if (isatty(STDOUT_FILENO))
        value = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (value)
        (void)json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    else
        (void)fwrite(text, 1, len, stdout);
    (void)printf("\n");
    return command_printed();
}

int output_json_text(const char *text)
{
    return text_print(text, strlen(text));
}

const char *output_json_find(const void *result, const char *field, size_t *ret_len)
{
    const char *text = holt_result_json(result);

    if (field)
        text = member_find(text, field);
    *ret_len = text ? (size_t)(value_end(text) - text) : 0;
    return text;
}

const char *output_json_item(const void *result, const char *field, size_t index, size_t *ret_len)
{
    const char *item = member_find(holt_result_json(result), field);

    if (!item || item[1] == ']')
        return NULL;
    for (item++; index > 0; index--) {
        item = value_end(item);
        if (*item++ != ',')
            return NULL;
    }
    *ret_len = (size_t)(value_end(item) - item);
    return item;
}

void output_json_line(const char *text, size_t len)
{
    (void)fwrite(text, 1, len, stdout);
    (void)printf("\n");
}

int output_json(const void *result, const char *field)
{
    size_t len;
    const char *text = output_json_find(result, field, &len);

    return text ? text_print(text, len) : output_json_text("[]");
}

int output_id(const struct output_options *options, const void *result, const char *field,
              const char *id)
{
    if (options->wants_json)
        return output_json(result, field);
    (void)printf("%s\n", id);
    return command_printed();
}

/* --- lists ------------------------------------------------------------------------------------ */

static bool is_row_wanted(const struct listing *listing, const void *options, size_t row)
{
    return !listing->is_wanted || listing->is_wanted(options, listing->result, row);
}

/* Prints the items of the list that are wanted. */
static int print_wanted(const struct listing *listing, const void *options)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
    const char *item = member_find(holt_result_json(listing->result), listing->field);
    int r = buf_add_str(&out, "[");

    for (size_t row = 0; item && item[0] && item[1] != ']' && *item != ']' && r == 0; row++) {
        const char *start = item + 1;

        item = value_end(start);
        if (!is_row_wanted(listing, options, row))
            continue;
        r = out.len > 1 ? buf_add_str(&out, ",") : 0;
        if (r == 0)
            r = buf_add(&out, start, (size_t)(item - start));
    }
    if (r == 0)
        r = buf_add_str(&out, "]");
    return r < 0 ? report("the list is too long") : text_print(out.data, out.len);
}

static int print_ids(const struct listing *listing, const void *options)
{
    for (size_t row = 0; row < listing->count; row++) {
        const char *id = listing->id(listing->result, row);

        if (id && is_row_wanted(listing, options, row))
            (void)printf("%s\n", id);
    }
    return command_printed();
}

static bool has_several_owners(const struct listing *listing)
{
    for (size_t row = 1; listing->owner && row < listing->count; row++)
        if (strcmp(listing->owner(listing->result, row), listing->owner(listing->result, 0)) != 0)
            return true;
    return false;
}

static int print_table(const struct listing *listing, const void *options)
{
    enum { COLUMNS_MAX = 16 };
    const unsigned more = has_several_owners(listing);
    const char *titles[COLUMNS_MAX + 1] = { "OWNER" };
    cleanup_with(table_done) struct table cells = {
        .titles = titles,
        .columns = listing->columns + more,
        .right = listing->right << more,
        .flexible = listing->flexible << more | more,
        .spare = listing->spare << more,
    };

    for (size_t i = 0; i < listing->columns && i < COLUMNS_MAX; i++)
        titles[i + more] = listing->titles[i];
    for (size_t row = 0; row < listing->count; row++) {
        if (!is_row_wanted(listing, options, row))
            continue;
        if (more)
            table_add(&cells, "%s", listing->owner(listing->result, row));
        listing->add(&cells, options, listing->result, row);
    }
    table_print(&cells);
    return command_printed();
}

int listing_print(const struct listing *listing, const void *options)
{
    const struct output_options *output = options;

    if (output->is_quiet)
        return print_ids(listing, options);
    if (!output->wants_json)
        return print_table(listing, options);
    return listing->is_wanted && listing->field ? print_wanted(listing, options)
                                                : output_json(listing->result, listing->field);
}

void output_size(const struct output_options *options, char cell[CELL_SIZE], uint64_t bytes)
{
    if (options->wants_bytes)
        (void)snprintf(cell, CELL_SIZE, "%" PRIu64, bytes);
    else
        format_size(cell, bytes);
}

void output_size_short(const struct output_options *options, char cell[CELL_SIZE], uint64_t bytes)
{
    if (options->wants_bytes)
        (void)snprintf(cell, CELL_SIZE, "%" PRIu64, bytes);
    else
        format_size_short(cell, bytes);
}
