/* Tools and their results as JSON, for ToolService and MCP. */
#pragma once

#include <jansson.h>

struct buf;
struct tool;
struct tool_result;

/* Returns the JSON Schema of the parameters of a tool, or NULL without memory. It does not contain
 * aliases: a model needs one name. */
json_t *tool_schema_json(const struct tool *tool);

/* Appends a holt.v1.ExecuteToolResponse as text. Returns 0, -ENOBUFS or -ENOMEM. Default values are
 * omitted, except for is_error, duration and tier. */
int tool_result_write(const struct tool_result *result, struct buf *out);

/* Returns the same as a value, or NULL without memory. */
json_t *tool_result_json(const struct tool_result *result);
