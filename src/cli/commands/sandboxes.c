// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"
#include "cli/core/words.h"

struct ls_options {
    struct output_options output;
    json_t *labels;
};

static void options_done(struct ls_options *options)
{
    json_decref(options->labels);
}

static int set_label(void *into, const char *value, struct err *err)
{
    struct ls_options *options = into;

    return label_add(options->labels, value, err);
}

static const struct option_row rows[] = {
    { "label", 'l', "KEY=VALUE", "only those with this label; may be repeated", set_label },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

static void row_add(struct table *cells, const json_t *sandbox)
{
    char age[CELL_SIZE];

    format_age(age, call_text(sandbox, "createdAt"));
    table_add(cells, "%s", call_text(sandbox, "id"));
    table_add(cells, "%s", or_dash(call_text(sandbox, "name")));
    table_add(cells, "%s", call_text(sandbox, "state"));
    table_add(cells, "%s", or_dash(call_text(sandbox, "template")));
    table_add(cells, "%" JSON_INTEGER_FORMAT,
              json_integer_value(json_object_get(sandbox, "turns")));
    table_add(cells, "%s", age);
}

static int print_table(const json_t *sandboxes)
{
    static const char *const titles[] = { "ID", "NAME", "STATE", "TEMPLATE", "TURNS", "CREATED" };
    cleanup_with(table_done) struct table cells = { titles, ARRAY_SIZE(titles), 0x10, NULL, 0 };

    for (size_t i = 0; i < json_array_size(sandboxes); i++)
        row_add(&cells, json_array_get(sandboxes, i));
    table_print(&cells);
    return command_printed();
}

static int ls_run(int argc, char **argv)
{
    cleanup_with(options_done) struct ls_options options = { .labels = json_object() };
    cleanup_json json_t *reply = NULL;
    const json_t *sandboxes = NULL;
    int next, status;

    if (!command_parse(&command_ls, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_ls, "takes no arguments");
    status = call_once("holt.v1.SandboxService/List", json_pack("{s:O}", "labels", options.labels),
                       &reply);
    if (status != STATUS_OK)
        return status;
    if (!call_list(reply, "sandboxes", &sandboxes))
        return STATUS_HOLT;
    if (options.output.is_quiet)
        return print_texts(sandboxes, "id");
    return options.output.wants_json ? print_json(sandboxes) : print_table(sandboxes);
}

const struct command command_ls = {
    .group = "Sandboxes",
    .name = "ls",
    .operands = "",
    .summary = "List the sandboxes",
    .example = "holt ls --label team=red -q | xargs holt rm",
    .options = &table,
    .run = ls_run,
};
