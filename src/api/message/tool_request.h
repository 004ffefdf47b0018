/* What clients ask of tools. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "toolbox/tool.h"

struct err;

struct tool_call_request {
    const char *sandbox; /* inside the message, as all texts */
    struct tool_request request;
};

/* A holt.v1.ExecuteToolRequest. Parameters are left as they are: what is wrong with them is for the
 * model to read. */
int tool_call_request_parse(const json_t *message, bool is_read_only, struct tool_call_request *ret,
                            struct err *err);
