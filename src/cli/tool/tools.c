// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/near.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_tool_list *)result)->items[row]->name;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_tool *tool = ((const struct holt_tool_list *)result)->items[row];

    (void)options;
    table_add(cells, "%s", tool->name);
    table_add(cells, "%s", tool->is_read_only ? "no" : "yes");
    table_add(cells, "%s", tool->title);
}

static int tools_print(const struct output_options *options, const struct holt_tool_list *list)
{
    static const char *const titles[] = { "TOOL", "CHANGES", "WHAT IT DOES" };
    const struct listing listing = {
        .result = list,
        .field = "tools",
        .count = list->count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .flexible = 0x4,
        .id = row_id,
        .add = row_add,
    };

    return listing_print(&listing, options);
}

static bool is_required(const json_t *schema, const char *name)
{
    const json_t *required = json_object_get(schema, "required");

    for (size_t i = 0; i < json_array_size(required); i++)
        if (strcmp(json_string_value(json_array_get(required, i)), name) == 0)
            return true;
    return false;
}

/* Prints "one of a, b", or the type of the JSON Schema. */
static void print_type(const json_t *param)
{
    const json_t *words = json_object_get(param, "enum");

    if (!words)
        (void)printf("%s", json_text_of(param, "type"));
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
    if (is_required(schema, name))
        (void)printf(", required");
    if (text)
        (void)printf(", default %s", text);
    (void)printf("\n  %-14s %s\n", "", json_text_of(param, "description"));
}

static int print_tool(const struct holt_tool *tool)
{
    cleanup_json json_t *schema = json_loads(tool->input_schema, 0, NULL);
    json_t *properties = json_object_get(schema, "properties");
    const char *name;
    json_t *param;

    (void)printf("Usage: holt tool ID %s [KEY=VALUE...]\n\n%s\n", tool->name, tool->description);
    if (json_object_size(properties) > 0)
        (void)printf("\nParameters:\n");
    json_object_foreach(properties, name, param) {
        print_param(schema, name, param);
    }
    return command_printed();
}

static int print_one_json(const struct holt_tool_list *list, size_t index)
{
    size_t len;
    const char *item = output_json_item(list, "tools", index, &len);
    cleanup_free char *text = item ? xasprintf("%.*s", (int)len, item) : NULL;

    return text ? output_json_text(text) : report("cannot read the reply of the daemon");
}

static int print_one(const struct holt_tool_list *list, const char *name, bool wants_json)
{
    const char *near = NULL;
    int least = NEAR_MAX + 1;

    for (size_t i = 0; i < list->count; i++) {
        const struct holt_tool *tool = list->items[i];
        int distance = word_distance(name, tool->name);

        if (strcmp(tool->name, name) == 0)
            return wants_json ? print_one_json(list, i) : print_tool(tool);
        if (distance < least) {
            least = distance;
            near = tool->name;
        }
    }
    return near ? report_usage("tools: no tool '%s' (did you mean '%s'?)", name, near)
                : report_usage("tools: no tool '%s'; 'holt tools' lists them", name);
}

static int tools_run(int argc, char **argv)
{
    static const struct operands operands = { 0, 1, "at most one TOOL" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_tool_list *list = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_tools, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_tools, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_tool_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    if (next < argc)
        return print_one(list, argv[next], options.wants_json);
    return tools_print(&options, list);
}

const struct command command_tools = {
    .group = "Tools",
    .name = "tools",
    .operands = "[TOOL]",
    .summary = "List the tools, or show the parameters of one",
    .options = &option_table_output_names,
    .run = tools_run,
};
