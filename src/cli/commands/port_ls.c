// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"

static int print_table(const json_t *ports)
{
    static const char *const titles[] = { "SANDBOX", "PORT", "ADDRESS", "CONNECTIONS" };
    cleanup_with(table_done) struct table cells = { titles, ARRAY_SIZE(titles), 0xa, NULL, 0 };

    for (size_t i = 0; i < json_array_size(ports); i++) {
        const json_t *port = json_array_get(ports, i);

        table_add(&cells, "%s", call_text(port, "sandboxId"));
        table_add(&cells, "%" JSON_INTEGER_FORMAT,
                  json_integer_value(json_object_get(port, "port")));
        table_add(&cells, "%s", call_text(port, "address"));
        table_add(&cells, "%" JSON_INTEGER_FORMAT,
                  json_integer_value(json_object_get(port, "connections")));
    }
    table_print(&cells);
    return command_printed();
}

static const struct option_row rows[] = { OPTION_OUTPUT, OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int port_ls_run(int argc, char **argv)
{
    static const struct operands operands = { 0, 1, "one ID or none" };
    struct output_options options = { .wants_json = false };
    cleanup_json json_t *reply = NULL;
    const json_t *ports = NULL;
    int next, status;

    if (!command_parse(&command_port_ls, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_port_ls, &operands, argc - next))
        return STATUS_HOLT;
    status = call_once("holt.v1.PortService/List",
                       json_pack("{s:s}", "sandboxId", next < argc ? argv[next] : ""), &reply);
    if (status != STATUS_OK)
        return status;
    if (!call_list(reply, "ports", &ports))
        return STATUS_HOLT;
    return options.wants_json ? print_json(ports) : print_table(ports);
}

const struct command command_port_ls = {
    .group = "Processes",
    .name = "port ls",
    .operands = "[ID]",
    .summary = "List the ports that are forwarded",
    .options = &table,
    .run = port_ls_run,
};
