// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/near.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"

static int print_table(const json_t *tools)
{
    static const char *const titles[] = { "TOOL", "CHANGES", "WHAT IT DOES" };
    cleanup_with(table_done) struct table cells = { titles, ARRAY_SIZE(titles), 0, NULL, 0 };

    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);

        table_add(&cells, "%s", call_text(tool, "name"));
        table_add(&cells, "%s", json_is_true(json_object_get(tool, "readOnly")) ? "no" : "yes");
        table_add(&cells, "%s", call_text(tool, "title"));
    }
    table_print(&cells);
    return command_printed();
}

static bool is_needed(const json_t *schema, const char *name)
{
    const json_t *required = json_object_get(schema, "required");

    for (size_t i = 0; i < json_array_size(required); i++)
        if (strcmp(json_string_value(json_array_get(required, i)), name) == 0)
            return true;
    return false;
}

/* "one of a, b", or what JSON Schema calls it. */
static void print_type(const json_t *param)
{
    const json_t *words = json_object_get(param, "enum");

    if (!words)
        (void)printf("%s", call_text(param, "type"));
    for (size_t i = 0; i < json_array_size(words); i++)
        (void)printf("%s%s", i == 0 ? "one of " : ", ",
                     json_string_value(json_array_get(words, i)));
}

static void print_param(const json_t *schema, const char *name, const json_t *param)
{
    const json_t *standard = json_object_get(param, "default");
    cleanup_free char *text =
        standard ? json_dumps(standard, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    (void)printf("  %-14s ", name);
    print_type(param);
    if (is_needed(schema, name))
        (void)printf(", needed");
    if (text)
        (void)printf(", %s if absent", text);
    (void)printf("\n  %-14s %s\n", "", call_text(param, "description"));
}

static int print_tool(const json_t *tool)
{
    const json_t *schema = json_object_get(tool, "inputSchema");
    json_t *properties = json_object_get(schema, "properties");
    const char *name;
    json_t *param;

    (void)printf("Usage: holt tool ID %s [KEY=VALUE...]\n\n%s\n", call_text(tool, "name"),
                 call_text(tool, "description"));
    if (json_object_size(properties) > 0)
        (void)printf("\nParameters:\n");
    json_object_foreach(properties, name, param)
    {
        print_param(schema, name, param);
    }
    return command_printed();
}

static const char *name_at(const json_t *tools, size_t index)
{
    return call_text(json_array_get(tools, index), "name");
}

static int print_one(const json_t *tools, const char *name, bool wants_json)
{
    const char *near = NULL;
    int least = NEAR_MAX + 1;

    for (size_t i = 0; i < json_array_size(tools); i++) {
        int distance = word_distance(name, name_at(tools, i));

        if (strcmp(name_at(tools, i), name) == 0)
            return wants_json ? print_json(json_array_get(tools, i))
                              : print_tool(json_array_get(tools, i));
        if (distance < least) {
            least = distance;
            near = name_at(tools, i);
        }
    }
    return near ? report_usage("tools: no tool '%s' (did you mean '%s'?)", name, near)
                : report_usage("tools: no tool '%s'; 'holt tools' lists them", name);
}

static const struct option_row rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_QUIET_NAMES,
                                          OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int tools_run(int argc, char **argv)
{
    static const struct operands operands = { 0, 1, "at most one TOOL" };
    struct output_options options = { .wants_json = false };
    cleanup_json json_t *reply = NULL;
    const json_t *tools = NULL;
    int next, status;

    if (!command_parse(&command_tools, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_tools, &operands, argc - next))
        return STATUS_HOLT;
    status = call_once("holt.v1.ToolService/List", json_object(), &reply);
    if (status != STATUS_OK)
        return status;
    if (!call_list(reply, "tools", &tools))
        return STATUS_HOLT;
    if (next < argc)
        return print_one(tools, argv[next], options.wants_json);
    if (options.is_quiet)
        return print_texts(tools, "name");
    return options.wants_json ? print_json(tools) : print_table(tools);
}

const struct command command_tools = {
    .group = "Tools",
    .name = "tools",
    .operands = "[TOOL]",
    .summary = "List the tools, or the parameters of one",
    .options = &table,
    .run = tools_run,
};
