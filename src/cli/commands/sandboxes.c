// SPDX-License-Identifier: Apache-2.0
/* The commands that list, show, pause, stop, start and remove sandboxes. */
#include "cli/commands/sandboxes.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/words.h"
#include "holt.h"

enum { LIST_BYTES_MAX = 64 * 1024 * 1024 };

/* --- ls --------------------------------------------------------------------------------------- */

struct ls_options {
    struct output_options output;
    struct words labels;
    const char *name, *state, *template; /* patterns of fnmatch(3); NULL: any */
};

static void ls_options_done(struct ls_options *options)
{
    words_done(&options->labels);
}

static int set_label(void *into, const char *value, struct err *err)
{
    struct ls_options *options = into;

    return words_add_label(&options->labels, value, err);
}

/* Parses label=KEY=VALUE, or one of the other properties with a pattern. */
static int set_filter(void *into, const char *value, struct err *err)
{
    struct ls_options *options = into;
    const struct {
        const char *name;
        const char **pattern;
    } known[] = { { "name=", &options->name },
                  { "state=", &options->state },
                  { "status=", &options->state },
                  { "template=", &options->template } };

    if (strncmp(value, "label=", strlen("label=")) == 0)
        return words_add_label(&options->labels, value + strlen("label="), err);
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (strncmp(value, known[i].name, strlen(known[i].name)) != 0)
            continue;
        *known[i].pattern = value + strlen(known[i].name);
        return 0;
    }
    return err_set(err, ERR_INVALID,
                   "--filter '%.100s' is not name=, state=, template= or label= and a value",
                   value);
}

static const struct option_row ls_rows[] = {
    { "label", 'l', "KEY=VALUE", "only those with this label; may be repeated",
      OPTION_CALL(set_label) },
    { "filter", 'f', "NAME=PATTERN", "by name, state, template or label: state=stopped",
      OPTION_CALL(set_filter) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};

static const struct option_table ls_table = { ls_rows, ARRAY_SIZE(ls_rows), NULL };

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_sandbox_list *)result)->items[row]->id;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_sandbox *sandbox = ((const struct holt_sandbox_list *)result)->items[row];
    char age[CELL_SIZE];

    (void)options;
    format_age(age, sandbox->created_ms);
    table_add(cells, "%s", sandbox->id);
    table_add(cells, "%s", or_dash(sandbox->name));
    table_add(cells, "%s", holt_state_name(sandbox->state));
    table_add(cells, "%s", or_dash(sandbox->template_name));
    table_add(cells, "%" PRIu32, sandbox->turns);
    table_add(cells, "%s", age);
}

static bool is_match(const char *pattern, const char *text)
{
    return !pattern || fnmatch(pattern, text, 0) == 0;
}

static bool is_wanted(const void *into, const void *result, size_t row)
{
    const struct holt_sandbox *sandbox = ((const struct holt_sandbox_list *)result)->items[row];
    const struct ls_options *options = into;

    return is_match(options->name, sandbox->name) &&
           is_match(options->state, holt_state_name(sandbox->state)) &&
           is_match(options->template, sandbox->template_name);
}

static const char *row_owner(const void *result, size_t row)
{
    return ((const struct holt_sandbox_list *)result)->items[row]->owner;
}

static int ls_print(const struct ls_options *options, const struct holt_sandbox_list *list)
{
    static const char *const titles[] = { "ID", "NAME", "STATE", "TEMPLATE", "TURNS", "CREATED" };
    const struct listing listing = {
        .result = list,
        .field = "sandboxes",
        .count = list->count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .right = 0x10,
        .flexible = 0x0a,
        .id = row_id,
        .add = row_add,
        .owner = row_owner,
        .is_wanted = is_wanted,
    };

    return listing_print(&listing, options);
}

static int ls_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(ls_options_done) struct ls_options options = { .labels = { .count = 0 } };
    cleanup_result struct holt_sandbox_list *list = NULL;
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_ls, &options, argc, argv, &connection, &status))
        return status;
    if (holt_sandbox_list(connection.holt, (const char *const *)options.labels.items,
                          HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    return ls_print(&options, list);
}

const struct command command_ls = {
    .group = "Sandboxes",
    .name = "ls",
    .operands = "",
    .summary = "List sandboxes",
    .example = "holt ls --label team=red -q | xargs holt rm",
    .options = &ls_table,
    .run = ls_run,
};

/* --- inspect ---------------------------------------------------------------------------------- */

void sandbox_set_add(struct sandbox_set *set, struct holt_sandbox *sandbox)
{
    set->items = xreallocarray(set->items, set->count + 1, sizeof(struct holt_sandbox *));
    set->items[set->count++] = sandbox;
}

void sandbox_set_done(struct sandbox_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        holt_free(set->items[i]);
    free(set->items);
}

static int set_print_json(const struct sandbox_set *set, bool is_one)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(LIST_BYTES_MAX);
    int r = buf_add_str(&text, is_one ? "" : "[");

    for (size_t i = 0; r == 0 && i < set->count; i++) {
        size_t len;
        const char *each = output_json_find(set->items[i], "sandbox", &len);

        r = buf_add_str(&text, i > 0 ? "," : "");
        if (r == 0)
            r = each ? buf_add(&text, each, len) : -EPROTO;
    }
    if (r == 0 && !is_one)
        r = buf_add_str(&text, "]");
    if (r < 0)
        return report("cannot read the reply of the daemon");
    return text.len > 0 ? output_json_text(text.data) : STATUS_OK;
}

int sandbox_set_print(const struct sandbox_set *set, const struct output_options *output,
                      bool is_one)
{
    const struct holt_sandbox_list list = {
        .count = set->count,
        .items = (const struct holt_sandbox *const *)set->items,
    };
    const struct ls_options options = { .output = *output };

    return output->wants_json ? set_print_json(set, is_one) : ls_print(&options, &list);
}

static const struct option_row inspect_rows[] = {
    { "output", 'o', "FORMAT", "'json' (the default) or 'table'", OPTION_CALL(option_set_output) },
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};

static const struct option_table inspect_table = { inspect_rows, ARRAY_SIZE(inspect_rows), NULL };

static int inspect_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 0, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(sandbox_set_done) struct sandbox_set set = { .count = 0 };
    struct output_options options = { .wants_json = true };
    int next, first, status;

    if (!command_parse(&command_inspect, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_inspect, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    for (first = next; next < argc; next++) {
        struct holt_sandbox *sandbox;
        struct holt_error error;

        if (holt_sandbox_get(connection.holt, argv[next], HOLT_NO_DEADLINE, &sandbox, &error) < 0)
            status = report_holt_error(&error);
        else
            sandbox_set_add(&set, sandbox);
    }
    if (sandbox_set_print(&set, &options, argc - first == 1) != STATUS_OK)
        status = STATUS_HOLT;
    return status;
}

const struct command command_inspect = {
    .group = "Sandboxes",
    .name = "inspect",
    .operands = "ID...",
    .summary = "Show all properties of sandboxes as JSON",
    .options = &inspect_table,
    .run = inspect_run,
};

/* --- stop, start ----------------------------------------------------------- */

#define SANDBOX_COMMAND(verb, call, what, table)                                                   \
    static int verb##_act(struct holt *holt, const char *sandbox, const char *operand,             \
                          struct holt_error *error)                                                \
    {                                                                                              \
        (void)sandbox;                                                                             \
        return call;                                                                               \
    }                                                                                              \
                                                                                                   \
    static int verb##_run(int argc, char **argv)                                                   \
    {                                                                                              \
        return each_run(&(struct each){ &command_##verb, "an ID", false, verb##_act }, argc,       \
                        argv);                                                                     \
    }                                                                                              \
                                                                                                   \
    const struct command command_##verb = {                                                        \
        .group = "Sandboxes",                                                                      \
        .name = #verb,                                                                             \
        .operands = "ID...",                                                                       \
        .summary = what,                                                                           \
        .options = &(table),                                                                       \
        .run = verb##_run,                                                                         \
    }

SANDBOX_COMMAND(stop, holt_sandbox_stop(holt, operand, HOLT_NO_DEADLINE, NULL, error),
                "End all processes of sandboxes and keep their files", option_table_help);
SANDBOX_COMMAND(start, holt_sandbox_start(holt, operand, HOLT_NO_DEADLINE, NULL, error),
                "Start stopped or failed sandboxes", option_table_help);
