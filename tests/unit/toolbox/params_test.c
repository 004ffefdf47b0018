// SPDX-License-Identifier: Apache-2.0
/* Parameters of tools: values, defaults, error messages. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "check.h"
#include "toolbox/params.h"
#include "toolbox/table.h"

struct taken {
    json_t *object;
    struct tool_values values;
    struct buf problem;
    int r;
};

static void taken_done(struct taken *taken)
{
    tool_params_done(&taken->values);
    buf_done(&taken->problem);
    json_decref(taken->object);
}

static struct taken take(const char *tool, const char *params)
{
    struct taken taken = { .problem = BUF_INIT(64 << 10) };
    json_error_t error;

    taken.object = json_loads(params, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    CHECK(taken.object, "(%s)", error.text);
    taken.r = tool_params_parse(tool_find(tool), taken.object, &taken.values, &taken.problem);
    CHECK((taken.r < 0) == (taken.problem.len > 0));
    return taken;
}

static void refused(const char *tool, const char *params, const char *why)
{
    cleanup_with(taken_done) struct taken taken = take(tool, params);

    CHECK(taken.r < 0, "(%s was taken)", params);
    CHECK(strstr(taken.problem.data, why), "(got '%s')", taken.problem.data);
}

static void absent_parameters_have_defaults(void)
{
    cleanup_with(taken_done) struct taken taken = take("grep", "{\"pattern\": \"x\"}");

    CHECK(taken.r == 0 && taken.values.count == 12);
    CHECK_TEXT(taken.values.at[GREP_PATTERN].text.data, "x");
    CHECK_TEXT(taken.values.at[GREP_PATH].text.data, ".");
    CHECK_TEXT(taken.values.at[GREP_INCLUDE].text.data, "");
    CHECK(taken.values.at[GREP_MAX].number == 100 && taken.values.at[GREP_LITERAL].number == 0);
    CHECK(taken.values.at[GREP_MODE].type == TOOL_CHOICE && taken.values.at[GREP_MODE].number == 0);
}

static void aliases_are_the_same_parameter(void)
{
    cleanup_with(taken_done) struct taken one = take("read_file", "{\"file_path\": \"a\"}");
    cleanup_with(taken_done) struct taken two = take("bash", "{\"command\": \"ls\"}");
    cleanup_with(taken_done) struct taken both =
        take("bash", "{\"command\": \"ls\", \"cmd\": \"ls\"}");

    CHECK(one.r == 0 && two.r == 0 && both.r == 0);
    CHECK_TEXT(one.values.at[READ_PATH].text.data, "a");
    CHECK_TEXT(two.values.at[0].text.data, "ls");
    refused("bash", "{\"command\": \"ls\", \"cmd\": \"pwd\"}", "different values");
}

static void convertible_values_are_accepted(void)
{
    cleanup_with(taken_done) struct taken taken =
        take("read_file", "{\"path\": \"a\", \"offset\": \"5\", \"limit\": 7.0}");
    cleanup_with(taken_done) struct taken flags =
        take("write_file", "{\"path\": \"a\", \"content\": \"\", \"create_dirs\": \"true\"}");
    cleanup_with(taken_done) struct taken list = take("git_add", "{\"paths\": \"one\"}");
    cleanup_with(taken_done) struct taken nothing =
        take("list_dir", "{\"path\": null, \"depth\": null}");

    CHECK(taken.r == 0 && taken.values.at[READ_OFFSET].number == 5);
    CHECK(taken.values.at[READ_LIMIT].number == 7);
    CHECK(flags.r == 0 && flags.values.at[WRITE_CREATE_DIRS].number == 1);
    CHECK(list.r == 0 && list.values.at[0].count == 1);
    CHECK_TEXT(list.values.at[0].texts[0].data, "one");
    CHECK(nothing.r == 0 && nothing.values.at[LIST_DEPTH].number == 1);
    CHECK_TEXT(nothing.values.at[LIST_PATH].text.data, ".");
}

static void errors_name_the_value_and_the_remedy(void)
{
    refused("read_file", "{\"pth\": \"a\"}", "no parameter 'pth'; did you mean 'path'?");
    refused(
        "read_file", "{\"path\": \"a\", \"encoding\": \"x\"}",
        "read_file takes path (string, required), offset (whole number), limit (whole number).");
    refused("list_snapshots", "{\"a\": 1}", "takes no parameters");
    refused("write_file", "{\"path\": \"a\"}", "needs the parameter 'content'");
    refused("write_file", "{\"path\": \"a\"}", "Example: {\"path\": \"src/main.c\", \"content\":");
    refused("read_file", "{\"path\": 5}", "must be a string, not a number: 5.");
    refused("read_file", "{\"path\": \"a\", \"offset\": \"many\"}",
            "'offset' of read_file must be a whole number, not a string: \"many\".");
    refused("read_file", "{\"path\": \"a\", \"offset\": 1.5}", "must be a whole number");
    refused("read_file", "{\"path\": \"a\", \"offset\": -1}", "must be at least 0, not -1");
    refused("git_log", "{\"n\": 500}", "must be between 1 and 100, not 500");
    refused("grep", "{\"pattern\": \"x\", \"mode\": \"lines\"}",
            "one of content, files, count, not 'lines'");
    refused("grep", "{\"pattern\": \"x\", \"literal\": \"perhaps\"}", "must be a boolean");
    refused("bash", "{\"cmd\": \"\"}", "must not be empty");
    refused("read_file", "{\"path\": \"a\\u0000b\"}", "NUL");
    refused("git_add", "{\"paths\": [\"a\", 5]}", "not a number");
    refused("git_add", "{\"paths\": []}", "needs the parameter 'paths'");
    refused("bash", "[1]", "must be an object, not a list");
}

static void edits_are_checked_one_by_one(void)
{
    cleanup_with(taken_done) struct taken taken =
        take("multi_edit", "{\"path\": \"a\", \"edits\": [{\"old_string\": \"x\", \"new_string\": "
                           "\"\"}, {\"old_string\": \"y\", \"new_string\": \"z\\u0000\", "
                           "\"replace_all\": true}]}");

    CHECK(taken.r == 0 && taken.values.at[MULTI_EDIT_EDITS].count == 2);
    CHECK(!taken.values.at[MULTI_EDIT_EDITS].edits[0].all);
    CHECK(taken.values.at[MULTI_EDIT_EDITS].edits[1].all);
    CHECK(taken.values.at[MULTI_EDIT_EDITS].edits[1].new_text.len == 2);
    refused("multi_edit", "{\"path\": \"a\", \"edits\": [{\"old_string\": \"\"}]}",
            "edit 1 of 'edits' has no old_string");
    refused("multi_edit",
            "{\"path\": \"a\", \"edits\": [{\"old_string\": \"a\", \"new_string\": \"b\"}, 7]}",
            "edit 2 of 'edits' is not an object");
    refused("multi_edit", "{\"path\": \"a\", \"edits\": []}", "needs the parameter 'edits'");
}

static void lists_and_texts_are_bounded(void)
{
    json_t *object = json_object(), *list = json_array();
    cleanup_with(buf_done) struct buf problem = BUF_INIT(4096);
    struct tool_values values;
    char *text = malloc(TOOL_PARAMS_MAX + 2);

    for (int i = 0; i < TOOL_LIST_MAX + 1; i++)
        (void)json_array_append_new(list, json_string("a"));
    (void)json_object_set_new(object, "paths", list);
    CHECK(tool_params_parse(tool_find("git_add"), object, &values, &problem) < 0);
    CHECK(strstr(problem.data, "the maximum is 1024"), "(got '%s')", problem.data);
    tool_params_done(&values);
    json_decref(object);

    memset(text, 'x', TOOL_PARAMS_MAX + 1);
    text[TOOL_PARAMS_MAX + 1] = '\0';
    object = json_pack("{s:s, s:s}", "path", "a", "content", text);
    buf_clear(&problem);
    CHECK(tool_params_parse(tool_find("write_file"), object, &values, &problem) < 0);
    CHECK(strstr(problem.data, "16 MiB"), "(got '%s')", problem.data);
    tool_params_done(&values);
    json_decref(object);
    free(text);
}

/* Finds tools in the table whose defaults are invalid. */
static void every_tool_of_the_table_takes_its_own_defaults(void)
{
    for (size_t i = 0; tool_at(i); i++) {
        const struct tool *tool = tool_at(i);

        for (size_t j = 0; j < tool_param_count(tool); j++) {
            const struct tool_param *param = &tool->params[j];

            CHECK(param->about, "(%s, %s)", tool->name, param->name);
            if (param->type == TOOL_NUMBER)
                CHECK(param->number >= param->least && param->number <= param->most, "(%s, %s)",
                      tool->name, param->name);
        }
    }
}

int main(void)
{
    RUN(absent_parameters_have_defaults);
    RUN(aliases_are_the_same_parameter);
    RUN(convertible_values_are_accepted);
    RUN(errors_name_the_value_and_the_remedy);
    RUN(edits_are_checked_one_by_one);
    RUN(lists_and_texts_are_bounded);
    RUN(every_tool_of_the_table_takes_its_own_defaults);
    return 0;
}
