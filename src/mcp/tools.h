/* Tools in the form of the Model Context Protocol. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct tool_result;

/* {"tools": [...]}: all, or those that change nothing. NULL: no memory. */
json_t *mcp_tools_json(bool is_read_only);

/* A CallToolResult. */
json_t *mcp_tool_result_json(const struct tool_result *result);
