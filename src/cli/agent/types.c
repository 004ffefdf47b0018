// SPDX-License-Identifier: Apache-2.0
/* holt agent ls, holt agent show. */
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"
#include "holt.h"

static const char *type_name(const void *result, size_t row)
{
    return ((const struct holt_agent_type_list *)result)->items[row]->name;
}

static void type_row(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_agent_type *type = ((const struct holt_agent_type_list *)result)->items[row];
    char port[16] = "-";

    (void)options;
    if (type->port > 0)
        (void)snprintf(port, sizeof(port), "%u", type->port);
    table_add(cells, "%s", type->name);
    table_add(cells, "%s", *type->command ? "yes" : "no");
    table_add(cells, "%s", port);
    table_add(cells, "%s", *type->network ? type->network : "default");
    table_add(cells, "%s", type->summary);
}

static int agent_ls_run(int argc, char **argv)
{
    static const char *const titles[] = { "TYPE", "RUN", "PORT", "NETWORK", "SUMMARY" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_agent_type_list *list = NULL;
    struct output_options options = { .is_quiet = false };
    struct listing listing = { .field = "types",
                               .titles = titles,
                               .columns = ARRAY_SIZE(titles),
                               .flexible = 1U << 4,
                               .id = type_name,
                               .add = type_row };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_agent_ls, &options, argc, argv, &next, &status))
        return status;
    if (next < argc)
        return command_misused(&command_agent_ls, "takes no operands");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_agent_type_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    listing.result = list;
    listing.count = list->count;
    status = listing_print(&listing, &options);
    for (size_t i = 0; i < list->error_count; i++)
        status = report("%s", list->errors[i]);
    return status;
}

static const struct option_row ls_rows[] = {
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET_NAMES,
    OPTION_HELP,
};

static const struct option_table ls_table = { ls_rows, ARRAY_SIZE(ls_rows), NULL };

const struct command command_agent_ls = {
    .group = "Agents",
    .name = "agent ls",
    .operands = "",
    .summary = "List agent types",
    .options = &ls_table,
    .run = agent_ls_run,
};

static void line_print(const char *title, const char *text)
{
    if (*text)
        (void)printf("%-12s%s\n", title, text);
}

static void list_print(const char *title, const char *const *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        line_print(title, items[i]);
}

static void type_print(const struct holt_agent_type *type)
{
    line_print("type", type->name);
    line_print("summary", type->summary);
    line_print("template", type->template_name);
    line_print("base", type->base_template);
    list_print("npm", type->packages, type->package_count);
    line_print("command", type->command);
    line_print("task", type->task);
    line_print("serve", type->serve);
    if (type->port > 0)
        (void)printf("%-12s%u\n", "port", type->port);
    line_print("ready", type->ready);
    line_print("user", type->user);
    line_print("token", type->has_token ? "yes" : "");
    line_print("network", type->network);
    list_print("allow", type->allow, type->allow_count);
    line_print("models", type->models);
    list_print("secret", type->secrets, type->secret_count);
    list_print("env", type->variables, type->variable_count);
    list_print("file", type->files, type->file_count);
}

static int agent_show_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a TYPE" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_agent_type *type = NULL;
    struct output_options options = { .is_quiet = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_agent_show, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_agent_show, &operands, argc - next))
        return STATUS_HOLT;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_agent_type_get(connection.holt, argv[next], HOLT_NO_DEADLINE, &type, &error) < 0)
        return report_holt_error(&error);
    if (options.wants_json)
        return output_json(type, "type");
    type_print(type);
    return command_printed();
}

static const struct option_row show_rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_HELP };

static const struct option_table show_table = { show_rows, ARRAY_SIZE(show_rows), NULL };

const struct command command_agent_show = {
    .group = "Agents",
    .name = "agent show",
    .operands = "TYPE",
    .summary = "Show an agent type",
    .options = &show_table,
    .run = agent_show_run,
};
