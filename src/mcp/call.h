/* One tools/call: a request in, progress and one answer out. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct caller;
struct err;
struct host;
struct mcp_call;
struct mcp_fault;
struct mcp_message;
struct mcp_sandbox_tool;
struct mcp_session;
struct mcp_workspace;
struct tool;

/* The parameters; they point into the request. */
struct mcp_call_request {
    const struct tool *tool;                     /* NULL: the next one */
    const struct mcp_sandbox_tool *sandbox_tool; /* NULL: the one above */
    const json_t *arguments;                     /* NULL: none; those of a tool have the sandbox */
    const json_t *progress_token;                /* NULL: progress was not requested */
    const char *call_id;                         /* NULL: none; see toolbox/tool.h */
    bool wants_changed;
};

/* 0 or -1. */
int mcp_call_request_parse(const json_t *params, struct mcp_call_request *ret,
                           struct mcp_fault *fault);

/* The caller. */
struct mcp_caller {
    struct host *host;
    const struct caller *caller;           /* until the call has begun, as the workspace */
    struct mcp_session *session;           /* must outlive the call; NULL: there are none */
    const struct mcp_workspace *workspace; /* of a request without a session; until it has begun */
    bool is_read_only;                     /* other tools are refused */
    bool may_wake;                         /* a sandbox may be made, started or resumed for it */
    bool has_tasks;                        /* it can poll a task instead of waiting */
    int connection_fd;
};

/* Begins it. Whatever goes wrong is an answer, which comes next. */
struct mcp_call *mcp_call_new(const struct mcp_caller *caller, json_t *id,
                              const struct mcp_call_request *request);

/* Waits for the next message: 1 with a progress notification (NULL: a keepalive is due, or the call
 * may become a task), 0 with the reply (NULL: the client has cancelled the call), or -ECANCELED
 * when the client has gone or the daemon stops. */
int mcp_call_next(struct mcp_call *call, json_t **ret, struct err *err);

/* Whether the call may become a task. */
bool mcp_call_may_be_task(const struct mcp_call *call);

/* Makes it one: returns the reply that says so, after which the call goes on without mcp_call; NULL
 * if it is over, or cannot be kept. */
json_t *mcp_call_take_task(struct mcp_call *call);

/* Accepts NULL. */
void mcp_call_free(struct mcp_call *call);
