// SPDX-License-Identifier: Apache-2.0
/* Messages of the Model Context Protocol: whatever the bytes, either a message that is as the rest
 * of the daemon relies on, or a refusal with a code; and an answer that can be written down. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/sandbox/info.h"
#include "mcp/call.h"
#include "mcp/mcp.h"
#include "mcp/message.h"
#include "mcp/stateless.h"
#include "mcp/task.h"
#include "toolbox/table.h"
#include "toolbox/tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ANSWER_MAX = 16 * 1024 * 1024 };

static void fault_check(const struct mcp_fault *fault)
{
    assert(fault->code <= MCP_REFUSED && fault->code >= MCP_PARSE_ERROR);
    assert(fault->code != MCP_UNSUPPORTED_VERSION || strlen(fault->requested) < MCP_VERSION_SIZE);
    assert(*fault->text && strlen(fault->text) < MCP_TEXT_MAX);
}

/* Takes the answer to the request with this id. */
static void answer_check(json_t *answer, const json_t *id)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
    cleanup_json json_t *owned = answer;
    const json_t *echo = json_object_get(owned, "id");

    assert(owned && echo && (id ? json_equal(echo, id) : json_is_null(echo)));
    assert(!json_object_get(owned, "result") == !!json_object_get(owned, "error"));
    assert(json_write(owned, &out) == 0 && !memchr(out.data, '\n', out.len));
}

static void call_check(const struct mcp_message *message)
{
    struct mcp_call_request request;
    struct mcp_fault fault;

    if (mcp_call_request_parse(message->params, &request, &fault) < 0) {
        fault_check(&fault);
        assert(fault.code == MCP_INVALID_PARAMS);
        return;
    }
    assert(!request.tool == !!request.sandbox_tool);
    assert(!request.tool || tool_find(request.tool->name) == request.tool);
    assert(!request.arguments || json_is_object(request.arguments));
    assert(!request.call_id || strlen(request.call_id) <= TOOL_ID_MAX);
    assert(!request.progress_token || json_is_string(request.progress_token) ||
           json_is_number(request.progress_token));
}

/* The same message, whatever it is, as one of the revision without sessions. */
static void stateless_check(const struct mcp_message *message)
{
    const struct mcp_headers headers = { .version = MCP_STATELESS_VERSION,
                                         .method = message->method,
                                         .name = "=?base64?YmFzaA==?=" };
    struct mcp_envelope envelope;
    struct mcp_fault fault;
    json_t *result = NULL;

    if (mcp_envelope_read(message, &headers, &envelope, &fault) == 0)
        result = mcp_stateless_answer(message, false, NET_ALLOW, &fault);
    if (!result)
        fault_check(&fault);
    result = mcp_stateless_reply(result ? mcp_result(message->id, result)
                                        : mcp_failure(message->id, &fault));
    assert(!json_object_get(result, "result") ||
           json_object_get(json_object_get(result, "result"), "resultType"));
    answer_check(result, message->id);
}

static void task_check(const struct mcp_message *message)
{
    const json_t *id = json_object_get(message->params, "taskId");
    struct mcp_task_id task;

    if (!mcp_task_id_read(id, &task))
        return;
    assert(*task.sandbox && strlen(task.sandbox) <= SANDBOX_NAME_MAX);
    assert(*task.call && strlen(task.call) < MCP_TASK_CALL_SIZE);
    assert(strlen(task.sandbox) + 1 + strlen(task.call) == json_string_length(id));
}

static void request_check(const struct mcp_message *message)
{
    const char *version = NULL;
    struct mcp_fault fault;
    json_t *result = mcp_initialize(message->params, NET_OPEN, &version, &fault);

    assert(!result || mcp_knows_version(version));
    json_decref(result);
    result = mcp_answer(message, true, &fault);
    if (!result)
        fault_check(&fault);
    answer_check(result ? mcp_result(message->id, result) : mcp_failure(message->id, &fault),
                 message->id);
    call_check(message);
    task_check(message);
    stateless_check(message);
}

static void message_check(const json_t *value)
{
    struct mcp_message message;
    struct mcp_fault fault;

    if (mcp_message_read(value, &message, &fault) < 0) {
        fault_check(&fault);
        answer_check(mcp_failure(message.id, &fault), message.id);
        return;
    }
    assert((message.kind == MCP_NOTIFICATION) == !message.id);
    assert((message.kind == MCP_RESPONSE) == !message.method);
    assert(!message.params || json_is_object(message.params));
    if (message.kind == MCP_REQUEST)
        request_check(&message);
    assert(message.kind == MCP_NOTIFICATION || !mcp_cancelled_id(&message));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_json json_t *value = NULL;
    struct mcp_fault fault;

    if (mcp_parse((const char *)data, size, &value, &fault) < 0) {
        fault_check(&fault);
        answer_check(mcp_failure(NULL, &fault), NULL);
        return 0;
    }
    (void)mcp_is_stateless(value, NULL);
    message_check(value);
    for (size_t i = 0; i < json_array_size(value); i++)
        message_check(json_array_get(value, i));
    return 0;
}
