// SPDX-License-Identifier: Apache-2.0
#include "api/stream/process_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/process_messages.h"
#include "api/message/process_start.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/machine/machine.h"
#include "host/process/process.h"
#include "host/process/record.h"
#include "host/process/viewer.h"
#include "host/sandbox/sandbox.h"
#include "http/stream.h"
#include "wire/envelope.h"
#include "wire/raw.h"

enum {
    RUN_OUTPUT_BYTES = 48 * 1024,
    RAW_OUTPUT_BYTES = 192 * 1024,
    EVENT_BYTES = 8 * 1024, /* of one that is not output */
};

_Static_assert(RAW_DATA_MAX - RAW_OUTPUT_BYTES >= 0, "one read must fit into one frame");

/* A process in one of two kinds of place, for as long as its client listens. */
struct process_stream {
    struct stream stream;
    struct machine *machine;      /* destroyed with the stream; or NULL and */
    struct sandbox *sandbox;      /* attached to, and stays */
    struct process *process;      /* waits for us, and ends with the stream; or NULL, and */
    struct output_reader *reader; /* of a process started by another call */
    struct record *record;
    struct viewer viewer; /* of its terminal */
    struct process_started started;
    uint64_t from[PROCESS_STREAMS];
    bool has_offsets; /* output says where it is in its stream */
    char sandbox_id[SANDBOX_ID_MAX];
    int connection_fd;
    bool is_announced;
    struct buf output; /* reserved in full, never cleared: a quiet process touches none of it */
};

static int event_next(const struct process_stream *events, void *data, size_t size,
                      struct reader_event *ret)
{
    if (events->reader)
        return reader_next(events->reader, events->connection_fd, data, size, ret);
    return process_next(events->process, events->connection_fd, data, size, ret);
}

static int ended_add(const struct process_stream *events, const struct reader_event *event,
                     struct buf *out)
{
    struct process_written written;

    process_written_get(events->record, &written);
    return process_ended_add(out, &event->end, &written);
}

static int event_add(const struct process_stream *events, const struct reader_event *event,
                     struct buf *out)
{
    switch (event->kind) {
    case READER_DATA:
        return process_output_add(out, event->stream, events->has_offsets ? &event->offset : NULL,
                                  events->output.data, event->len);
    case READER_GAP:
        return process_gap_add(out, event);
    case READER_ENDED:
        return ended_add(events, event, out);
    case READER_SIZE:
        return process_size_add(out, event->size);
    case READER_UP_TO_DATE:
        return 0;
    }
    return -EINVAL;
}

/* Returns whether more events follow. */
static bool event_has_next(const struct reader_event *event)
{
    return event->kind != READER_ENDED && event->kind != READER_UP_TO_DATE;
}

static int events_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct process_stream *events = (struct process_stream *)stream;
    struct reader_event event = { 0 };
    int r;

    if (!events->is_announced) {
        events->is_announced = true;
        r = process_started_add(out, &events->started);
        return r < 0 ? err_sys(err, r, "write an event") : 1;
    }
    r = event_next(events, events->output.data, events->output.max, &event);
    if (r == -ECANCELED)
        return r;
    if (r < 0)
        return err_sys(err, r, "read the process's output");
    r = event_add(events, &event, out);
    if (r < 0)
        return err_sys(err, r, "write an event");
    return event_has_next(&event) ? 1 : 0;
}

/* Turns a message of the JSON stream into a frame. */
static int raw_event_add(struct buf *out, const struct buf *message)
{
    return raw_add(out, RAW_EVENT, message->data + ENVELOPE_HEADER_SIZE,
                   message->len - ENVELOPE_HEADER_SIZE);
}

static int raw_started_add(const struct process_stream *events, struct buf *out)
{
    cleanup_with(buf_done) struct buf message = BUF_INIT(EVENT_BYTES);
    int r = process_started_add(&message, &events->started);

    return r < 0 ? r : raw_event_add(out, &message);
}

/* The bytes of output are behind the room for a header already. */
static int raw_add_event(const struct process_stream *events, const struct reader_event *event,
                         struct buf *out)
{
    cleanup_with(buf_done) struct buf message = BUF_INIT(EVENT_BYTES);
    int r;

    if (event->kind == READER_DATA) {
        raw_header((unsigned char *)out->data,
                   event->stream == PROCESS_OUT ? RAW_STDOUT : RAW_STDERR, event->len);
        out->len = RAW_HEADER_SIZE + event->len;
        return 0;
    }
    r = event_add(events, event, &message);
    return r < 0 || message.len == 0 ? r : raw_event_add(out, &message);
}

/* As events_next, in frames. Output is read to where it is sent from; out must be empty. */
static int raw_events_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct process_stream *events = (struct process_stream *)stream;
    struct reader_event event = { 0 };
    int r;

    if (!events->is_announced) {
        events->is_announced = true;
        r = raw_started_add(events, out);
        return r < 0 ? err_sys(err, r, "write an event") : 1;
    }
    r = buf_reserve(out, RAW_HEADER_SIZE + RAW_OUTPUT_BYTES);
    if (r < 0)
        return err_sys(err, r, "make room for output");
    r = event_next(events, out->data + RAW_HEADER_SIZE, RAW_OUTPUT_BYTES, &event);
    if (r == -ECANCELED)
        return r;
    if (r < 0)
        return err_sys(err, r, "read the process's output");
    r = raw_add_event(events, &event, out);
    if (r < 0)
        return err_sys(err, r, "write an event");
    return event_has_next(&event) ? 1 : 0;
}

static void events_free(struct process_stream *events)
{
    viewer_leave(&events->viewer);
    reader_close(events->reader);
    record_unref(events->record);
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

/* The client has received everything or has gone, so destroying the machine may take time. */
static void events_close(struct stream *stream)
{
    events_free((struct process_stream *)stream);
}

DEFINE_CLEANUP(events_free, struct process_stream *);

static const struct stream_ops events_ops = { events_next, events_close };
static const struct stream_ops raw_events_ops = { raw_events_next, events_close };

struct process *process_stream_writer(struct stream *stream)
{
    const struct process_stream *events = (const struct process_stream *)stream;

    if (stream->ops != &raw_events_ops)
        return NULL;
    return events->process ? process_ref(events->process) : NULL;
}

static int events_new(const struct call *call, struct process_stream **ret, struct err *err)
{
    struct process_stream *events = xcalloc(1, sizeof(*events));
    int r;

    events->stream.ops = call->is_raw ? &raw_events_ops : &events_ops;
    events->connection_fd = call->connection_fd;
    events->output.max = RUN_OUTPUT_BYTES;
    *ret = events;
    if (call->is_raw)
        return 0;
    r = buf_reserve(&events->output, events->output.max);
    return r < 0 ? err_sys(err, r, "make room for output") : 0;
}

/* What its first event will say; everything lives as long as the stream. */
static void started_set(struct process_stream *events, const char *sandbox_id,
                        const char *process_id)
{
    (void)snprintf(events->sandbox_id, sizeof(events->sandbox_id), "%s", sandbox_id);
    events->started.sandbox_id = events->sandbox_id;
    events->started.process_id = process_id;
}

int process_stream_run(const struct call *call, const struct machine_spec *machine,
                       const struct process_spec *process, struct stream **ret, struct err *err)
{
    cleanup_with(events_free_slot) struct process_stream *events = NULL;
    int r = events_new(call, &events, err);

    if (r == 0)
        r = machine_create(call->host, machine, &events->machine, err);
    if (r == 0)
        r = process_start(events->machine, process, &events->process, err);
    if (r < 0)
        return r;
    events->record = record_ref(process_record(events->process));
    started_set(events, machine_id(events->machine), process_id(events->process));
    *ret = &TAKE_PTR(events)->stream;
    return 0;
}

/* Attached before anything else, lest the sandbox be idle at that moment. */
static int sandbox_enter(const struct call *call, const char *id, struct process_stream *events,
                         struct err *err)
{
    int r = sandbox_find(call->host, call->caller, id, &events->sandbox, err);

    if (r == 0)
        sandbox_attach(events->sandbox);
    return r;
}

static void started_in_sandbox(struct process_stream *events)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct record_info record;

    sandbox_get_info(events->sandbox, false, &info);
    record_get(events->record, &record);
    started_set(events, info.id, record.id);
}

/* Makes the client a viewer of a process that was found, or that was started for it; a process that
 * has ended meanwhile needs none. */
static int events_view(struct process_stream *events, const char *process_id,
                       struct terminal_size size, struct err *err)
{
    cleanup_with(process_unref_slot) struct process *found = NULL;
    struct process *process = events->process;
    int r = process ? 0 : sandbox_find_process(events->sandbox, process_id, &found, err);

    if (r < 0)
        return err->cause == CAUSE_PROCESS_ENDED ? 0 : r;
    r = viewer_join(&events->viewer, process ? process : found, size, process != NULL, err);
    if (r == 0)
        events->started.viewer = events->viewer.number;
    return r;
}

int process_stream_exec(const struct call *call, const char *sandbox,
                        const struct process_spec *process, struct stream **ret, struct err *err)
{
    static const struct reader_spec all = { .follows = true, .is_flow = true };
    cleanup_with(events_free_slot) struct process_stream *events = NULL;
    struct process_started_as started = { .process = NULL };
    int r = events_new(call, &events, err);

    if (r == 0)
        r = sandbox_enter(call, sandbox, events, err);
    if (r == 0)
        r = process_start_or_join(events->sandbox, process, &started, err);
    if (r < 0)
        return r;
    events->process = started.process;
    events->record = started.record;
    events->started.is_joined = !started.process;
    if (events->started.is_joined) {
        r = reader_open(events->record, &all, &events->reader, err);
        if (r < 0)
            return r;
    }
    started_in_sandbox(events);
    if (process->has_terminal)
        r = events_view(events, events->started.process_id,
                        (struct terminal_size){ process->rows, process->columns }, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(events)->stream;
    return 0;
}

/* Returns the offset this many bytes before the end, but not before the kept output. */
static void replay_from(struct record *record, uint64_t bytes, uint64_t ret[PROCESS_STREAMS])
{
    struct record_info info;

    record_get(record, &info);
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        const struct record_stream *stream = &info.streams[i];

        ret[i] = stream->total > bytes ? stream->total - bytes : 0;
        if (ret[i] >= stream->head_end && ret[i] < stream->tail_start)
            ret[i] = stream->tail_start;
    }
}

int process_stream_attach(const struct call *call, const struct msg_attach_request *request,
                          struct stream **ret, struct err *err)
{
    cleanup_with(events_free_slot) struct process_stream *events = NULL;
    struct reader_spec spec = {
        .from = { [PROCESS_OUT] = request->stdout_offset, [PROCESS_ERR] = request->stderr_offset },
        .follows = request->follow,
        .is_flow = request->flow,
        .has_sizes = request->sizes,
        .hides_queries = request->has_replay_bytes,
    };
    int r = events_new(call, &events, err);

    if (r == 0)
        r = sandbox_enter(call, request->sandbox_id, events, err);
    if (r == 0)
        r = sandbox_find_record(events->sandbox, request->process_id, &events->record, err);
    if (r < 0)
        return r;
    if (request->has_replay_bytes)
        replay_from(events->record, request->replay_bytes, spec.from);
    memcpy(events->from, spec.from, sizeof(events->from));
    events->started.from = events->from;
    events->has_offsets = true;
    r = reader_open(events->record, &spec, &events->reader, err);
    if (r == 0 && request->size)
        r = events_view(events, request->process_id,
                        (struct terminal_size){ (uint16_t)request->size->rows,
                                                (uint16_t)request->size->columns },
                        err);
    if (r < 0)
        return r;
    started_in_sandbox(events);
    *ret = &TAKE_PTR(events)->stream;
    return 0;
}
