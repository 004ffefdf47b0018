// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "api/run_request.h"
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

enum { RUN_OUTPUT_BYTES = 48 * 1024 };

/* One throw-away sandbox and its process, for as long as its client listens. */
struct run_stream {
    struct stream stream;
    struct machine *machine;
    struct process *process;
    int connection_fd;
    bool is_announced;
    struct buf output; /* reserved in full, never cleared: a quiet process touches none of it */
};

static int started_add(const struct run_stream *run, struct buf *out)
{
    size_t start = out->len;
    int r = message_begin(out);

    if (r == 0)
        r = buf_printf(out, "{\"started\":{\"sandboxId\":\"%s\",\"processId\":\"%s\"}}",
                       machine_id(run->machine), process_id(run->process));
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

static int event_add(struct buf *out, const struct process_event *event, const char *output)
{
    switch (event->kind) {
    case PROCESS_STDOUT:
        return output_add(out, "stdout", output, event->len);
    case PROCESS_STDERR:
        return output_add(out, "stderr", output, event->len);
    case PROCESS_ENDED:
        return ended_add(out, &event->end);
    }
    return -EINVAL;
}

static int run_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct run_stream *run = (struct run_stream *)stream;
    struct process_event event = { 0 };
    int r;

    if (!run->is_announced) {
        run->is_announced = true;
        r = started_add(run, out);
        return r < 0 ? err_sys(err, r, "write an event") : 1;
    }
    r = process_next(run->process, run->connection_fd, run->output.data, run->output.max, &event);
    if (r == -ECANCELED)
        return r;
    if (r < 0)
        return err_sys(err, r, "read the process's output");
    r = event_add(out, &event, run->output.data);
    if (r < 0)
        return err_sys(err, r, "write an event");
    return event.kind == PROCESS_ENDED ? 0 : 1;
}

static void run_free(struct run_stream *run)
{
    if (run->machine)
        machine_destroy(run->machine);
    process_unref(run->process);
    machine_unref(run->machine);
    buf_done(&run->output);
    free(run);
}

/* The client has its last byte, or has gone; only now may undoing the sandbox take time. */
static void run_close(struct stream *stream)
{
    run_free((struct run_stream *)stream);
}

static void run_free_slot(struct run_stream **run)
{
    if (*run)
        run_free(*run);
}

static const struct stream_ops run_ops = { run_next, run_close };

static struct run_stream *run_new(int connection_fd)
{
    struct run_stream *run = xcalloc(1, sizeof(*run));

    run->stream.ops = &run_ops;
    run->connection_fd = connection_fd;
    run->output.max = RUN_OUTPUT_BYTES;
    return run;
}

int sandbox_service_run(const struct call *call, const json_t *request, struct stream **ret,
                        struct err *err)
{
    cleanup_with(run_request_done) struct run_request wanted = { 0 };
    cleanup_with(run_free_slot) struct run_stream *run = NULL;
    int r = run_request_parse(request, &wanted, err);

    if (r < 0)
        return r;
    run = run_new(call->connection_fd);
    r = buf_reserve(&run->output, run->output.max);
    if (r < 0)
        return err_sys(err, r, "make room for output");
    r = machine_create(call->host, &wanted.machine, &run->machine, err);
    if (r == 0)
        r = process_start(run->machine, &wanted.process, &run->process, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(run)->stream;
    return 0;
}
