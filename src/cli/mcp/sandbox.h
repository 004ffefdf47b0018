/* The sandbox of `holt mcp`: a named one, or one per directory, which is created when the first
 * tool is called and found again later. */
#pragma once

#include <stdbool.h>

#include "base/lock.h"

struct holt;
struct holt_error;

enum { MCP_NAME_SIZE = 64 };

/* The snapshot made after the workspace was copied; it is also the state to roll back to. */
#define MCP_WORKSPACE_SNAPSHOT "workspace"

struct mcp_sandbox {
    const char *sandbox;   /* id or name; NULL: the sandbox of the directory */
    const char *template;  /* template for a new one; NULL: the daemon's default */
    const char *workspace; /* a directory to copy into it; NULL: none */
    bool is_temporary;     /* temporary: it belongs to this process and is removed with it */

    char *directory; /* the directory; NULL if a sandbox was named */
    char name[MCP_NAME_SIZE];
    struct lock lock;
    bool is_ready;
};

/* Determines the name. Returns 0, or the exit status after a report. */
int mcp_sandbox_init(struct mcp_sandbox *sandbox);
void mcp_sandbox_done(struct mcp_sandbox *sandbox);

/* Returns the id or name. */
const char *mcp_sandbox_name(const struct mcp_sandbox *sandbox);

/* Creates the sandbox and copies the workspace unless that is done already. Returns 0 or -1.
 * Thread-safe. */
int mcp_sandbox_prepare(struct mcp_sandbox *sandbox, struct holt *holt, struct holt_error *error);

/* Makes the next call of mcp_sandbox_prepare look again: the daemon says that there is no such
 * sandbox. Returns whether that can help. */
bool mcp_sandbox_forget(struct mcp_sandbox *sandbox);

/* Removes a temporary sandbox that was created. */
void mcp_sandbox_remove(struct mcp_sandbox *sandbox, struct holt *holt);
