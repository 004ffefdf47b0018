/* The sandbox that a call works in: the one that it names, or that of its token and workspace. */
#pragma once

#include <stdbool.h>

#include "net/policy.h"

struct caller;
struct err;
struct host;
struct sandbox;

/* What a request without a session says about its sandbox. */
struct mcp_workspace {
    struct host *host;
    const struct caller *caller;
    const unsigned char *token; /* MCP_OWNER_BYTES bytes that stand for the token */
    const char *sandbox;        /* id or name; NULL: that of token, template and workspace */
    const char *template;       /* NULL: the daemon's default */
    const char *name;           /* of the workspace; NULL: the default one */
};

/* Makes the sandbox able to run tools: starts or resumes it if need be. */
int mcp_sandbox_wake(struct sandbox *sandbox, struct err *err);

/* Returns the mode of the network of the sandbox; of a new one, if there is none yet. */
enum net_mode mcp_workspace_network(const struct mcp_workspace *workspace);

/* Returns the sandbox of a workspace, with a reference. It is the same for every request with the
 * same token, template and workspace, also after a restart of the daemon; the first one makes it if
 * may_make is set. */
int mcp_workspace_sandbox(const struct mcp_workspace *workspace, bool may_make,
                          struct sandbox **ret, struct err *err);
