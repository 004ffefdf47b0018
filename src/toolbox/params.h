/* What a model gives a tool, checked against the table: values, or a text that says what is wrong
 * and how to do it right. */
#pragma once

#include <jansson.h>

#include "wire/tool.h"

struct buf;
struct tool;

/* One value for each parameter of the table, defaults where nothing was given. Texts point into the
 * object and the table, which must stay. 0, or -EINVAL with what the model is to read. Either way
 * the caller ends *ret with tool_params_done. */
int tool_params_take(const struct tool *tool, const json_t *object, struct tool_values *ret,
                     struct buf *problem);
void tool_params_done(struct tool_values *values);
