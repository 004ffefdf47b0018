// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"

static void row_add(struct table *cells, const json_t *shell)
{
    const char *kind = call_text(shell, "kind"), *process = call_text(shell, "processId");
    bool is_busy = json_is_true(json_object_get(shell, "busy"));

    table_add(cells, "%s", call_text(shell, "name"));
    table_add(cells, "%s", *kind ? kind : "-");
    table_add(cells, "%s", *process ? process : "-");
    table_add(cells, "%s", is_busy ? "busy" : *process ? "idle" : "asleep");
    table_add(cells, "%" JSON_INTEGER_FORMAT,
              json_integer_value(json_object_get(shell, "waiting")));
}

static int print_table(const json_t *shells)
{
    static const char *const titles[] = { "NAME", "KIND", "PROCESS", "STATE", "WAITING" };
    cleanup_with(table_done) struct table cells = { titles, ARRAY_SIZE(titles), 0x10, NULL, 0 };

    for (size_t i = 0; i < json_array_size(shells); i++)
        row_add(&cells, json_array_get(shells, i));
    table_print(&cells);
    return command_printed();
}

static const struct option_row rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_QUIET_NAMES,
                                          OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int shells_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    struct output_options options = { .wants_json = false };
    cleanup_json json_t *reply = NULL;
    const json_t *shells = NULL;
    int next, status;

    if (!command_parse(&command_shells, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_shells, &operands, argc - next))
        return STATUS_HOLT;
    status =
        call_once("holt.v1.ShellService/List", json_pack("{s:s}", "sandboxId", argv[next]), &reply);
    if (status != STATUS_OK)
        return status;
    if (!call_list(reply, "shells", &shells))
        return STATUS_HOLT;
    if (options.is_quiet)
        return print_texts(shells, "name");
    return options.wants_json ? print_json(shells) : print_table(shells);
}

const struct command command_shells = {
    .group = "Shells",
    .name = "shells",
    .operands = "ID",
    .summary = "List the shells of a sandbox",
    .options = &table,
    .run = shells_run,
};
