// SPDX-License-Identifier: Apache-2.0
#include "api/stream/tool_stream.h"

#include <stdint.h>
#include <stdlib.h>

#include "api/service.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
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

static int result_add(struct buf *out, const struct tool_result *result)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);
    const struct msg_execute_tool_response message = tool_result_message(result, &arena);

    return message_add(out, MESSAGE(msg_execute_tool_event, .result = &message));
}

static int event_add(struct buf *out, const struct tool_event *event)
{
    const struct msg_tool_progress progress = {
        .content = { event->progress.text, event->progress.len },
        .is_error = event->progress.is_stderr,
    };

    if (event->kind == TOOL_RESULT)
        return result_add(out, event->result);
    return message_add(out, MESSAGE(msg_execute_tool_event, .progress = &progress));
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

int tool_stream_open(const struct call *call, const char *sandbox,
                     const struct tool_request *request, struct stream **ret, struct err *err)
{
    cleanup_with(events_free_slot) struct tool_stream *events = xcalloc(1, sizeof(*events));
    int r;

    events->stream.ops = &events_ops;
    events->message = json_incref((json_t *)(uintptr_t)call->message);
    r = sandbox_find(call->host, call->caller, sandbox, &events->sandbox, err);
    if (r == 0)
        r = tool_open(events->sandbox, request, call->connection_fd, &events->tool, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(events)->stream;
    return 0;
}
