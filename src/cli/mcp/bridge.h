/* A line of JSON on stdin is a message to the daemon's /mcp; what it answers, as it comes, are
 * lines on stdout. Nothing else ever goes there. */
#pragma once

#include <stdbool.h>

struct holt;
struct mcp_sandbox;

struct mcp_bridge_options {
    struct holt *holt;
    struct mcp_sandbox *sandbox;
    bool is_read_only;
};

/* Until stdin has ended and all is answered, or a signal comes, or nobody reads stdout any more:
 * the exit status. */
int mcp_bridge_run(const struct mcp_bridge_options *options);
