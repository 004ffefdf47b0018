/* Checks the parameters that a model gives to a tool against the table of tools. */
#pragma once

#include <jansson.h>

#include "wire/tool.h"

struct buf;
struct tool;

/* Fills in one value for each parameter of the table, with defaults for absent ones. Strings point
 * into the object and the table, which must outlive *ret. Returns -EINVAL with a message for the
 * model in *problem. In both cases the caller frees *ret with tool_params_done. */
int tool_params_parse(const struct tool *tool, const json_t *object, struct tool_values *ret,
                      struct buf *problem);
void tool_params_done(struct tool_values *values);
