// SPDX-License-Identifier: Apache-2.0
/* The commands that list, show, pause, stop, start and remove sandboxes. */
#include <fnmatch.h>
#include <inttypes.h>
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
#include "cli/core/words.h"
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
    int next, status;

    if (!command_parse(&command_ls, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_ls, "takes no arguments");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
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

/* There is no other format, but a script can pass -o json to every command. */
static const struct option_row inspect_rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_HELP };

static const struct option_table inspect_table = { inspect_rows, ARRAY_SIZE(inspect_rows), NULL };

/* Appends the JSON of a sandbox to the list. */
static int inspect_one(struct holt *holt, const char *id, struct buf *list)
{
    cleanup_result struct holt_sandbox *sandbox = NULL;
    struct holt_error error;
    const char *text;
    size_t len;

    if (holt_sandbox_get(holt, id, HOLT_NO_DEADLINE, &sandbox, &error) < 0)
        return report_holt_error(&error);
    text = output_json_find(sandbox, "sandbox", &len);
    if (!text || buf_add_str(list, list->len > 1 ? "," : "") < 0 || buf_add(list, text, len) < 0)
        return report("cannot read the reply of the daemon");
    return STATUS_OK;
}

/* One sandbox is an object; several are one JSON value, too. */
static int inspect_print(const struct buf *list, bool is_one)
{
    cleanup_free char *text =
        is_one ? xasprintf("%s", list->data + 1) : xasprintf("%s]", list->data);

    return is_one && !*text ? STATUS_OK : output_json_text(text);
}

static int inspect_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 0, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = true };
    cleanup_with(buf_done) struct buf list = BUF_INIT(LIST_BYTES_MAX);
    bool is_one;
    int next, status;

    if (!command_parse(&command_inspect, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_inspect, &operands, argc - next))
        return STATUS_HOLT;
    if (!options.wants_json)
        return command_misused(&command_inspect, "prints JSON only; 'holt ls' prints a table");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    is_one = argc - next == 1;
    status = buf_add_str(&list, "[") < 0 ? STATUS_HOLT : STATUS_OK;
    for (; next < argc; next++)
        if (inspect_one(connection.holt, argv[next], &list) != STATUS_OK)
            status = STATUS_HOLT;
    if (inspect_print(&list, is_one) != STATUS_OK)
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

/* --- pause, stop, start ----------------------------------------------------------- */

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

SANDBOX_COMMAND(pause, holt_sandbox_pause(holt, operand, HOLT_NO_DEADLINE, NULL, error),
                "Freeze all processes of sandboxes", option_table_help);
SANDBOX_COMMAND(stop, holt_sandbox_stop(holt, operand, HOLT_NO_DEADLINE, NULL, error),
                "End all processes of sandboxes and keep their files", option_table_help);
SANDBOX_COMMAND(start, holt_sandbox_start(holt, operand, HOLT_NO_DEADLINE, NULL, error),
                "Start stopped or failed sandboxes", option_table_help);
