// SPDX-License-Identifier: Apache-2.0
#include "mcp/tools.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "toolbox/table.h"
#include "toolbox/tool.h"
#include "toolbox/tool_json.h"

static json_t *tool_describe(const struct tool *tool)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:{s:s, s:b, s:b, s:b, s:b}}", "name", tool->name,
                     "title", tool->title, "description", tool->about, "inputSchema",
                     tool_schema_json(tool), "annotations", "title", tool->title, "readOnlyHint",
                     tool->is_read_only, "destructiveHint", tool->destroys, "idempotentHint",
                     tool->is_idempotent, "openWorldHint", tool->is_open);
}

json_t *mcp_tools_json(bool is_read_only)
{
    cleanup_json json_t *list = json_array();
    const struct tool *tool;

    for (size_t i = 0; (tool = tool_at(i)); i++)
        if (!is_read_only || tool->is_read_only)
            if (json_array_append_new(list, tool_describe(tool)) < 0)
                return NULL;
    return json_pack("{s:O}", "tools", list);
}

static json_t *block_json(const struct tool_block *block)
{
    if (block->mime)
        return json_pack("{s:s, s:s%, s:s}", "type", "image", "data", block->text, block->len,
                         "mimeType", block->mime);
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
