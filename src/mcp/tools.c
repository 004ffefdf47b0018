// SPDX-License-Identifier: Apache-2.0
#include "mcp/tools.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "mcp/sandbox_tools.h"
#include "toolbox/table.h"
#include "toolbox/tool.h"
#include "toolbox/tool_json.h"

/* The schema of the toolbox with the sandbox as one more parameter. */
static json_t *schema_json(const struct tool *tool)
{
    json_t *schema = tool_schema_json(tool);

    (void)json_object_set_new(
        json_object_get(schema, "properties"), MCP_SANDBOX_PARAM,
        json_pack("{s:s, s:s}", "type", "string", "description", "Sandbox id or name."));
    return schema;
}

static json_t *tool_describe(const struct tool *tool)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:{s:s, s:b, s:b, s:b, s:b}}", "name", tool->name,
                     "title", tool->title, "description", tool->about, "inputSchema",
                     schema_json(tool), "annotations", "title", tool->title, "readOnlyHint",
                     tool->is_read_only, "destructiveHint", tool->destroys, "idempotentHint",
                     tool->is_idempotent, "openWorldHint", tool->is_open);
}

static json_t *sandbox_tool_describe(const struct mcp_sandbox_tool *tool)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:{s:s, s:b, s:b, s:b, s:b}}", "name", tool->name,
                     "title", tool->title, "description", tool->about, "inputSchema",
                     tool->schema(), "annotations", "title", tool->title, "readOnlyHint",
                     tool->is_read_only, "destructiveHint", 0, "idempotentHint",
                     tool->is_idempotent, "openWorldHint", 0);
}

json_t *mcp_tools_json(bool is_read_only)
{
    cleanup_json json_t *list = json_array();
    const struct mcp_sandbox_tool *sandbox_tool;
    const struct tool *tool;
    int r = 0;

    for (size_t i = 0; (tool = tool_at(i)); i++)
        if (!is_read_only || tool->is_read_only)
            r |= json_array_append_new(list, tool_describe(tool));
    for (size_t i = 0; (sandbox_tool = mcp_sandbox_tool_at(i)); i++)
        if (!is_read_only || sandbox_tool->is_read_only)
            r |= json_array_append_new(list, sandbox_tool_describe(sandbox_tool));
    return r < 0 ? NULL : json_pack("{s:O}", "tools", list);
}

static json_t *block_json(const struct tool_block *block)
{
    if (block->mime)
        return json_pack("{s:s, s:s%, s:s}", "type",
                         strncmp(block->mime, "audio/", 6) == 0 ? "audio" : "image", "data",
                         block->text, block->len, "mimeType", block->mime);
    return json_pack("{s:s, s:s%}", "type", "text", "text", block->text, block->len);
}

/* Facts about the call besides its content. Not structuredContent, because many clients give that
 * to the model instead of the content. */
static json_t *meta_json(const struct tool_result *result)
{
    struct tool_result rest = *result;
    json_t *meta;

    rest.blocks = NULL;
    rest.block_count = 0;
    meta = tool_result_json(&rest);
    (void)json_object_del(meta, "content");
    (void)json_object_del(meta, "isError");
    return meta;
}

json_t *mcp_tool_result_json(const struct tool_result *result)
{
    cleanup_json json_t *content = json_array();

    for (size_t i = 0; i < result->block_count; i++)
        if (json_array_append_new(content, block_json(&result->blocks[i])) < 0)
            return NULL;
    return json_pack("{s:O, s:b, s:{s:o}}", "content", content, "isError", result->is_error,
                     "_meta", "holt/result", meta_json(result));
}

json_t *mcp_text_result_json(const char *text, size_t len, bool is_error)
{
    return json_pack("{s:[{s:s, s:s%}], s:b}", "content", "type", "text", "text", text, len,
                     "isError", is_error);
}
