/* Tools and their results as JSON, for ToolService and MCP. */
#pragma once

#include <jansson.h>

#include "wire/holt_v1.h"

struct arena;
struct tool;
struct tool_result;

/* Returns the JSON Schema of the parameters of a tool, or NULL without memory. It does not contain
 * aliases: a model needs one name. */
json_t *tool_schema_json(const struct tool *tool);

/* Returns the result as a message that points into the result and the arena. */
struct msg_execute_tool_response tool_result_message(const struct tool_result *result,
                                                     struct arena *arena);

/* Returns the result as JSON, or NULL without memory. */
json_t *tool_result_json(const struct tool_result *result);
