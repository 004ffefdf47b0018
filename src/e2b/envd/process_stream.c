// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/process_stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "e2b/core/user.h"
#include "e2b/envd/process_message.h"
#include "host/process/process.h"
#include "host/process/record.h"
#include "host/sandbox/sandbox.h"
#include "http/stream.h"

enum {
    PIPE_CHUNK = 32 * 1024,
    TERMINAL_CHUNK = 16 * 1024,
    KEEPALIVE_S = 90, /* where the client does not say */
    KEEPALIVE_MAX_S = 3600,
};

struct process_events {
    struct stream stream;
    struct sandbox *sandbox;      /* attached to */
    struct process *process;      /* our own, or NULL */
    struct output_reader *joined; /* of a process started by another client, or NULL */
    struct record *record;
    uint32_t pid;
    bool has_terminal;
    bool is_announced;
    int connection_fd;
    uint64_t keepalive_ms;
    char data[PIPE_CHUNK];
};

uint64_t e2b_keepalive_ms(const struct e2b_request *request)
{
    const char *text = e2b_header(request, "Keepalive-Ping-Interval");
    uint64_t seconds = 0;

    if (!text || parse_u64(text, &seconds) < 0 || seconds == 0 || seconds > KEEPALIVE_MAX_S)
        seconds = KEEPALIVE_S;
    return seconds * 1000;
}

/* Whether it ended with its sandbox, of which clients learn by a connection that breaks. */
static bool is_torn(const struct process_end *end)
{
    return end->outcome == OUTCOME_LOST ||
           (end->outcome == OUTCOME_KILLED &&
            (end->killer == KILLER_DESTROY || end->killer == KILLER_STOP));
}

static int end_add(const struct process_end *end, struct buf *out, struct err *err)
{
    int r;

    if (is_torn(end))
        return -ECANCELED;
    if (end->outcome == OUTCOME_TIMED_OUT)
        return err_set(err, ERR_DEADLINE,
                       "the command has taken longer than the time it was given");
    r = e2b_event_end(out, end);
    return r < 0 ? err_sys(err, r, "write an event") : 0;
}

static int data_add(const struct process_events *events, const struct reader_event *event,
                    struct buf *out)
{
    const struct span bytes = { events->data, event->len };
    struct envd_process_event_data_event data = { .pty = { NULL, 0 } };

    if (events->has_terminal)
        data.pty = bytes;
    else if (event->stream == PROCESS_OUT)
        data.stdout = bytes;
    else
        data.stderr = bytes;
    return e2b_event_data(out, &data);
}

static int event_add(struct process_events *events, struct buf *out, struct err *err)
{
    struct output_reader *reader =
        events->joined ? events->joined : process_reader(events->process);
    struct reader_event event = { 0 };
    int r = reader_next_within(reader, events->connection_fd, events->keepalive_ms, events->data,
                               events->has_terminal ? TERMINAL_CHUNK : PIPE_CHUNK, &event);

    if (r == -ECANCELED)
        return r;
    if (r == -ETIMEDOUT)
        r = e2b_event_keepalive(out);
    else if (r < 0)
        return err_sys(err, r, "read the output of a process");
    else if (event.kind == READER_ENDED)
        return end_add(&event.end, out, err);
    else if (event.kind == READER_DATA)
        r = data_add(events, &event, out);
    return r < 0 ? err_sys(err, r, "write an event") : 1;
}

static int events_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct process_events *events = (struct process_events *)stream;
    size_t before = out->len;
    int r;

    if (!events->is_announced) {
        events->is_announced = true;
        r = e2b_event_start(out, events->pid);
        return r < 0 ? err_sys(err, r, "write an event") : 1;
    }
    do /* of a gap there is nothing to say */
        r = event_add(events, out, err);
    while (r > 0 && out->len == before);
    return r;
}

static void events_close(struct stream *stream)
{
    struct process_events *events = (struct process_events *)stream;

    reader_close(events->joined);
    record_unref(events->record);
    if (events->process)
        process_abandon(events->process);
    sandbox_detach(events->sandbox, NULL);
    sandbox_unref(events->sandbox);
    free(events);
}

static struct process_events *events_new(struct e2b_request *request, struct record *record)
{
    static const struct stream_ops ops = { events_next, events_close };
    struct process_events *events = xcalloc(1, sizeof(*events));
    struct record_info info;

    record_get(record, &info);
    events->stream.ops = &ops;
    events->sandbox = TAKE_PTR(request->sandbox); /* a stream may outlive its request */
    sandbox_attach(events->sandbox);
    events->record = record_ref(record);
    events->pid = info.pid;
    events->has_terminal = info.spec->has_terminal;
    events->connection_fd = request->connection_fd;
    events->keepalive_ms = e2b_keepalive_ms(request);
    return events;
}

static int refuse_start(const struct record_info *info, struct err *err)
{
    const struct process_spec *spec = info->spec;

    switch (info->end.start_failure) {
    case START_FAILURE_USER:
        return e2b_user_refuse(spec->user, err);
    case START_FAILURE_CWD:
        return err_set(err, ERR_INVALID, "cwd '%.150s' does not exist", spec->cwd);
    case START_FAILURE_COMMAND:
        return err_set(err, ERR_INVALID, "error starting process '%.100s': %.100s", spec->args[0],
                       info->end.reason);
    case START_FAILURE_OTHER:
        break;
    }
    return err_set(err, ERR_INTERNAL, "error starting process: %.180s", info->end.reason);
}

int e2b_process_stream_own(struct e2b_request *request, struct process *process,
                           struct stream **ret, struct err *err)
{
    struct process_events *events;
    struct record_info info;

    if (!process_wait_started(process)) {
        int r;

        /* The record hears of it last. */
        (void)record_wait(process_record(process), -1, 0, &info.end);
        record_get(process_record(process), &info);
        r = refuse_start(&info, err);
        process_abandon(process);
        return r;
    }
    events = events_new(request, process_record(process));
    events->process = process;
    *ret = &events->stream;
    return 0;
}

int e2b_process_stream_join(struct e2b_request *request, struct record *record, struct stream **ret,
                            struct err *err)
{
    struct process_events *events = events_new(request, record);
    struct reader_spec spec = { .follows = true };
    struct record_info info;
    int r;

    record_get(record, &info);
    for (int i = 0; i < PROCESS_STREAMS; i++)
        spec.from[i] = info.streams[i].total;
    r = reader_open(record, &spec, &events->joined, err);
    record_unref(record);
    if (r < 0) {
        events_close(&events->stream);
        return r;
    }
    *ret = &events->stream;
    return 0;
}
