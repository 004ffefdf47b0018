// SPDX-License-Identifier: Apache-2.0
#include "mcp/task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/text/parse.h"
#include "host/sandbox/sandbox.h"
#include "mcp/message.h"
#include "mcp/tools.h"
#include "toolbox/table.h"
#include "toolbox/tool.h"

enum {
    RANDOM_BYTES = 8,
    TTL_MS = 60 * 60 * 1000,
    POLL_MS = 2000,
};

#define CALL_PREFIX "task-"

/* Read-only git tools have a short time limit of their own. */
bool mcp_task_is_for(const struct tool *tool)
{
    static const char *const others[] = { "process_wait", "snapshot", "rollback", "diff", "fork" };

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (strcmp(others[i], tool->name) == 0)
            return true;
    return tool->work == TOOL_BY_PROCESS && !tool->is_read_only;
}

/* The time is part of the id, because a task says when it was created. */
int mcp_task_call_make(char ret[MCP_TASK_CALL_SIZE], struct err *err)
{
    unsigned char bytes[RANDOM_BYTES];
    char digits[2 * RANDOM_BYTES + 1];

    if (random_bytes(bytes, sizeof(bytes)) < 0)
        return err_sys(err, -EIO, "get random bytes");
    hex_encode(bytes, sizeof(bytes), digits);
    (void)snprintf(ret, MCP_TASK_CALL_SIZE, CALL_PREFIX "%" PRIx64 "-%s", clock_wall_ms(), digits);
    return 0;
}

static json_t *task_json(const char *task_id, const char *call_id, const char *status)
{
    uint64_t created_ms = strtoull(call_id + strlen(CALL_PREFIX), NULL, 16);
    char created[TIME_TEXT_SIZE], updated[TIME_TEXT_SIZE];

    format_time_ms(created_ms, created);
    format_time_ms(clock_wall_ms(), updated);
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i}", "taskId", task_id, "status", status,
                     "createdAt", created, "lastUpdatedAt", updated, "ttlMs", TTL_MS,
                     "pollIntervalMs", POLL_MS);
}

json_t *mcp_task_created(const char *sandbox_id, const char *call_id)
{
    char task_id[MCP_TASK_ID_SIZE];
    json_t *task;

    (void)snprintf(task_id, sizeof(task_id), "%s:%s", sandbox_id, call_id);
    task = task_json(task_id, call_id, "working");
    (void)json_object_set_new(task, "resultType", json_string("task"));
    return task;
}

bool mcp_task_has_method(const char *method)
{
    return strcmp(method, "tasks/get") == 0 || strcmp(method, "tasks/update") == 0 ||
           strcmp(method, "tasks/cancel") == 0;
}

/* Reports the end of a call that has one. */
static json_t *finished_json(const char *task_id, const char *call_id, struct tool_call *call)
{
    struct tool_event event;
    struct err err = { 0 };
    json_t *task, *result;

    if (tool_next(call, &event, &err) == 0 && event.kind == TOOL_RESULT) {
        if (event.result->is_canceled)
            return task_json(task_id, call_id, "cancelled");
        result = mcp_tool_result_json(event.result);
        (void)json_object_set_new(result, "resultType", json_string("complete"));
        task = task_json(task_id, call_id, "completed");
        (void)json_object_set_new(task, "result", result);
        return task;
    }
    task = task_json(task_id, call_id, "failed");
    (void)json_object_set_new(
        task, "error", json_pack("{s:i, s:s}", "code", (int)MCP_INTERNAL, "message", err.msg));
    return task;
}

static void task_unknown(struct mcp_fault *fault)
{
    (void)mcp_fault(fault, MCP_INVALID_PARAMS, "there is no such task (any more)");
}

bool mcp_task_id_read(const json_t *value, struct mcp_task_id *ret)
{
    const char *text = json_string_value(value), *colon = text ? strchr(text, ':') : NULL;

    if (!colon || strlen(text) != json_string_length(value) || strlen(text) >= MCP_TASK_ID_SIZE ||
        strlen(colon + 1) >= MCP_TASK_CALL_SIZE ||
        strncmp(colon + 1, CALL_PREFIX, strlen(CALL_PREFIX)) != 0)
        return false;
    (void)snprintf(ret->sandbox, sizeof(ret->sandbox), "%.*s", (int)(colon - text), text);
    ret->call = colon + 1;
    return is_handle(ret->sandbox, SANDBOX_NAME_MAX);
}

static json_t *found_answer(const char *method, const char *task_id, struct sandbox *sandbox,
                            struct mcp_fault *fault)
{
    const char *call_id = strchr(task_id, ':') + 1;
    struct tool_call *call = NULL;
    struct err err = { 0 };
    json_t *ret = NULL;
    bool is_over;

    if (tool_find_call(sandbox, call_id, &call, &is_over, &err) < 0) {
        if (err.kind != ERR_NOT_FOUND)
            (void)mcp_fault(fault, MCP_INTERNAL, "%s", err.msg);
        return NULL;
    }
    if (strcmp(method, "tasks/cancel") == 0 && !is_over)
        tool_cancel(call);
    if (strcmp(method, "tasks/get") != 0)
        ret = json_object();
    else if (is_over)
        ret = finished_json(task_id, call_id, call);
    else
        ret = task_json(task_id, call_id, "working");
    tool_close(call);
    return ret;
}

json_t *mcp_task_answer(struct host *host, const struct caller *caller,
                        const struct mcp_message *message, struct mcp_fault *fault)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    const json_t *id = json_object_get(message->params, "taskId");
    struct mcp_task_id task;
    struct err err = { 0 };

    if (strcmp(message->method, "tasks/cancel") == 0 && !caller_may_change(caller)) {
        (void)mcp_fault(fault, MCP_INVALID_PARAMS, "this token is read-only");
        return NULL;
    }
    task_unknown(fault);
    if (!mcp_task_id_read(id, &task) ||
        sandbox_find(host, caller, task.sandbox, &sandbox, &err) < 0)
        return NULL;
    return found_answer(message->method, json_string_value(id), sandbox, fault);
}
