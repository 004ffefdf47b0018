/* Tools that are about sandboxes and not in one: list_sandboxes, create_sandbox. What they return
 * is a handle for the parameter `sandbox` of every other tool. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct caller;
struct err;
struct host;

struct mcp_sandbox_tool {
    const char *name, *title, *about;
    bool is_read_only;
    bool is_idempotent;

    /* {"type": "object", ...}; NULL: no memory. */
    json_t *(*schema)(void);

    /* Appends the text of the result. Returns 0, or negative with err set, for the model to read.
     */
    int (*run)(struct host *host, const struct caller *caller, const json_t *arguments,
               struct buf *out, struct err *err);
};

/* Returns the tool at an index, from 0; NULL behind the last one. */
const struct mcp_sandbox_tool *mcp_sandbox_tool_at(size_t index);

/* Runs a tool after checking that it has all arguments. */
int mcp_sandbox_tool_run(const struct mcp_sandbox_tool *tool, struct host *host,
                         const struct caller *caller, const json_t *arguments, struct buf *out,
                         struct err *err);

/* Finds a tool by name, or returns NULL. */
const struct mcp_sandbox_tool *mcp_sandbox_tool_find(const char *name);
