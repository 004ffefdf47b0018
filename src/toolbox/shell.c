// SPDX-License-Identifier: Apache-2.0
/* The tool shell: a command in a persistent shell. */
#include "host/shell/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/parse.h"
#include "base/text/plain.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/process_text.h"
#include "toolbox/tool_internal.h"

enum { SHELL_CMD, SHELL_TIMEOUT, SHELL_NAME };

enum {
    READ_BYTES = 32 * 1024,
    KEEP_BYTES = 16 * 1024 * 1024, /* of each stream; the output is stored nowhere else */
};

struct shell_call {
    struct shell_run *run;
    struct utf8_cleaner cleaners[2];
    struct plain_text plain[2];
    struct buf streams[2]; /* stdout, stderr */
    uint64_t missing[2];
    uint64_t until_ms; /* its time limit; what the shell says then is not the command */
    uint64_t said_ms;  /* when the command has said something last, or began */
    struct buf progress;
    char data[READ_BYTES];
};

/* Makes the command known to tool_cancel, and cancels it if the job is canceled already. */
static void job_set_shell(struct tool_job *job, struct shell_run *run)
{
    lock_take(&job->lock);
    job->shell = run;
    if (run && job->is_canceled)
        shell_run_cancel(run);
    lock_release(&job->lock);
}

/* Returns the command with TERM=dumb, which does not stay in the shell: a person at its terminal
 * has another one. In a plain sh it stays, which nobody attaches to. The blank keeps the text from
 * being an option. NULL: it would be too long. */
static char *text_for_tool(const char *text)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SHELL_TEXT_MAX);
    int r = buf_add_str(&out, "TERM=dumb \\eval ' ");

    for (; r == 0 && *text; text++)
        r = *text == '\'' ? buf_add_str(&out, "'\\''") : buf_add(&out, text, 1);
    if (r == 0)
        r = buf_add_str(&out, "'");
    return r == 0 ? xstrdup(out.data) : NULL;
}

static int shell_call_begin(struct tool_job *job, struct err *err)
{
    cleanup_free char *text = text_for_tool(tool_text_at(job, SHELL_CMD));
    const struct shell_command command = {
        .name = tool_text_at(job, SHELL_NAME),
        .text = text ? text : tool_text_at(job, SHELL_CMD),
        .timeout_ms = tool_job_left_ms(job, (uint64_t)tool_number_at(job, SHELL_TIMEOUT)),
        .silence_ms = TOOL_SILENCE_MS,
    };
    struct shell_call *call;
    int r;

    if (!is_handle(command.name, SHELL_NAME_MAX)) {
        tool_job_set_error(
            job,
            "'%.40s' is not a valid name of a shell: use letters, digits, '.', '_' and "
            "'-', and start with a letter or digit.",
            command.name);
        return 0;
    }
    call = xcalloc(1, sizeof(*call));
    job->state = call;
    call->streams[0].max = call->streams[1].max = KEEP_BYTES;
    call->plain[0].line.max = call->plain[1].line.max = PLAIN_LINE_MAX;
    call->progress.max = (size_t)4 * READ_BYTES;
    call->until_ms = command.timeout_ms > 0 ? clock_ms() + command.timeout_ms : UINT64_MAX;
    call->said_ms = clock_ms();
    r = shell_run_new(job->sandbox, &command, &call->run, err);
    if (r < 0)
        return tool_job_fail(job, r, err);
    job_set_shell(job, call->run);
    return 1;
}

static bool shell_call_take_output(struct shell_call *call, const struct shell_event *event,
                                   struct tool_progress *ret)
{
    int i = event->kind == SHELL_EVENT_STDERR;

    if (clock_ms() < call->until_ms)
        call->said_ms = clock_ms();
    buf_clear(&call->progress);
    (void)utf8_clean(&call->cleaners[i], call->data, event->len, &call->progress);
    if (plain_add(&call->plain[i], call->progress.data, call->progress.len, &call->streams[i]) < 0)
        call->missing[i] += call->progress.len;
    *ret = (struct tool_progress){ .text = call->progress.data,
                                   .len = call->progress.len,
                                   .is_stderr = i };
    return ret->len > 0;
}

static void shell_call_add_stream(struct shell_call *call, int i, struct buf *out)
{
    struct buf *stream = &call->streams[i];

    buf_clear(&call->progress);
    (void)utf8_clean_end(&call->cleaners[i], &call->progress);
    (void)plain_add(&call->plain[i], call->progress.data, call->progress.len, stream);
    (void)plain_end(&call->plain[i], stream);
    if (stream->len == 0)
        return;
    if (i == 1)
        (void)buf_add_str(out, "[stderr]\n");
    (void)buf_add(out, stream->data, stream->len);
    if (stream->data[stream->len - 1] != '\n')
        (void)buf_add_str(out, "\n");
    if (call->missing[i] > 0)
        (void)buf_printf(out, "[... %" PRIu64 " bytes were not kept ...]\n", call->missing[i]);
}

static void shell_call_finish(struct tool_job *job, struct shell_call *call,
                              const struct shell_end_info *end)
{
    struct buf *out = &job->text;

    shell_call_add_stream(call, 0, out);
    shell_call_add_stream(call, 1, out);
    if (out->len == 0)
        (void)buf_add_str(out, "(no output)\n");
    if (end->is_timed_out)
        process_text_add_timeout(out, job, end->duration_ms, call->until_ms - call->said_ms,
                                 "interrupted");
    if (end->is_shell_ended)
        (void)buf_printf(out, "[the shell has ended%s%s; the next command starts a new one]\n",
                         end->reason[0] ? ": " : "", end->reason);
    (void)buf_printf(out, "[exit code %d, %" PRIu64 " ms]", end->exit_code, end->duration_ms);
    job->result.has_exit_code = true;
    job->result.exit_code = end->exit_code;
    job->result.timed_out = end->is_timed_out;
}

static int shell_tool_next(struct tool_job *job, int watch_fd, struct tool_progress *ret,
                           struct err *err)
{
    int r = job->state ? 1 : shell_call_begin(job, err);

    while (r == 1) {
        struct shell_call *call = job->state;
        struct shell_event event;

        r = shell_run_next(call->run, watch_fd, call->data, sizeof(call->data), &event, err);
        if (r == -ECANCELED)
            return r;
        if (r < 0)
            return tool_job_fail(job, r, err);
        r = 1;
        if (event.kind == SHELL_EVENT_ENDED) {
            /* The daemon stops and the shell continues, so the outcome is unknown. */
            if (event.end.is_shell_ended && host_is_open(sandbox_host(job->sandbox), err) < 0)
                return -ESHUTDOWN;
            shell_call_finish(job, call, &event.end);
            return 0;
        }
        if (event.kind == SHELL_EVENT_STARTED)
            call->said_ms = clock_ms();
        if (event.kind == SHELL_EVENT_SILENCE ||
            (event.kind != SHELL_EVENT_STARTED && shell_call_take_output(call, &event, ret)))
            return 1;
    }
    return r;
}

static void shell_tool_stop(struct tool_job *job)
{
    struct shell_call *call = job->state;

    if (!call)
        return;
    job_set_shell(job, NULL);
    shell_run_free(call->run);
    plain_done(&call->plain[0]);
    plain_done(&call->plain[1]);
    buf_done(&call->streams[0]);
    buf_done(&call->streams[1]);
    buf_done(&call->progress);
    free(call);
    job->state = NULL;
}

static void shell_tool_cancel(struct tool_job *job)
{
    if (job->shell)
        shell_run_cancel(job->shell);
}

const struct tool_kind tool_by_shell = { .next = shell_tool_next,
                                         .stop = shell_tool_stop,
                                         .cancel = shell_tool_cancel,
                                         .can_resume = true };
