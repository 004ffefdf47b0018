// SPDX-License-Identifier: Apache-2.0
/* A command in a shell that stays. */
#include "host/shell/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/tool_internal.h"

enum { SHELL_CMD, SHELL_TIMEOUT, SHELL_NAME };

enum {
    READ_BYTES = 32 * 1024,
    KEEP_BYTES = 16 * 1024 * 1024, /* of each stream: a shell's output is kept nowhere else */
};

struct shelled {
    struct shell_run *run;
    struct utf8_cleaner cleaners[2];
    struct buf streams[2]; /* stdout, stderr */
    uint64_t missing[2];
    struct buf progress;
    char data[READ_BYTES];
};

/* Who cancels finds it. */
static void offer(struct tool_job *job, struct shell_run *run)
{
    lock_take(&job->lock);
    job->shell = run;
    if (run && job->is_canceled)
        shell_run_cancel(run);
    lock_release(&job->lock);
}

static int begin(struct tool_job *job, struct err *err)
{
    const struct shell_command command = {
        .name = tool_text_at(job, SHELL_NAME),
        .text = tool_text_at(job, SHELL_CMD),
        .timeout_ms = tool_job_left_ms(job, (uint64_t)tool_number_at(job, SHELL_TIMEOUT)),
        .silence_ms = TOOL_SILENCE_MS,
    };
    struct shelled *shelled;
    int r;

    if (!is_handle(command.name, SHELL_NAME_MAX)) {
        tool_job_refuse(job,
                        "'%.40s' cannot be the name of a shell: letters, digits, '.', '_' and '-' "
                        "can, and a letter or digit first.",
                        command.name);
        return 0;
    }
    shelled = xcalloc(1, sizeof(*shelled));
    job->state = shelled;
    shelled->streams[0].max = shelled->streams[1].max = KEEP_BYTES;
    shelled->progress.max = (size_t)4 * READ_BYTES;
    r = shell_run_new(job->sandbox, &command, &shelled->run, err);
    if (r < 0)
        return tool_job_fail(job, r, err);
    offer(job, shelled->run);
    return 1;
}

static bool take_output(struct shelled *shelled, const struct shell_event *event,
                        struct tool_progress *ret)
{
    int i = event->kind == SHELL_EVENT_STDERR;

    buf_clear(&shelled->progress);
    (void)utf8_clean(&shelled->cleaners[i], shelled->data, event->len, &shelled->progress);
    if (buf_add(&shelled->streams[i], shelled->progress.data, shelled->progress.len) < 0)
        shelled->missing[i] += shelled->progress.len;
    *ret = (struct tool_progress){ .text = shelled->progress.data,
                                   .len = shelled->progress.len,
                                   .is_stderr = i };
    return ret->len > 0;
}

static void add_stream(struct shelled *shelled, int i, struct buf *out)
{
    struct buf *stream = &shelled->streams[i];

    (void)utf8_clean_end(&shelled->cleaners[i], stream);
    if (stream->len == 0)
        return;
    if (i == 1)
        (void)buf_add_str(out, "[stderr]\n");
    (void)buf_add(out, stream->data, stream->len);
    if (stream->data[stream->len - 1] != '\n')
        (void)buf_add_str(out, "\n");
    if (shelled->missing[i] > 0)
        (void)buf_printf(out, "[... %" PRIu64 " bytes were not kept ...]\n", shelled->missing[i]);
}

static void conclude(struct tool_job *job, struct shelled *shelled,
                     const struct shell_end_info *end)
{
    struct buf *out = &job->text;

    add_stream(shelled, 0, out);
    add_stream(shelled, 1, out);
    if (out->len == 0)
        (void)buf_add_str(out, "(no output)\n");
    if (end->is_timed_out)
        (void)buf_printf(out, "[timed out after %" PRIu64 " ms: interrupted]\n", end->duration_ms);
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
    int r = job->state ? 1 : begin(job, err);

    while (r == 1) {
        struct shelled *shelled = job->state;
        struct shell_event event;

        r = shell_run_next(shelled->run, watch_fd, shelled->data, sizeof(shelled->data), &event,
                           err);
        if (r == -ECANCELED)
            return r;
        if (r < 0)
            return tool_job_fail(job, r, err);
        r = 1;
        if (event.kind == SHELL_EVENT_ENDED) {
            /* The daemon stops, and the shell goes on: nobody knows how the command ends. */
            if (event.end.is_shell_ended && host_is_open(sandbox_host(job->sandbox), err) < 0)
                return -ESHUTDOWN;
            conclude(job, shelled, &event.end);
            return 0;
        }
        if (event.kind == SHELL_EVENT_SILENCE ||
            (event.kind != SHELL_EVENT_STARTED && take_output(shelled, &event, ret)))
            return 1;
    }
    return r;
}

static void shell_tool_stop(struct tool_job *job)
{
    struct shelled *shelled = job->state;

    if (!shelled)
        return;
    offer(job, NULL);
    shell_run_free(shelled->run);
    buf_done(&shelled->streams[0]);
    buf_done(&shelled->streams[1]);
    buf_done(&shelled->progress);
    free(shelled);
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
