// SPDX-License-Identifier: Apache-2.0
#include "api/tool_stream.h"

#include <stdint.h>
#include <stdlib.h>

#include "api/service.h"
#include "api/stream.h"
#include "api/tool_messages.h"
#include "api/tool_request.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/sandbox.h"
#include "host/tool.h"

struct tool_stream {
    struct stream stream;
    json_t *message; /* that asked for it */
    struct sandbox *sandbox;
    struct tool_call *tool;
};

static json_t *event_json(const struct tool_event *event)
{
    if (event->kind == TOOL_RESULT)
        return json_pack("{s:o}", "result", tool_result_json(event->result));
    return json_pack("{s:{s:o, s:b}}", "progress", "content",
                     json_stringn(event->progress.text, event->progress.len), "isError",
                     event->progress.is_stderr);
}

static int events_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct tool_stream *events = (struct tool_stream *)stream;
    struct tool_event event;
    int r = tool_next(events->tool, &event, err);

    if (r < 0)
        return r;
    r = message_add_take(out, event_json(&event));
    if (r < 0)
        return err_sys(err, r, "write an event");
    return event.kind == TOOL_RESULT ? 0 : 1;
}

static void events_free(struct tool_stream *events)
{
    tool_close(events->tool);
    sandbox_unref(events->sandbox);
    json_decref(events->message);
    free(events);
}

static void events_close(struct stream *stream)
{
    events_free((struct tool_stream *)stream);
}

static void events_free_slot(struct tool_stream **events)
{
    if (*events)
        events_free(*events);
}

static const struct stream_ops events_ops = { events_next, events_close };

int tool_stream_open(const struct call *call, const json_t *message, const struct tool_wish *wish,
                     struct stream **ret, struct err *err)
{
    cleanup_with(events_free_slot) struct tool_stream *events = xcalloc(1, sizeof(*events));
    int r;

    events->stream.ops = &events_ops;
    events->message = json_incref((json_t *)(uintptr_t)message);
    r = sandbox_find(call->host, wish->sandbox, &events->sandbox, err);
    if (r == 0)
        r = tool_open(events->sandbox, &wish->request, call->connection_fd, &events->tool, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(events)->stream;
    return 0;
}
