/* The sandbox that `holt mcp` is about: the one that was named, or one for a directory, which is
 * made when the first tool is called and found again the next time. */
#pragma once

#include <stdbool.h>

#include "base/lock.h"

struct holt;
struct holt_error;

enum { MCP_NAME_SIZE = 64 };

/* The snapshot that says that the workspace was copied, and to which everything can go back. */
#define MCP_WORKSPACE_SNAPSHOT "workspace"

struct mcp_sandbox {
    const char *sandbox;   /* id or name; NULL: that of the directory */
    const char *template;  /* for making one; NULL: the daemon's default */
    const char *workspace; /* a directory to copy into it; NULL: none */
    bool is_temporary;     /* it is this process's alone, and goes with it */

    char *directory; /* whose sandbox it is; NULL where one was named */
    char name[MCP_NAME_SIZE];
    struct lock lock;
    bool is_ready;
};

/* Finds out its name: 0, or the exit status after a report. */
int mcp_sandbox_init(struct mcp_sandbox *sandbox);
void mcp_sandbox_done(struct mcp_sandbox *sandbox);

/* Its id or name. */
const char *mcp_sandbox_name(const struct mcp_sandbox *sandbox);

/* Makes it, if need be, and copies the workspace, if that was not done yet: 0 or -1. From any
 * thread. */
int mcp_sandbox_prepare(struct mcp_sandbox *sandbox, struct holt *holt, struct holt_error *error);

/* Removes it, if it is temporary and was made. */
void mcp_sandbox_remove(struct mcp_sandbox *sandbox, struct holt *holt);
