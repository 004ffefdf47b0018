// SPDX-License-Identifier: Apache-2.0
#include "api/stream/shell_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/message/process_messages.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "host/shell/shell.h"
#include "http/stream.h"

enum { OUTPUT_BYTES = 48 * 1024 };

struct shell_stream {
    struct stream stream;
    struct shell_run *run;
    char sandbox_id[SANDBOX_ID_MAX];
    int connection_fd;
    struct buf output; /* reserved in full */
};

static int started_add(struct buf *out, const char *sandbox_id, const char *process_id)
{
    const struct msg_shell_started started = { .sandbox_id = sandbox_id, .process_id = process_id };

    return message_add(out, MESSAGE(msg_shell_run_response, .started = &started));
}

static int ended_add(struct buf *out, const struct shell_end_info *end)
{
    const struct msg_shell_ended ended = {
        .exit_code = end->exit_code,
        .timed_out = end->is_timed_out,
        .shell_ended = end->is_shell_ended,
        .duration_ms = end->duration_ms,
        .reason = end->reason,
    };

    return message_add(out, MESSAGE(msg_shell_run_response, .ended = &ended));
}

static int event_add(const struct shell_stream *events, struct buf *out,
                     const struct shell_event *event)
{
    switch (event->kind) {
    case SHELL_EVENT_STARTED:
        return started_add(out, events->sandbox_id, shell_run_process(events->run));
    case SHELL_EVENT_STDOUT:
        return process_output_add(out, PROCESS_OUT, NULL, events->output.data, event->len);
    case SHELL_EVENT_STDERR:
        return process_output_add(out, PROCESS_ERR, NULL, events->output.data, event->len);
    case SHELL_EVENT_ENDED:
        return ended_add(out, &event->end);
    case SHELL_EVENT_SILENCE: /* not requested */
        break;
    }
    return -EINVAL;
}

static int events_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct shell_stream *events = (struct shell_stream *)stream;
    struct shell_event event;
    int r = shell_run_next(events->run, events->connection_fd, events->output.data,
                           events->output.max, &event, err);

    if (r < 0)
        return r;
    r = event_add(events, out, &event);
    if (r < 0)
        return err_sys(err, r, "write an event");
    return event.kind == SHELL_EVENT_ENDED ? 0 : 1;
}

static void events_close(struct stream *stream)
{
    struct shell_stream *events = (struct shell_stream *)stream;

    shell_run_free(events->run);
    buf_done(&events->output);
    free(events);
}

static const struct stream_ops events_ops = { events_next, events_close };

int shell_stream_run(const struct call *call, const char *sandbox,
                     const struct shell_command *command, struct stream **ret, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *found = NULL;
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct shell_stream *events;
    int r = sandbox_find(call->host, call->caller, sandbox, &found, err);

    if (r < 0)
        return r;
    events = xcalloc(1, sizeof(*events));
    events->stream.ops = &events_ops;
    events->connection_fd = call->connection_fd;
    events->output.max = OUTPUT_BYTES;
    sandbox_get_info(found, false, &info);
    (void)snprintf(events->sandbox_id, sizeof(events->sandbox_id), "%s", info.id);
    r = buf_reserve(&events->output, events->output.max);
    if (r < 0)
        r = err_sys(err, r, "make room for output");
    if (r == 0)
        r = shell_run_new(found, command, &events->run, err);
    if (r < 0) {
        events_close(&events->stream);
        return r;
    }
    *ret = &events->stream;
    return 0;
}
