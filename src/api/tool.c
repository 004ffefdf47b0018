// SPDX-License-Identifier: Apache-2.0
#include "toolbox/tool.h"

#include <errno.h>
#include <stdlib.h>

#include "api/message/fields.h"
#include "api/message/sandbox_ref.h"
#include "api/message/tool_request.h"
#include "api/service.h"
#include "api/stream/tool_stream.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
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

int tool_service_execute(const struct call *call, const json_t *request, json_t **ret_reply,
                         struct err *err)
{
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    cleanup_with(tool_close_slot) struct tool_call *tool = NULL;
    const struct tool_result *result = NULL;
    struct tool_call_request wish;
    int r = tool_call_request_parse(request, call->is_read_only, &wish, err);

    (void)ret_reply;
    if (r == 0)
        r = sandbox_find(call->host, wish.sandbox, &sandbox, err);
    if (r == 0)
        r = tool_open(sandbox, &wish.request, call->connection_fd, &tool, err);
    if (r == 0)
        r = result_wait(tool, &result, err);
    if (r < 0)
        return r;
    r = tool_result_write(result, call->out);
    return r < 0 ? err_sys(err, r, "write the reply") : 0;
}

int tool_service_execute_stream(const struct call *call, const json_t *request, struct stream **ret,
                                struct err *err)
{
    struct tool_call_request wish;
    int r = tool_call_request_parse(request, call->is_read_only, &wish, err);

    return r < 0 ? r : tool_stream_open(call, request, &wish, ret, err);
}

int tool_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                      struct err *err)
{
    static const char *const fields[] = { NULL };
    cleanup_json json_t *list = json_array();
    const struct tool *tool;
    int r = json_only_fields(request, fields, err);

    (void)call;
    if (r < 0)
        return r;
    for (size_t i = 0; (tool = tool_at(i)); i++)
        if (json_array_append_new(list, tool_json(tool)) < 0)
            return err_sys(err, -ENOMEM, "list tools");
    *ret_reply = json_pack("{s:O}", "tools", list);
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "list tools");
}

int tool_service_read_output(const struct call *call, const json_t *request, json_t **ret_reply,
                             struct err *err)
{
    static const char *const fields[] = { "sandboxId", "handle", "offset", "limit", NULL };
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    struct tool_part part = { .handle = NULL };
    struct tool_output output = { .text = NULL };
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = field_needed(request, "handle", &part.handle, err);
    if (r == 0)
        r = json_get_u64(request, "offset", &part.offset, err);
    if (r == 0)
        r = json_get_u64(request, "limit", &part.limit, err);
    if (r == 0)
        r = sandbox_ref_find(call, request, &sandbox, err);
    if (r == 0)
        r = tool_read_output(sandbox, &part, &output, err);
    if (r < 0)
        return r;
    *ret_reply = json_pack("{s:o, s:o}", "text", json_stringn(output.text, output.len), "total",
                           json_u64(output.total));
    free(output.text);
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}
