// SPDX-License-Identifier: Apache-2.0
#include "api/process_stream.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/service.h"
#include "api/stream.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/machine.h"
#include "host/process.h"
#include "host/record.h"
#include "host/sandbox.h"

enum { RUN_OUTPUT_BYTES = 48 * 1024 };

/* A process in one of two kinds of place, for as long as its client listens. */
struct process_stream {
    struct stream stream;
    struct machine *machine; /* thrown away with the stream; or NULL and */
    struct sandbox *sandbox; /* attached to, and stays */
    struct process *process;
    char sandbox_id[SANDBOX_ID_MAX];
    int connection_fd;
    bool is_announced;
    struct buf output; /* reserved in full, never cleared: a quiet process touches none of it */
};

static int started_add(const struct process_stream *events, struct buf *out)
{
    size_t start = out->len;
    int r = message_begin(out);

    if (r == 0)
        r = buf_printf(out, "{\"started\":{\"sandboxId\":\"%s\",\"processId\":\"%s\"}}",
                       events->sandbox_id, process_id(events->process));
    if (r == 0)
        message_end(out, start);
    return r;
}

static int output_add(struct buf *out, const char *field, const void *data, size_t len)
{
    size_t start = out->len;
    int r = message_begin(out);

    if (r == 0)
        r = buf_printf(out, "{\"%s\":\"", field);
    if (r == 0)
        r = base64_encode(out, data, len);
    if (r == 0)
        r = buf_add_str(out, "\"}");
    if (r == 0)
        message_end(out, start);
    return r;
}

static const char *outcome_name(enum outcome outcome)
{
    static const char *const names[] = {
        [OUTCOME_NONE] = "OUTCOME_UNSPECIFIED",  [OUTCOME_EXITED] = "OUTCOME_EXITED",
        [OUTCOME_SIGNALED] = "OUTCOME_SIGNALED", [OUTCOME_TIMED_OUT] = "OUTCOME_TIMED_OUT",
        [OUTCOME_OOM] = "OUTCOME_OOM",           [OUTCOME_KILLED] = "OUTCOME_KILLED",
        [OUTCOME_LOST] = "OUTCOME_LOST",         [OUTCOME_NOT_STARTED] = "OUTCOME_NOT_STARTED",
    };

    return names[outcome < ARRAY_SIZE(names) ? outcome : OUTCOME_NONE];
}

static int ended_add(struct buf *out, const struct process_end *end)
{
    return message_add_take(
        out, json_pack("{s:{s:s, s:i, s:i, s:o, s:o, s:o, s:o}}", "ended", "outcome",
                       outcome_name(end->outcome), "exitCode", end->exit_code, "signal",
                       end->signal, "reason", json_text(end->reason), "durationMs",
                       json_u64(end->duration_ms), "cpuMs", json_u64(end->cpu_ms),
                       "memoryPeakBytes", json_u64(end->memory_peak_bytes)));
}

static int event_add(struct buf *out, const struct reader_event *event, const char *output)
{
    switch (event->kind) {
    case READER_DATA:
        return output_add(out, event->stream == PROCESS_OUT ? "stdout" : "stderr", output,
                          event->len);
    case READER_ENDED:
        return ended_add(out, &event->end);
    case READER_GAP:
    case READER_UP_TO_DATE:
        break;
    }
    return -EINVAL;
}

static int events_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct process_stream *events = (struct process_stream *)stream;
    struct reader_event event = { 0 };
    int r;

    if (!events->is_announced) {
        events->is_announced = true;
        r = started_add(events, out);
        return r < 0 ? err_sys(err, r, "write an event") : 1;
    }
    r = process_next(events->process, events->connection_fd, events->output.data,
                     events->output.max, &event);
    if (r == -ECANCELED)
        return r;
    if (r < 0)
        return err_sys(err, r, "read the process's output");
    r = event_add(out, &event, events->output.data);
    if (r < 0)
        return err_sys(err, r, "write an event");
    return event.kind == READER_ENDED ? 0 : 1;
}

static void events_free(struct process_stream *events)
{
    if (events->machine)
        machine_destroy(events->machine);
    if (events->sandbox)
        sandbox_detach(events->sandbox, TAKE_PTR(events->process));
    process_unref(events->process);
    sandbox_unref(events->sandbox);
    machine_unref(events->machine);
    buf_done(&events->output);
    free(events);
}

/* The client has its last byte, or has gone; only now may undoing a sandbox take time. */
static void events_close(struct stream *stream)
{
    events_free((struct process_stream *)stream);
}

static void events_free_slot(struct process_stream **events)
{
    if (*events)
        events_free(*events);
}

static const struct stream_ops events_ops = { events_next, events_close };

static int events_new(int connection_fd, struct process_stream **ret, struct err *err)
{
    struct process_stream *events = xcalloc(1, sizeof(*events));
    int r;

    events->stream.ops = &events_ops;
    events->connection_fd = connection_fd;
    events->output.max = RUN_OUTPUT_BYTES;
    *ret = events;
    r = buf_reserve(&events->output, events->output.max);
    return r < 0 ? err_sys(err, r, "make room for output") : 0;
}

static void id_set(struct process_stream *events, const char *id)
{
    (void)snprintf(events->sandbox_id, sizeof(events->sandbox_id), "%s", id);
}

int process_stream_run(const struct call *call, const struct machine_spec *machine,
                       const struct process_spec *process, struct stream **ret, struct err *err)
{
    cleanup_with(events_free_slot) struct process_stream *events = NULL;
    int r = events_new(call->connection_fd, &events, err);

    if (r == 0)
        r = machine_create(call->host, machine, &events->machine, err);
    if (r == 0)
        r = process_start(events->machine, process, &events->process, err);
    if (r < 0)
        return r;
    id_set(events, machine_id(events->machine));
    *ret = &TAKE_PTR(events)->stream;
    return 0;
}

int process_stream_exec(const struct call *call, const char *sandbox,
                        const struct process_spec *process, struct stream **ret, struct err *err)
{
    cleanup_with(events_free_slot) struct process_stream *events = NULL;
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    int r = events_new(call->connection_fd, &events, err);

    if (r == 0)
        r = sandbox_find(call->host, sandbox, &events->sandbox, err);
    if (r < 0)
        return r;
    sandbox_attach(events->sandbox); /* before the start, lest it be idle at that moment */
    r = sandbox_exec(events->sandbox, process, &events->process, err);
    if (r < 0)
        return r;
    sandbox_get_info(events->sandbox, false, &info);
    id_set(events, info.id);
    *ret = &TAKE_PTR(events)->stream;
    return 0;
}
