// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/transport/messages.h"
#include "client/typed/request.h"
#include "holt.h"
#include "wire/envelope.h"

/* --- which there are ---------------------------------------------------------------------------
 */

static const char *schema_text(struct reading *reading, const json_t *object)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(ENVELOPE_LARGE_MAX);
    const json_t *schema = read_object(reading, object, "inputSchema");

    if (!schema || json_write(schema, &text) < 0)
        return "";
    return result_bytes(reading->result, text.data, text.len);
}

static void tool_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_tool *tool = into;

    tool->name = read_text(reading, object, "name");
    tool->title = read_text(reading, object, "title");
    tool->description = read_text(reading, object, "description");
    tool->input_schema = schema_text(reading, object);
    tool->is_read_only = read_bool(reading, object, "readOnly");
    tool->is_destructive = read_bool(reading, object, "destructive");
    tool->is_idempotent = read_bool(reading, object, "idempotent");
    tool->is_open_world = read_bool(reading, object, "openWorld");
    tool->tier = read_u32(reading, object, "tier");
}

static void list_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *tools = read_array(reading, object, "tools");
    struct holt_tool_list *list = into;

    list->count = json_array_size(tools);
    list->items = (const struct holt_tool *const *)read_list(reading, tools, sizeof(**list->items),
                                                             tool_read);
}

int holt_tool_list(struct holt *holt, int64_t deadline, struct holt_tool_list **ret,
                   struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), list_read };
    const struct client_call call = { "ToolService/List", json_object(), true, deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

/* --- results ---------------------------------------------------------------------------------- */

static void block_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *image = read_object(reading, object, "image");
    struct holt_tool_block *block = into;

    block->mime_type = image ? read_text(reading, image, "mimeType") : "";
    if (image) {
        block->data = read_bytes(reading, image, "data", &block->len);
        return;
    }
    block->data = read_text(reading, object, "text");
    block->len = json_string_length(json_field(object, "text"));
}

static void change_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_tool_change *change = into;

    change->kind = read_text(reading, object, "kind");
    change->path = read_text(reading, object, "path");
}

/* One block of text, which is what almost all have, is the content as it is. */
static void content_join(struct reading *reading, struct holt_tool_result *result)
{
    cleanup_with(buf_done) struct buf all = BUF_INIT(2UL * ENVELOPE_LARGE_MAX);
    int r = 0;

    if (result->block_count == 1 && !*result->blocks[0]->mime_type) {
        result->content = result->blocks[0]->data;
        result->content_len = result->blocks[0]->len;
        return;
    }
    for (size_t i = 0; i < result->block_count; i++) {
        const struct holt_tool_block *block = result->blocks[i];

        if (i > 0)
            r |= buf_add_str(&all, "\n");
        r |= *block->mime_type
                 ? buf_printf(&all, "[image: %s, %zu bytes]", block->mime_type, block->len)
                 : buf_add(&all, block->data, block->len);
    }
    reading->is_wrong |= r < 0;
    result->content = all.len > 0 ? result_bytes(reading->result, all.data, all.len) : "";
    result->content_len = all.len;
}

static void truncated_read(struct reading *reading, const json_t *object,
                           struct holt_tool_result *result)
{
    const json_t *truncated = read_object(reading, object, "truncated");

    result->is_truncated = truncated != NULL;
    result->shown_bytes = read_u64(reading, truncated, "shown");
    result->total_bytes = read_u64(reading, truncated, "total");
    result->handle = read_text(reading, truncated, "handle");
}

static void result_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *blocks = read_array(reading, object, "content");
    const json_t *changed = read_array(reading, object, "changed");
    const json_t *exit_code = json_field(object, "exitCode");
    struct holt_tool_result *result = into;

    result->block_count = json_array_size(blocks);
    result->blocks = (const struct holt_tool_block *const *)read_list(
        reading, blocks, sizeof(**result->blocks), block_read);
    content_join(reading, result);
    result->is_error = read_bool(reading, object, "isError");
    result->has_exit_code = json_is_integer(exit_code);
    result->exit_code = (int)json_integer_value(exit_code);
    result->is_timed_out = read_bool(reading, object, "timedOut");
    result->is_oom = read_bool(reading, object, "oom");
    truncated_read(reading, object, result);
    result->duration_ms = read_u64(reading, object, "durationMs");
    result->tier = read_u32(reading, object, "tier");
    result->snapshot_id = read_text(reading, object, "snapshotId");
    result->snapshot_error = read_text(reading, object, "snapshotError");
    result->changed_count = json_array_size(changed);
    result->changed = (const struct holt_tool_change *const *)read_list(
        reading, changed, sizeof(**result->changed), change_read);
    result->is_changed_truncated = read_bool(reading, object, "changedTruncated");
    result->is_repeated = read_bool(reading, object, "repeatedCall");
}

/* --- calls ------------------------------------------------------------------------------------ */

static json_t *request_limits(json_t *request, const struct holt_tool_call *call)
{
    json_t *resources;

    request = request_u64(request, "timeoutMs", call->timeout_ms);
    request = request_u64(request, "maxOutputTokens", call->max_output_tokens);
    if (call->memory_bytes == 0 && call->cpu_millis == 0)
        return request;
    resources = request_u64(json_object(), "memoryBytes", call->memory_bytes);
    if (call->cpu_millis > 0)
        resources = request_value(resources, "cpus", json_real(call->cpu_millis / 1000.0));
    return request_value(request, "resources", resources);
}

/* NULL with error set where the parameters are no JSON object. */
static json_t *request_tool(const char *sandbox, const struct holt_tool_call *call,
                            struct holt_error *error)
{
    json_t *request = request_for(sandbox), *params = NULL;
    struct err err;

    (void)error_set(error, "invalid_argument", "an argument is missing or not UTF-8");
    if (call->params &&
        json_parse_with_nul(call->params, strlen(call->params), &params, &err) < 0) {
        (void)error_set(error, "invalid_argument", "the parameters: %s", err.msg);
        json_decref(request);
        return NULL;
    }
    if (params)
        request = request_value(request, "params", params);
    request = request_value(request, "tool", call->tool ? json_string(call->tool) : NULL);
    request = request_text(request, "toolCallId", call->id);
    request = request_limits(request, call);
    request = request_true(request, "changed", call->wants_changed);
    if (call->snapshot != HOLT_TOOL_SNAPSHOT_DEFAULT)
        request = request_value(request, "snapshot",
                                json_boolean(call->snapshot == HOLT_TOOL_SNAPSHOT_YES));
    return request;
}

struct progress {
    holt_output_fn fn;
    void *context;
    struct holt_tool_result *result;
};

static int progress_take(const struct progress *progress, struct reading *reading,
                         const json_t *said, struct holt_error *error)
{
    const char *text = read_text(reading, said, "content");

    if (progress->fn(progress->context,
                     read_bool(reading, said, "isError") ? HOLT_STDERR : HOLT_STDOUT, text,
                     json_string_length(json_field(said, "content"))) != 0)
        return error_set(error, "canceled", "the caller has left");
    return 0;
}

static int event_take(void *context, struct reading *reading, const json_t *message,
                      struct holt_error *error)
{
    const json_t *said = read_object(reading, message, "progress");
    json_t *result = json_field(message, "result");
    struct reading own = { .is_wrong = false };
    struct progress *progress = context;

    if (said)
        return progress_take(progress, reading, said, error);
    if (!result || progress->result)
        return 0;
    own.result = progress->result = result_new(sizeof(*progress->result), json_incref(result));
    result_read(&own, result, progress->result);
    return reading_end(&own, error);
}

static int execute_stream(struct holt *holt, const struct holt_tool_call *call,
                          struct messages_call *messages, struct holt_tool_result **ret,
                          struct holt_error *error)
{
    struct progress progress = { .fn = call->on_progress, .context = call->context };
    cleanup_result struct holt_tool_result *result = NULL;
    int r;

    messages->method = "holt.v1.ToolService/ExecuteStream";
    messages->each = event_take;
    messages->context = &progress;
    r = messages_follow(holt, messages, error);
    result = progress.result;
    if (r < 0)
        return -1;
    if (!result)
        return error_set(error, "internal", "the daemon's answer has no result");
    *ret = TAKE_PTR(result);
    return 0;
}

int holt_tool_execute(struct holt *holt, const char *sandbox, const struct holt_tool_call *call,
                      int64_t deadline, struct holt_tool_result **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), result_read };
    struct holt_tool_call given = HOLT_INIT(holt_tool_call);
    struct client_call unary = { .method = "ToolService/Execute", .deadline = deadline };
    struct messages_call stream = { .deadline = deadline };
    json_t *request;

    if (options_take(&given, sizeof(given), call, error) < 0)
        return -1;
    request = request_tool(sandbox, &given, error);
    if (!request)
        return -1;
    stream.request = unary.request = request;
    unary.can_be_repeated = given.id && *given.id;
    if (given.on_progress)
        return execute_stream(holt, &given, &stream, ret, error);
    return client_call_for(holt, &unary, &answer, ret, error);
}

static void output_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_tool_output *output = into;

    output->text = read_text(reading, object, "text");
    output->len = json_string_length(json_field(object, "text"));
    output->total_bytes = read_u64(reading, object, "total");
}

int holt_tool_read_output(struct holt *holt, const char *sandbox, const struct holt_tool_part *part,
                          int64_t deadline, struct holt_tool_output **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), output_read };
    struct client_call call = { "ToolService/ReadOutput", NULL, true, deadline };
    struct holt_tool_part given = HOLT_INIT(holt_tool_part);

    if (options_take(&given, sizeof(given), part, error) < 0)
        return -1;
    call.request = request_value(request_for(sandbox), "handle",
                                 given.handle ? json_string(given.handle) : NULL);
    call.request = request_u64(call.request, "offset", given.offset);
    call.request = request_u64(call.request, "limit", given.limit);
    return client_call_for(holt, &call, &answer, ret, error);
}
