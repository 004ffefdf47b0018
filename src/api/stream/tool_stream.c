// SPDX-License-Identifier: Apache-2.0
#include "api/stream/tool_stream.h"

#include <stdint.h>
#include <stdlib.h>

#include "api/message/tool_request.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "http/stream.h"
#include "toolbox/tool.h"
#include "toolbox/tool_json.h"

struct tool_stream {
    struct stream stream;
    json_t *message; /* the request */
    struct sandbox *sandbox;
    struct tool_call *tool;
};

static int event_write(struct buf *out, const struct tool_event *event)
{
    int r;

    if (event->kind == TOOL_RESULT) {
        r = buf_add_str(out, "{\"result\":");
        if (r == 0)
            r = tool_result_write(event->result, out);
        return r < 0 ? r : buf_add_str(out, "}");
    }
    r = buf_add_str(out, "{\"progress\":{\"content\":");
    if (r == 0)
        r = json_add_text(out, event->progress.text, event->progress.len);
    return r < 0 ? r : buf_add_str(out, event->progress.is_stderr ? ",\"isError\":true}}" : "}}");
}

static int event_add(struct buf *out, const struct tool_event *event)
{
    size_t start = out->len;
    int r = message_begin(out);

    if (r == 0)
        r = event_write(out, event);
    if (r == 0)
        message_end(out, start);
    return r;
}

static int events_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct tool_stream *events = (struct tool_stream *)stream;
    struct tool_event event;
    int r = tool_next(events->tool, &event, err);

    if (r < 0)
        return r;
    r = event_add(out, &event);
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

DEFINE_CLEANUP(events_free, struct tool_stream *);

static const struct stream_ops events_ops = { events_next, events_close };

int tool_stream_open(const struct call *call, const json_t *message,
                     const struct tool_call_request *wish, struct stream **ret, struct err *err)
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
