// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "check.h"
#include "toolbox/table.h"
#include "toolbox/tool.h"
#include "toolbox/tool_json.h"

static json_t *property(const char *tool_name, const char *param, json_t **ret_schema)
{
    const struct tool *tool = tool_find(tool_name);

    CHECK(tool);
    *ret_schema = tool_schema_json(tool);
    CHECK(*ret_schema);
    return json_object_get(json_object_get(*ret_schema, "properties"), param);
}

static void check_text(json_t *value, const char *wanted)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(4096);

    CHECK(value && json_write(value, &text) == 0);
    CHECK_TEXT(text.data, wanted);
}

static void every_tool_has_a_schema(void)
{
    size_t count = 0;

    for (const struct tool *tool; (tool = tool_at(count)); count++) {
        cleanup_json json_t *schema = tool_schema_json(tool);

        CHECK(schema, "(%s)", tool->name);
        CHECK_TEXT(json_string_value(json_object_get(schema, "type")), "object");
        CHECK(json_is_false(json_object_get(schema, "additionalProperties")));
        CHECK(json_object_size(json_object_get(schema, "properties")) == tool_param_count(tool));
        for (size_t i = 0; i < tool_param_count(tool); i++)
            CHECK(json_is_string(json_object_get(
                      json_object_get(json_object_get(schema, "properties"), tool->params[i].name),
                      "description")),
                  "(%s.%s)", tool->name, tool->params[i].name);
    }
    CHECK(count >= 27);
}

static void a_schema_describes_each_parameter(void)
{
    static const struct {
        const char *tool, *param, *schema;
    } cases[] = {
        { "list_dir", "depth",
          "{\"type\":\"integer\",\"default\":1,\"minimum\":1,\"maximum\":64,\"description\":"
          "\"Levels to list; 1 means only the directory itself.\"}" },
        { "glob", "sort",
          "{\"type\":\"string\",\"enum\":[\"name\",\"modified\"],\"default\":\"name\","
          "\"description\":\"Sort by name, or by modification time with the newest first.\"}" },
        { "git_add", "paths",
          "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1,\"maxItems\":1024,"
          "\"description\":\"Files and directories to stage.\"}" },
        { "edit_file", "replace_all",
          "{\"type\":\"boolean\",\"default\":false,\"description\":\"Replace every "
          "occurrence.\"}" },
        { "git_show", "ref",
          "{\"type\":\"string\",\"default\":\"HEAD\",\"description\":\"The commit; default: "
          "HEAD.\"}" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cleanup_json json_t *schema = NULL;

        check_text(property(cases[i].tool, cases[i].param, &schema), cases[i].schema);
    }
}

static void edits_are_objects(void)
{
    cleanup_json json_t *schema = NULL;
    json_t *edits = property("multi_edit", "edits", &schema);

    check_text(json_object_get(schema, "required"), "[\"path\",\"edits\"]");
    check_text(json_object_get(json_object_get(edits, "items"), "required"),
               "[\"old_string\",\"new_string\"]");
}

static void a_result_has_all_fields(void)
{
    const struct tool_block blocks[] = { { "a\0b", 3, NULL }, { "AAAA", 4, "image/png" } };
    const struct tool_change changed[] = { { 'A', "/workspace/x" }, { 'D', "/\xff" } };
    const struct tool_result result = {
        .blocks = blocks,
        .block_count = 2,
        .is_error = true,
        .has_exit_code = true,
        .exit_code = -1,
        .timed_out = true,
        .is_truncated = true,
        .shown = 3,
        .total = UINT64_MAX,
        .handle = "h",
        .duration_ms = 12,
        .tier = 2,
        .snapshot_id = "tool-1",
        .changed = changed,
        .changed_count = 2,
        .is_repeated = true,
    };
    cleanup_json json_t *json = tool_result_json(&result);

    check_text(json, "{\"content\":[{\"text\":\"a\\u0000b\"},{\"image\":{\"data\":\"AAAA\","
                     "\"mimeType\":\"image/png\"}}],\"isError\":true,\"exitCode\":-1,"
                     "\"truncated\":{\"shown\":\"3\",\"total\":\"18446744073709551615\","
                     "\"handle\":\"h\"},\"timedOut\":true,\"durationMs\":\"12\",\"tier\":2,"
                     "\"snapshotId\":\"tool-1\",\"changed\":[{\"kind\":\"A\","
                     "\"path\":\"/workspace/x\"},{\"kind\":\"D\",\"path\":\"/?\"}],"
                     "\"repeatedCall\":true}");
}

static void default_values_are_omitted(void)
{
    cleanup_json json_t *json = tool_result_json(&(struct tool_result){ .tier = 1 });

    check_text(json, "{\"content\":[],\"isError\":false,\"durationMs\":\"0\",\"tier\":1}");
}

int main(void)
{
    RUN(every_tool_has_a_schema);
    RUN(a_schema_describes_each_parameter);
    RUN(edits_are_objects);
    RUN(a_result_has_all_fields);
    RUN(default_values_are_omitted);
    return 0;
}
