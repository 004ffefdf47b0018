// SPDX-License-Identifier: Apache-2.0
#include "mcp/sandbox_tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "host/sandbox/sandbox.h"
#include "mcp/session.h"

enum { LIST_MAX = 200 }; /* sandboxes in a list */

/* --- list_sandboxes --------------------------------------------------------------------------- */

static json_t *list_schema(void)
{
    return json_pack("{s:s, s:{}, s:b}", "type", "object", "properties", "additionalProperties", 0);
}

static void add_sandbox(const struct sandbox_info *info, struct buf *out)
{
    char when[TIME_TEXT_SIZE];

    format_time_ms(info->created_ms, when);
    (void)buf_printf(out, "%s  %s  %s  template %s, created %s\n", info->id,
                     info->name[0] ? info->name : "-", sandbox_state_name(info->state),
                     info->template, when);
}

static int run_list(struct host *host, const struct caller *caller, const json_t *arguments,
                    struct buf *out, struct err *err)
{
    struct sandbox_info *list = NULL;
    size_t count = 0;

    (void)arguments, (void)err;
    sandbox_list(host, caller, NULL, 0, &list, &count);
    for (size_t i = 0; i < count; i++) {
        if (i < LIST_MAX)
            add_sandbox(&list[i], out);
        sandbox_info_done(&list[i]);
    }
    free(list);
    if (count == 0)
        (void)buf_add_str(out, "(no sandboxes)");
    if (count > LIST_MAX)
        (void)buf_printf(out, "[%zu more are not shown]\n", count - LIST_MAX);
    return 0;
}

/* --- create_sandbox --------------------------------------------------------------------------- */

static json_t *create_schema(void)
{
    return json_pack("{s:s, s:{s:{s:s, s:s}, s:{s:s, s:s}}, s:b}", "type", "object", "properties",
                     "name", "type", "string", "description", "Name of the sandbox; default: none.",
                     "template", "type", "string", "description",
                     "Template of its files; default: that of the daemon.", "additionalProperties",
                     0);
}

/* Reads an optional text. Returns 0, or -EINVAL with err set. */
static int argument_read(const json_t *arguments, const char *key, const char **ret,
                         struct err *err)
{
    const json_t *value = json_object_get(arguments, key);

    *ret = json_string_length(value) > 0 ? json_string_value(value) : NULL;
    if (value && !json_is_string(value))
        return err_set(err, ERR_INVALID, "'%s' must be a text", key);
    return 0;
}

static int run_create(struct host *host, const struct caller *caller, const json_t *arguments,
                      struct buf *out, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    const struct label label = { .key = "made-by", .value = "mcp" };
    struct sandbox_spec spec = {
        .caller = caller,
        .labels = &label,
        .label_count = 1,
        .idle_timeout_ms = MCP_IDLE_MS,
        .idle_action = ACTION_KILL,
    };
    int r = argument_read(arguments, "name", &spec.name, err);

    if (r == 0)
        r = argument_read(arguments, "template", &spec.template, err);
    if (r == 0 && spec.name && !is_handle(spec.name, SANDBOX_NAME_MAX))
        r = err_set(err, ERR_INVALID, "'%.60s' is not a valid name: letters, digits, '-', '_', '.'",
                    spec.name);
    if (r == 0 && spec.template && !is_name(spec.template))
        r = err_set(err, ERR_INVALID, "'%.60s' is not a valid template", spec.template);
    if (r == 0)
        r = sandbox_create(host, &spec, &sandbox, err);
    if (r < 0)
        return r;
    sandbox_get_info(sandbox, false, &info);
    (void)buf_printf(out,
                     "sandbox %s was created from template %s. Use it with sandbox=%s in any tool; "
                     "it is removed after an hour without use.",
                     info.id, info.template, info.id);
    return 0;
}

/* --- table ------------------------------------------------------------------------------------ */

static const struct mcp_sandbox_tool tools[] = {
    { "list_sandboxes", "List sandboxes",
      "Lists the sandboxes that exist: id, name, state. Every tool takes an id or a name as "
      "sandbox.",
      .is_read_only = true, .is_idempotent = true, .schema = list_schema, .run = run_list },
    { "create_sandbox", "Create a sandbox",
      "Creates another sandbox with files of its own and returns its id, for experiments beside "
      "the present one. To start from the present files, use fork.",
      .schema = create_schema, .run = run_create },
};

const struct mcp_sandbox_tool *mcp_sandbox_tool_at(size_t index)
{
    return index < ARRAY_SIZE(tools) ? &tools[index] : NULL;
}

const struct mcp_sandbox_tool *mcp_sandbox_tool_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
    return NULL;
}

static int arguments_check(const struct mcp_sandbox_tool *tool, const json_t *arguments,
                           struct err *err)
{
    cleanup_json json_t *schema = tool->schema();
    json_t *known = json_object_get(schema, "properties"), *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
        if (!json_object_get(known, key))
            return err_set(err, ERR_INVALID, "%s has no parameter '%.60s'%s", tool->name, key,
                           json_object_size(known) > 0 ? "; it takes name and template"
                                                       : "; it takes none");
    return 0;
}

int mcp_sandbox_tool_run(const struct mcp_sandbox_tool *tool, struct host *host,
                         const struct caller *caller, const json_t *arguments, struct buf *out,
                         struct err *err)
{
    int r = arguments_check(tool, arguments, err);

    return r < 0 ? r : tool->run(host, caller, arguments, out, err);
}
