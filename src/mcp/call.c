// SPDX-License-Identifier: Apache-2.0
#include "mcp/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/text/plain.h"
#include "base/xalloc.h"
#include "host/sandbox/info.h"
#include "host/sandbox/sandbox.h"
#include "http/limits.h"
#include "mcp/message.h"
#include "mcp/sandbox_tools.h"
#include "mcp/session.h"
#include "mcp/stateless.h"
#include "mcp/task.h"
#include "mcp/tools.h"
#include "mcp/workspace.h"
#include "toolbox/table.h"
#include "toolbox/tool.h"

enum {
    PROGRESS_NS = 100 * 1000 * 1000, /* between two notifications at least */
    PROGRESS_TEXT_MAX = 200,
    PROGRESS_BYTES = 4096, /* of output, at most, in which the last line is looked for */
    SANDBOX_TOOL_TEXT_MAX = 256 * 1024,
};

struct mcp_call {
    struct mcp_caller caller;
    struct mcp_slot slot;
    json_t *progress_token;
    struct sandbox *sandbox;
    struct tool_call *call;
    char task_call[MCP_TASK_CALL_SIZE]; /* its id if it may become a task; "": it may not */
    bool is_task;
    json_t *result; /* of a call that is over already */
    struct err err; /* why it has not begun */
    bool is_failed;
    uint64_t progress; /* bytes that the tool has said */
    uint64_t told_ns;
    uint64_t said_ns; /* when the tool has said something last, or began */
};

static int meta_parse(const json_t *meta, struct mcp_call_request *ret, struct mcp_fault *fault)
{
    const json_t *token = json_object_get(meta, "progressToken");
    const json_t *id = json_object_get(meta, "holt/toolCallId");
    const json_t *changed = json_object_get(meta, "holt/changed");

    if (meta && !json_is_object(meta))
        return mcp_fault(fault, MCP_INVALID_PARAMS, "'_meta' must be an object");
    if (token && !json_is_string(token) && !json_is_number(token))
        return mcp_fault(fault, MCP_INVALID_PARAMS, "'progressToken' must be a text or a number");
    if (json_string_length(token) > MCP_ID_MAX)
        return mcp_fault(fault, MCP_INVALID_PARAMS, "'progressToken' is longer than %d bytes",
                         MCP_ID_MAX);
    if (id && (!json_is_string(id) || json_string_length(id) > TOOL_ID_MAX ||
               strlen(json_string_value(id)) != json_string_length(id)))
        return mcp_fault(fault, MCP_INVALID_PARAMS,
                         "'holt/toolCallId' must be a text of at most %d bytes", TOOL_ID_MAX);
    if (changed && !json_is_boolean(changed))
        return mcp_fault(fault, MCP_INVALID_PARAMS, "'holt/changed' must be true or false");
    ret->progress_token = token;
    ret->call_id = json_string_value(id);
    ret->wants_changed = json_is_true(changed);
    return 0;
}

int mcp_call_request_parse(const json_t *params, struct mcp_call_request *ret,
                           struct mcp_fault *fault)
{
    const char *name = json_string_value(json_object_get(params, "name"));
    const json_t *arguments = json_object_get(params, "arguments");

    *ret = (struct mcp_call_request){ .tool = name ? tool_find(name) : NULL,
                                      .sandbox_tool = name ? mcp_sandbox_tool_find(name) : NULL };
    if (!name)
        return mcp_fault(fault, MCP_INVALID_PARAMS, "'name' must be that of a tool");
    if (!ret->tool && !ret->sandbox_tool)
        return mcp_fault(fault, MCP_INVALID_PARAMS, "there is no tool '%.64s'", name);
    if (arguments && !json_is_object(arguments))
        return mcp_fault(fault, MCP_INVALID_PARAMS, "'arguments' must be an object");
    ret->arguments = arguments;
    return meta_parse(json_object_get(params, "_meta"), ret, fault);
}

/* Calls without a session are cancelled by the end of their connection alone. Returns false when
 * the call is cancelled. */
static bool slot_begin(struct mcp_call *call)
{
    return !call->caller.session ||
           mcp_session_begin(call->caller.session, &call->slot, call->call);
}

/* The model reads why its sandbox is not there, and can choose another one. */
static int handle_fail(struct mcp_call *call, const struct err *err)
{
    cleanup_free char *text =
        xasprintf("%s\nlist_sandboxes lists those that exist; without '" MCP_SANDBOX_PARAM
                  "', a tool works in that of the workspace.",
                  err->msg);

    call->result = mcp_text_result_json(text, strlen(text), true);
    return 0;
}

/* Finds the sandbox that the arguments name. Returns 1, or 0 if the call is over. */
static int handle_find(struct mcp_call *call, const json_t *handle, struct err *err)
{
    const char *name = json_string_value(handle);

    if (!name || !is_handle(name, SANDBOX_NAME_MAX)) {
        (void)err_set(err, ERR_INVALID, "'" MCP_SANDBOX_PARAM "' must be the id or name of one");
        return handle_fail(call, err);
    }
    return sandbox_find(call->caller.host, call->caller.caller, name, &call->sandbox, err) < 0
               ? handle_fail(call, err)
               : 1;
}

/* Finds the sandbox of a call, able to run tools. Returns 1, 0 if the call is over, or negative. */
static int call_find_sandbox(struct mcp_call *call, const json_t *arguments, struct err *err)
{
    const struct mcp_caller *caller = &call->caller;
    const json_t *handle = json_object_get(arguments, MCP_SANDBOX_PARAM);
    int r;

    if (handle)
        r = handle_find(call, handle, err);
    else if (caller->session)
        r = mcp_session_sandbox(caller->session, caller->may_wake, &call->sandbox, err);
    else
        r = mcp_workspace_sandbox(caller->workspace, caller->may_wake, &call->sandbox, err);
    if (r < 0 || !call->sandbox)
        return r;
    r = caller->may_wake ? mcp_sandbox_wake(call->sandbox, err) : 0;
    return r < 0 ? r : 1;
}

/* Executes a tool that is not in a sandbox; it needs no time to speak of. */
static int sandbox_tool_run(struct mcp_call *call, const struct mcp_call_request *request,
                            struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(SANDBOX_TOOL_TEXT_MAX);
    int r = mcp_sandbox_tool_run(request->sandbox_tool, call->caller.host, call->caller.caller,
                                 request->arguments, &text, err);

    if (r < 0) {
        const char *remedy = err_remedy_of(err);

        buf_clear(&text);
        (void)buf_printf(&text, "%s%s%s", err->msg, remedy ? "\n" : "", remedy ? remedy : "");
    }
    call->result = mcp_text_result_json(text.data ? text.data : "", text.len, r < 0);
    return 0;
}

/* Opens the call of the toolbox, whose tools know nothing of handles. */
static int toolbox_open(struct mcp_call *call, const struct mcp_call_request *request,
                        struct err *err)
{
    cleanup_json json_t *arguments = json_copy((json_t *)(uintptr_t)request->arguments);
    const struct tool_request wanted = {
        .name = request->tool->name,
        .params = arguments,
        .call_id = call->task_call[0] ? call->task_call : request->call_id,
        .wants_changed = request->wants_changed,
        .snapshot = -1,
        .is_read_only = call->caller.is_read_only,
        .is_background = call->task_call[0],
    };

    if (arguments)
        (void)json_object_del(arguments, MCP_SANDBOX_PARAM);
    return tool_open(call->sandbox, &wanted, call->caller.connection_fd, &call->call, err);
}

static int begin(struct mcp_call *call, const struct mcp_call_request *request, struct err *err)
{
    bool is_read_only =
        request->tool ? request->tool->is_read_only : request->sandbox_tool->is_read_only;
    int r;

    if (call->caller.is_read_only && !is_read_only)
        return err_set(err, ERR_DENIED, "this client is read-only and cannot use %s",
                       request->tool ? request->tool->name : request->sandbox_tool->name);
    if (!request->tool)
        return sandbox_tool_run(call, request, err);
    if (call->caller.has_tasks && !call->caller.is_read_only && !request->call_id &&
        !request->progress_token && mcp_task_is_for(request->tool) &&
        mcp_task_call_make(call->task_call, err) < 0)
        return -EIO;
    r = call_find_sandbox(call, request->arguments, err);
    if (r > 0)
        r = toolbox_open(call, request, err);
    if (r == 0 && !slot_begin(call))
        r = err_set(err, ERR_CANCELED, "the call was cancelled");
    return r;
}

struct mcp_call *mcp_call_new(const struct mcp_caller *caller, json_t *id,
                              const struct mcp_call_request *request)
{
    struct mcp_call *call = xcalloc(1, sizeof(*call));

    call->caller = *caller;
    call->said_ns = clock_ns();
    call->slot = (struct mcp_slot){ .id = json_incref(id), .connection_fd = caller->connection_fd };
    if (request->progress_token)
        call->progress_token = json_incref((json_t *)(uintptr_t)request->progress_token);
    if (caller->session)
        mcp_session_enter(caller->session, &call->slot);
    call->is_failed = !slot_begin(call) || begin(call, request, &call->err) < 0;
    return call;
}

/* Where the last line that says something begins and ends, and not more than fits a status line. */
static json_t *last_line(const char *text, size_t len)
{
    size_t start;
    json_t *line;

    while (len > 0 && strchr(" \t\r\n", text[len - 1]))
        len--;
    start = len;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    if (len - start > PROGRESS_TEXT_MAX) {
        len = start + PROGRESS_TEXT_MAX;
        while (len > start && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--;
    }
    line = json_stringn(text + start, len - start);
    return line ? line : json_string("");
}

/* The same without what is for a terminal alone. */
static json_t *last_plain_line(const char *text, size_t len)
{
    cleanup_with(plain_done) struct plain_text plain = PLAIN_TEXT_INIT;
    cleanup_with(buf_done) struct buf lines = BUF_INIT(PROGRESS_BYTES + PLAIN_LINE_MAX);
    size_t from = len > PROGRESS_BYTES ? len - PROGRESS_BYTES : 0;

    while (from < len && ((unsigned char)text[from] & 0xc0) == 0x80)
        from++;
    (void)plain_add(&plain, text + from, len - from, &lines);
    (void)plain_end(&plain, &lines);
    return last_line(lines.data ? lines.data : "", lines.len);
}

static json_t *silence_text(const struct mcp_call *call, uint64_t now)
{
    return json_sprintf("still running, no output for %d s",
                        (int)((now - call->said_ns) / 1000000000));
}

/* NULL: not requested, or too soon. A keepalive counts as progress, which must grow. */
static json_t *progress_json(struct mcp_call *call, const char *text, size_t len)
{
    uint64_t now = clock_ns();

    if (len > 0)
        call->said_ns = now;

    call->progress += len > 0 ? len : 1;
    if (!call->progress_token || (call->told_ns != 0 && now - call->told_ns < PROGRESS_NS))
        return NULL;
    call->told_ns = now;
    return json_pack("{s:s, s:s, s:{s:O, s:I, s:o}}", "jsonrpc", "2.0", "method",
                     "notifications/progress", "params", "progressToken", call->progress_token,
                     "progress", (json_int_t)call->progress, "message",
                     len > 0 ? last_plain_line(text, len) : silence_text(call, now));
}

static bool is_cancelled(struct mcp_call *call)
{
    return !slot_begin(call);
}

static json_t *reply_make(const struct mcp_call *call, json_t *reply)
{
    return call->caller.session ? reply : mcp_stateless_reply(reply);
}

static int fail(struct mcp_call *call, const struct err *why, json_t **ret)
{
    *ret = is_cancelled(call) ? NULL : reply_make(call, mcp_failure_of(call->slot.id, why));
    return 0;
}

int mcp_call_next(struct mcp_call *call, json_t **ret, struct err *err)
{
    struct tool_event event;
    int r;

    *ret = NULL;
    if (call->is_failed)
        return fail(call, &call->err, ret);
    if (call->result) {
        *ret = reply_make(call, mcp_result(call->slot.id, TAKE_PTR(call->result)));
        return 0;
    }
    while ((r = tool_next(call->call, &event, err)) == 0 && event.kind == TOOL_PROGRESS) {
        *ret = progress_json(call, event.progress.text, event.progress.len);
        if (*ret || event.progress.len == 0)
            return 1;
    }
    if (r == -ECANCELED && !is_cancelled(call))
        return r;
    if (r < 0)
        return fail(call, err, ret);
    if (!is_cancelled(call))
        *ret = reply_make(call, mcp_result(call->slot.id, mcp_tool_result_json(event.result)));
    return 0;
}

bool mcp_call_may_be_task(const struct mcp_call *call)
{
    return call->task_call[0] && call->call && tool_is_background(call->call);
}

json_t *mcp_call_take_task(struct mcp_call *call)
{
    if (tool_keep(call->call) < 0)
        return NULL;
    call->is_task = true;
    return reply_make(call, mcp_result(call->slot.id, mcp_task_created(sandbox_id(call->sandbox),
                                                                       call->task_call)));
}

/* A call with an id goes on without its client, but the client knows of it only as a task. */
void mcp_call_free(struct mcp_call *call)
{
    if (!call)
        return;
    if (call->task_call[0] && call->call && !call->is_task)
        tool_cancel(call->call);
    if (call->caller.session)
        (void)mcp_session_leave(call->caller.session, &call->slot);
    tool_close(call->call);
    sandbox_unref(call->sandbox);
    json_decref(call->result);
    json_decref(call->slot.id);
    json_decref(call->progress_token);
    free(call);
}
