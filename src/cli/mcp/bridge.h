/* Forwards each line of JSON on stdin to the daemon's /mcp, and writes each message of the replies
 * as a line to stdout. Nothing else is written there. */
#pragma once

#include <stdbool.h>

struct holt;
struct mcp_sandbox;

struct mcp_bridge_options {
    struct holt *holt;
    struct mcp_sandbox *sandbox;
    bool is_read_only;
};

/* Runs until stdin has ended and all requests are answered, a signal arrives, or stdout is closed.
 * Returns the exit status. */
int mcp_bridge_run(const struct mcp_bridge_options *options);
