/* Tools and their results as JSON: what ToolService and MCP say alike. */
#pragma once

#include <jansson.h>

struct tool;
struct tool_result;

/* JSON Schema of a tool's parameters, or NULL without memory. Other names of parameters are not in
 * it: a model needs one. */
json_t *tool_schema_json(const struct tool *tool);

/* A holt.v1.Tool. */
json_t *tool_json(const struct tool *tool);

/* A holt.v1.ExecuteToolResponse. What is false, empty or zero is left out, but for is_error,
 * duration and tier. */
json_t *tool_result_json(const struct tool_result *result);
