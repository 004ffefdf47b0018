/* Tools in the form of the Model Context Protocol. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct tool_result;

/* {"tools": [...]}: all, or those that change nothing. NULL: no memory. */
json_t *mcp_tools_json(bool is_read_only);

/* The parameter of every tool that works in a sandbox: an id or a name. */
#define MCP_SANDBOX_PARAM "sandbox"

/* A CallToolResult. */
json_t *mcp_tool_result_json(const struct tool_result *result);

/* The same of a text alone, which is valid UTF-8. */
json_t *mcp_text_result_json(const char *text, size_t len, bool is_error);
