// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/messages.h"
#include "holt.h"
#include "wire/envelope.h"

/* --- the list --------------------------------------------------------------------------------- */

static const char *schema_text(void *result, const json_t *schema)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(ENVELOPE_LARGE_MAX);

    if (!schema || json_write(schema, &text) < 0)
        return "";
    return result_bytes(result, text.data, text.len);
}

static void tool_fill(void *result, struct holt_tool *tool, const struct msg_tool *message)
{
    *tool = (struct holt_tool){
        .name = message->name,
        .title = message->title,
        .description = message->description,
        .input_schema = schema_text(result, message->input_schema),
        .is_read_only = message->read_only,
        .is_destructive = message->destructive,
        .is_idempotent = message->idempotent,
        .is_open_world = message->open_world,
        .tier = message->tier,
    };
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_list_tools_response *reply = message;
    struct holt_tool_list *list = result;

    (void)error;
    list->count = reply->tools_count;
    list->items =
        RESULT_LIST(result, struct holt_tool, tool_fill, reply->tools, reply->tools_count);
    return 0;
}

int holt_tool_list(struct holt *holt, int64_t deadline, struct holt_tool_list **ret,
                   struct holt_error *error)
{
    const struct msg_list_tools_request request = { 0 };
    const struct client_call call = { &method_tool_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

/* --- results ---------------------------------------------------------------------------------- */

/* Leaves the data NULL if it is not base64. */
static void image_fill(void *result, struct holt_tool_block *block,
                       const struct msg_tool_image *image)
{
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(image->data.len + 1);

    block->mime_type = image->mime_type;
    if (base64_decode(&bytes, image->data.data, image->data.len) < 0)
        return;
    block->data = result_bytes(result, bytes.data, bytes.len);
    block->len = bytes.len;
}

static void block_fill(void *result, struct holt_tool_block *block,
                       const struct msg_tool_content *message)
{
    if (message->image) {
        image_fill(result, block, message->image);
        return;
    }
    block->mime_type = "";
    block->data = message->text.data ? message->text.data : "";
    block->len = message->text.len;
}

static void change_fill(void *result, struct holt_tool_change *change,
                        const struct msg_tool_change *message)
{
    (void)result;
    change->kind = message->kind;
    change->path = message->path;
}

/* Joins the blocks; the content of a single block of text, the common case, is that block. */
static int content_join(struct holt_tool_result *result, struct holt_error *error)
{
    cleanup_with(buf_done) struct buf all = BUF_INIT(2UL * ENVELOPE_LARGE_MAX);
    int r = 0;

    if (result->block_count == 1 && !*result->blocks[0]->mime_type) {
        result->content = result->blocks[0]->data;
        result->content_len = result->blocks[0]->len;
        return 0;
    }
    for (size_t i = 0; i < result->block_count && r == 0; i++) {
        const struct holt_tool_block *block = result->blocks[i];

        if (!block->data)
            return error_set(error, "internal",
                             "cannot read the reply of the daemon: an image is "
                             "not base64");
        if (i > 0)
            r = buf_add_str(&all, "\n");
        if (r == 0)
            r = *block->mime_type
                    ? buf_printf(&all, "[image: %s, %zu bytes]", block->mime_type, block->len)
                    : buf_add(&all, block->data, block->len);
    }
    if (r < 0)
        return error_set(error, "resource_exhausted", "no memory for the result of the tool");
    result->content = result_bytes(result, all.data, all.len);
    result->content_len = all.len;
    return 0;
}

static int result_fill(void *into, const void *message, struct holt_error *error)
{
    static const struct msg_tool_truncated not_truncated = { .handle = "" };
    const struct msg_execute_tool_response *reply = message;
    const struct msg_tool_truncated *truncated =
        reply->truncated ? reply->truncated : &not_truncated;
    struct holt_tool_result *result = into;

    *result = (struct holt_tool_result){
        .block_count = reply->content_count,
        .blocks = RESULT_LIST(into, struct holt_tool_block, block_fill, reply->content,
                              reply->content_count),
        .is_error = reply->is_error,
        .has_exit_code = reply->has_exit_code,
        .exit_code = reply->exit_code,
        .is_timed_out = reply->timed_out,
        .is_oom = reply->oom,
        .is_truncated = reply->truncated != NULL,
        .shown_bytes = truncated->shown,
        .total_bytes = truncated->total,
        .handle = truncated->handle,
        .duration_ms = reply->duration_ms,
        .tier = reply->tier,
        .snapshot_id = reply->snapshot_id,
        .snapshot_error = reply->snapshot_error,
        .changed_count = reply->changed_count,
        .changed = RESULT_LIST(into, struct holt_tool_change, change_fill, reply->changed,
                               reply->changed_count),
        .is_changed_truncated = reply->changed_truncated,
        .is_repeated = reply->repeated_call,
    };
    return content_join(result, error);
}

/* --- calls ------------------------------------------------------------------------------------ */

struct progress {
    holt_output_fn fn;
    void *context;
    struct holt_tool_result *result;
};

static int progress_take(const struct progress *progress, const struct msg_tool_progress *message,
                         struct holt_error *error)
{
    if (progress->fn(progress->context, message->is_error ? HOLT_STDERR : HOLT_STDOUT,
                     message->content.data ? message->content.data : "", message->content.len) != 0)
        return error_set(error, "canceled", "the caller ended the call");
    return 0;
}

static int event_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct msg_execute_tool_event *event = message;
    struct progress *progress = context;

    if (event->progress)
        return progress_take(progress, event->progress, error);
    if (!event->result || progress->result)
        return 0;
    if (result_fill(*result, event->result, error) < 0)
        return -1;
    progress->result = TAKE_PTR(*result);
    return 0;
}

static int execute_stream(struct holt *holt, const struct holt_tool_call *call,
                          const struct msg_execute_tool_request *request, int64_t deadline,
                          struct holt_tool_result **ret, struct holt_error *error)
{
    struct progress progress = { .fn = call->on_progress, .context = call->context };
    const struct messages_call messages = {
        .method = &method_tool_service_execute_stream,
        .request = request,
        .deadline = deadline,
        .each = event_take,
        .context = &progress,
        .size = sizeof(struct holt_tool_result),
    };
    int r = messages_follow(holt, &messages, error);
    cleanup_result struct holt_tool_result *result = progress.result;

    if (r < 0)
        return -1;
    if (!result)
        return reply_lacks("result", error);
    *ret = TAKE_PTR(result);
    return 0;
}

int holt_tool_execute(struct holt *holt, const char *sandbox, const struct holt_tool_call *call,
                      int64_t deadline, struct holt_tool_result **ret, struct holt_error *error)
{
    struct holt_tool_call given = HOLT_INIT(holt_tool_call);
    struct msg_execute_tool_request request;
    struct client_call unary = { &method_tool_service_execute, &request, false, deadline };
    struct msg_tool_resources resources;
    cleanup_json json_t *params = NULL;
    struct err err;

    if (options_take(&given, sizeof(given), call, error) < 0)
        return -1;
    if (given.params && json_parse_with_nul(given.params, strlen(given.params), &params, &err) < 0)
        return error_set(error, "invalid_argument", "the parameters: %s", err.msg);
    resources = (struct msg_tool_resources){ .cpus = given.cpu_millis / 1000.0,
                                             .memory_bytes = given.memory_bytes };
    request = (struct msg_execute_tool_request){
        .sandbox_id = sandbox,
        .tool = given.tool,
        .params = params,
        .tool_call_id = given.id,
        .timeout_ms = given.timeout_ms,
        .max_output_tokens = given.max_output_tokens,
        .resources = given.memory_bytes || given.cpu_millis ? &resources : NULL,
        .changed = given.wants_changed,
        .has_snapshot = given.snapshot != HOLT_TOOL_SNAPSHOT_DEFAULT,
        .snapshot = given.snapshot == HOLT_TOOL_SNAPSHOT_YES,
        .tier = given.tier,
    };
    if (given.on_progress)
        return execute_stream(holt, &given, &request, deadline, ret, error);
    unary.can_be_repeated = given.id && *given.id;
    return client_call_for(holt, &unary, sizeof(**ret), result_fill, ret, error);
}

static int output_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_read_output_response *reply = message;
    struct holt_tool_output *output = result;

    (void)error;
    output->text = reply->text.data ? reply->text.data : "";
    output->len = reply->text.len;
    output->total_bytes = reply->total;
    return 0;
}

int holt_tool_read_output(struct holt *holt, const char *sandbox, const struct holt_tool_part *part,
                          int64_t deadline, struct holt_tool_output **ret, struct holt_error *error)
{
    struct holt_tool_part given = HOLT_INIT(holt_tool_part);
    struct msg_read_output_request request;
    const struct client_call call = { &method_tool_service_read_output, &request, true, deadline };

    if (options_take(&given, sizeof(given), part, error) < 0)
        return -1;
    request = (struct msg_read_output_request){
        .sandbox_id = sandbox,
        .handle = given.handle,
        .offset = given.offset,
        .limit = given.limit,
    };
    return client_call_for(holt, &call, sizeof(**ret), output_fill, ret, error);
}
