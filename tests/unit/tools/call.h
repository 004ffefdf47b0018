/* Calls tools of a tool worker in the process of the test, with parameters as JSON. */
#pragma once

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "check.h"
#include "toolbox/table.h"
#include "tools/tool.h"

static int64_t tools_number(const struct tool_param *param, const json_t *given)
{
    if (json_is_boolean(given))
        return json_is_true(given);
    if (param->type != TOOL_CHOICE || !given)
        return given ? json_integer_value(given) : param->number;
    for (int i = 0; i < TOOL_CHOICES_MAX && param->choices[i]; i++)
        if (strcmp(param->choices[i], json_string_value(given)) == 0)
            return i;
    CHECK(false, "(no choice '%s')", json_string_value(given));
    return 0;
}

/* Calls a tool; the caller frees the reply with tools_reply_done. */
static inline void tools_call(const char *name, const json_t *params, struct tool_reply *reply)
{
    static tool_fn *const functions[WORKER_TOOLS] = {
        tool_read_file, tool_write_file, tool_edit_file, tool_multi_edit,
        tool_list_dir,  tool_grep,       tool_glob,
    };
    const struct tool *tool = tool_find(name);
    struct tool_values values = { 0 };
    const char *key;
    json_t *each;

    CHECK(tool, "(no tool '%s')", name);
    values.count = tool_param_count(tool);
    for (size_t i = 0; i < values.count; i++) {
        const struct tool_param *param = &tool->params[i];
        const json_t *given = json_object_get(params, param->name);
        const char *text = given ? json_string_value(given) : param->text;

        values.at[i].type = param->type;
        if (param->type == TOOL_TEXT) {
            values.at[i].text.data = text ? text : "";
            values.at[i].text.len = given ? json_string_length(given) : text ? strlen(text) : 0;
        } else {
            values.at[i].number = tools_number(param, given);
        }
    }
    json_object_foreach((json_t *)(uintptr_t)params, key, each) {
        bool is_known = false;

        for (size_t i = 0; i < values.count; i++)
            is_known |= strcmp(tool->params[i].name, key) == 0;
        CHECK(is_known, "(%s has no parameter '%s')", name, key);
    }
    *reply = (struct tool_reply){ .content = BUF_INIT(TOOL_CONTENT_MAX),
                                  .changed = BUF_INIT(TOOL_CONTENT_MAX) };
    functions[tool->worker](&values, reply);
}

static inline void tools_reply_done(struct tool_reply *reply)
{
    buf_done(&reply->content);
    buf_done(&reply->changed);
}

/* For tests in other languages: reads lines of JSON {"tool":, "params":} from stdin and writes
 * lines
 * {"text":, "flags":}. */
static inline int tools_answer_lines(void)
{
    cleanup_free char *line = NULL;
    size_t cap = 0;
    ssize_t len;

    while ((len = getline(&line, &cap, stdin)) > 0) {
        cleanup_json json_t *call = json_loadb(line, (size_t)len, JSON_ALLOW_NUL, NULL);
        cleanup_json json_t *answer = NULL;
        cleanup_free char *text = NULL;
        struct tool_reply reply;

        CHECK(call, "(not JSON: %s)", line);
        tools_call(json_string_value(json_object_get(call, "tool")),
                   json_object_get(call, "params"), &reply);
        answer = json_pack("{s:s#, s:i}", "text", reply.content.data ? reply.content.data : "",
                           reply.content.len, "flags", (int)reply.outcome.flags);
        CHECK(answer, "(the reply is not UTF-8)");
        text = json_dumps(answer, JSON_COMPACT);
        (void)puts(text);
        (void)fflush(stdout);
        tools_reply_done(&reply);
    }
    return 0;
}
