/* Tools and their results as JSON: what ToolService and MCP say alike. */
#pragma once

#include <jansson.h>

struct buf;
struct tool;
struct tool_result;

/* JSON Schema of a tool's parameters, or NULL without memory. Other names of parameters are not in
 * it: a model needs one. */
json_t *tool_schema_json(const struct tool *tool);

/* A holt.v1.Tool. */
json_t *tool_json(const struct tool *tool);

/* Appends a holt.v1.ExecuteToolResponse as text: 0, -ENOBUFS or -ENOMEM. What is false, empty or
 * zero is left out, but for is_error, duration and tier. */
int tool_result_write(const struct tool_result *result, struct buf *out);

/* The same as a value, for whoever has more to say in the same message. */
json_t *tool_result_json(const struct tool_result *result);
