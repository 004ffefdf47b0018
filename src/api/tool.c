// SPDX-License-Identifier: Apache-2.0
#include "toolbox/tool.h"

#include <stdlib.h>

#include "api/service.h"
#include "api/stream/tool_stream.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/table.h"
#include "toolbox/tool_json.h"

DEFINE_CLEANUP(tool_close, struct tool_call *);

static int result_wait(struct tool_call *tool, const struct tool_result **ret, struct err *err)
{
    struct tool_event event;
    int r;

    do {
        r = tool_next(tool, &event, err);
        if (r < 0)
            return r;
    } while (event.kind != TOOL_RESULT);
    *ret = event.result;
    return 0;
}

/* Thousandths of a CPU; a share above 0 is rounded up to at least 1. */
static uint32_t cpus_milli(double cpus)
{
    uint32_t milli = (uint32_t)(cpus * 1000);

    return cpus > 0 && milli == 0 ? 1 : milli;
}

static struct tool_request request_of(const struct call *call,
                                      const struct msg_execute_tool_request *request)
{
    static const struct msg_tool_resources none;
    const struct msg_tool_resources *resources = request->resources ? request->resources : &none;

    return (struct tool_request){
        .name = request->tool,
        .params = request->params,
        .call_id = text_or_null(request->tool_call_id),
        .timeout_ms = request->timeout_ms,
        .max_output_tokens = request->max_output_tokens,
        .memory_bytes = resources->memory_bytes,
        .cpus_milli = cpus_milli(resources->cpus),
        .wants_changed = request->changed,
        .tier = text_or_null(request->tier),
        .snapshot = request->has_snapshot ? request->snapshot : -1,
        .is_read_only = !caller_may_change(call->caller),
    };
}

int tool_service_execute(const struct call *call, const struct msg_execute_tool_request *request,
                         struct err *err)
{
    const struct tool_request wanted = request_of(call, request);
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(tool_close_slot) struct tool_call *tool = NULL;
    const struct tool_result *result = NULL;
    struct msg_execute_tool_response reply;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = tool_open(sandbox, &wanted, call->connection_fd, &tool, err);
    if (r == 0)
        r = result_wait(tool, &result, err);
    if (r < 0)
        return r;
    reply = tool_result_message(result, call->arena);
    return call_reply(call, &msg_execute_tool_response_schema, &reply, err);
}

int tool_service_execute_stream(const struct call *call,
                                const struct msg_execute_tool_request *request, struct stream **ret,
                                struct err *err)
{
    const struct tool_request wanted = request_of(call, request);

    return tool_stream_open(call, request->sandbox_id, &wanted, ret, err);
}

static struct msg_tool tool_message(const struct tool *tool)
{
    return (struct msg_tool){
        .name = tool->name,
        .title = tool->title,
        .description = tool->about,
        .input_schema = tool_schema_json(tool),
        .read_only = tool->is_read_only,
        .destructive = tool->destroys,
        .idempotent = tool->is_idempotent,
        .open_world = tool->is_open,
        .tier = tool_tier(tool),
    };
}

int tool_service_list(const struct call *call, const struct msg_list_tools_request *request,
                      struct err *err)
{
    struct msg_tool *tools;
    size_t count = 0;
    int r;

    (void)request;
    while (tool_at(count))
        count++;
    tools = arena_take(call->arena, count, sizeof(*tools));
    for (size_t i = 0; i < count; i++)
        tools[i] = tool_message(tool_at(i));
    r = call_reply(call, MESSAGE(msg_list_tools_response, .tools = tools, .tools_count = count),
                   err);
    for (size_t i = 0; i < count; i++)
        json_decref((json_t *)(uintptr_t)tools[i].input_schema);
    return r;
}

int tool_service_read_output(const struct call *call, const struct msg_read_output_request *request,
                             struct err *err)
{
    const struct tool_part part = { .handle = request->handle,
                                    .offset = request->offset,
                                    .limit = request->limit };
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct tool_output output = { .text = NULL };
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = tool_read_output(sandbox, &part, &output, err);
    if (r < 0)
        return r;
    r = call_reply(call,
                   MESSAGE(msg_read_output_response, .text = { output.text, output.len },
                           .total = output.total),
                   err);
    free(output.text);
    return r;
}
