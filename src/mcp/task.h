/* The Tasks extension of revision 2026-07-28: a call that takes long is answered with a task, which
 * the client polls. A task is a call with an id (toolbox/tool.h): its own id names the sandbox and
 * that call, so the daemon remembers nothing else. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct caller;
struct err;
struct host;
struct mcp_fault;
struct mcp_message;
struct tool;

enum { MCP_TASK_CALL_SIZE = 48, MCP_TASK_ID_SIZE = 200 };

/* Whether calls of the tool may take long. */
bool mcp_task_is_for(const struct tool *tool);

/* Makes the id of the call of a new task. */
int mcp_task_call_make(char ret[MCP_TASK_CALL_SIZE], struct err *err);

/* Returns the result that announces a task; NULL: no memory. */
json_t *mcp_task_created(const char *sandbox_id, const char *call_id);

/* Whether a method is one about tasks. */
bool mcp_task_has_method(const char *method);

/* The id of a task, taken apart. */
struct mcp_task_id {
    char sandbox[MCP_TASK_ID_SIZE];
    const char *call; /* points into the text of the id */
};

/* Whether a value is the id of a task, which need not exist. */
bool mcp_task_id_read(const json_t *value, struct mcp_task_id *ret);

/* Returns the result of such a method for its caller; NULL with fault set. */
json_t *mcp_task_answer(struct host *host, const struct caller *caller,
                        const struct mcp_message *message, struct mcp_fault *fault);
