// SPDX-License-Identifier: Apache-2.0
/* Searching is not here yet. */
#include "tools/tool.h"

void tool_grep(const struct tool_values *values, struct tool_reply *reply)
{
    (void)values;
    tool_refuse(reply, "grep is not available yet.");
}

void tool_glob(const struct tool_values *values, struct tool_reply *reply)
{
    (void)values;
    tool_refuse(reply, "glob is not available yet.");
}
