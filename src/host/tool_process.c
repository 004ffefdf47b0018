// SPDX-License-Identifier: Apache-2.0
/* A tool that is a process, from its start to what is told of its end. */
#include "host/tool_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/xalloc.h"
#include "host/record.h"
#include "host/sandbox.h"
#include "host/tool_internal.h"

enum { READ_BYTES = 32 * 1024, EXIT_NOT_FOUND = 127 };

/* Which value is which. */
enum { BASH_CMD, BASH_TIMEOUT, BASH_CWD };

/* One stream of it, as text. */
struct stream_text {
    struct utf8_cleaner cleaner;
    struct buf text;
    bool is_full; /* there is more than we keep */
};

struct running {
    struct tool_command command;
    struct process *process;
    struct stream_text streams[PROCESS_STREAMS];
    struct buf progress; /* what was told last */
    bool is_attached;
    bool has_no_bash;
    char data[READ_BYTES];
};

void tool_command_add(struct tool_command *command, const char *arg)
{
    if (command->arg_count < TOOL_ARGS_MAX)
        command->args[command->arg_count++] = xstrdup(arg);
}

void tool_command_set(struct tool_command *command, const char *variable)
{
    if (command->env_count < TOOL_ENV_MAX)
        command->env[command->env_count++] = xstrdup(variable);
}

void tool_command_done(struct tool_command *command)
{
    for (int i = 0; i < command->arg_count; i++)
        free(command->args[i]);
    for (int i = 0; i < command->env_count; i++)
        free(command->env[i]);
    free(command->cwd);
    *command = (struct tool_command){ .arg_count = 0 };
}

static void make_bash(const struct tool_job *job, bool has_bash, struct tool_command *ret)
{
    tool_command_done(ret);
    tool_command_add(ret, has_bash ? "/bin/bash" : "/bin/sh");
    tool_command_add(ret, "-c");
    tool_command_add(ret, tool_text_at(job, BASH_CMD));
    ret->cwd = tool_path(tool_text_at(job, BASH_CWD));
    ret->timeout_ms = (uint64_t)tool_number_at(job, BASH_TIMEOUT);
}

static int start(struct tool_job *job, struct running *running, struct err *err)
{
    struct process_spec spec = {
        .args = running->command.args,
        .env = running->command.env,
        .cwd = running->command.cwd,
        .timeout_ms = tool_job_left_ms(job, running->command.timeout_ms),
    };
    int r;

    if (!running->is_attached)
        sandbox_attach(job->sandbox);
    running->is_attached = true;
    process_unref(TAKE_PTR(running->process));
    r = sandbox_exec(job->sandbox, &spec, &running->process, err);
    return r < 0 ? tool_job_fail(job, r, err) : 1;
}

/* 0 when the job is over already. */
static int begin(struct tool_job *job, struct err *err)
{
    struct running *running;

    if (tool_text_at(job, BASH_CMD)[strspn(tool_text_at(job, BASH_CMD), " \t\r\n")] == '\0') {
        tool_job_refuse(job, "the command is empty.");
        return 0;
    }
    running = xcalloc(1, sizeof(*running));
    running->progress.max = 4 * READ_BYTES;
    for (int i = 0; i < PROCESS_STREAMS; i++)
        running->streams[i].text.max = TOOL_TEXT_MAX / 4;
    job->state = running;
    make_bash(job, true, &running->command);
    return start(job, running, err);
}

/* Keeps the text of what was read, and tells of it. */
static bool take_data(struct running *running, const struct reader_event *event,
                      struct tool_progress *ret)
{
    struct stream_text *stream = &running->streams[event->stream];

    buf_clear(&running->progress);
    (void)utf8_clean(&stream->cleaner, running->data, event->len, &running->progress);
    if (buf_add(&stream->text, running->progress.data, running->progress.len) < 0)
        stream->is_full = true;
    *ret = (struct tool_progress){ .text = running->progress.data,
                                   .len = running->progress.len,
                                   .is_stderr = event->stream == PROCESS_ERR };
    return ret->len > 0;
}

/* --- what is said at the end ----------------------------------------------------------------- */

static void add_stream(struct buf *out, const struct buf *text)
{
    if (text->len == 0)
        return;
    (void)buf_add(out, text->data, text->len);
    if (text->data[text->len - 1] != '\n')
        (void)buf_add_str(out, "\n");
}

static void add_note(struct buf *out, const struct process_end *end)
{
    switch (end->outcome) {
    case OUTCOME_TIMED_OUT:
        (void)buf_printf(out,
                         "[timed out after %llu ms: it was ended with all that it had started]\n",
                         (unsigned long long)end->duration_ms);
        break;
    case OUTCOME_OOM:
        (void)buf_add_str(out, "[out of memory: the kernel has killed it]\n");
        break;
    case OUTCOME_KILLED:
    case OUTCOME_LOST:
    case OUTCOME_NOT_STARTED:
        (void)buf_printf(out, "[%s: %s]\n", outcome_word(end->outcome), end->reason);
        break;
    case OUTCOME_SIGNALED:
        (void)buf_printf(out, "[ended by signal %d]\n", end->signal);
        break;
    case OUTCOME_NONE:
    case OUTCOME_EXITED:
        break;
    }
}

static void conclude(struct tool_job *job, struct running *running, const struct process_end *end)
{
    struct buf *out = &job->text;

    for (int i = 0; i < PROCESS_STREAMS; i++)
        (void)utf8_clean_end(&running->streams[i].cleaner, &running->streams[i].text);
    add_stream(out, &running->streams[PROCESS_OUT].text);
    if (running->streams[PROCESS_ERR].text.len > 0)
        (void)buf_add_str(out, "[stderr]\n");
    add_stream(out, &running->streams[PROCESS_ERR].text);
    if (out->len == 0)
        (void)buf_add_str(out, "(no output)\n");
    add_note(out, end);
    (void)buf_printf(out, "[exit code %d, %llu ms]", end->exit_code,
                     (unsigned long long)end->duration_ms);
    job->result.has_exit_code = true;
    job->result.exit_code = end->exit_code;
    job->result.timed_out = end->outcome == OUTCOME_TIMED_OUT;
    job->result.oom = end->outcome == OUTCOME_OOM;
    job->result.is_error = end->outcome == OUTCOME_NOT_STARTED || end->outcome == OUTCOME_LOST;
}

/* The end of the process: 0, or 1 when another one is tried. */
static int take_end(struct tool_job *job, struct running *running, const struct process_end *end,
                    struct err *err)
{
    bool is_missing = end->outcome == OUTCOME_NOT_STARTED && end->exit_code == EXIT_NOT_FOUND;

    if (is_missing && !running->has_no_bash) {
        running->has_no_bash = true;
        make_bash(job, false, &running->command);
        return start(job, running, err);
    }
    conclude(job, running, end);
    return 0;
}

static int process_tool_next(struct tool_job *job, int watch_fd, struct tool_progress *ret,
                             struct err *err)
{
    int r = job->state ? 1 : begin(job, err);

    while (r == 1) {
        struct running *running = job->state;
        struct reader_event event;

        r = process_next(running->process, watch_fd, running->data, sizeof(running->data), &event);
        if (r == -ECANCELED)
            return r;
        if (r < 0)
            return err_sys(err, r, "read what '%s' has written", job->tool->name);
        r = 1;
        if (event.kind == READER_DATA && take_data(running, &event, ret))
            return 1;
        if (event.kind == READER_ENDED)
            r = take_end(job, running, &event.end, err);
    }
    return r;
}

static void process_tool_stop(struct tool_job *job)
{
    struct running *running = job->state;

    if (!running)
        return;
    if (running->is_attached)
        sandbox_detach(job->sandbox, TAKE_PTR(running->process));
    for (int i = 0; i < PROCESS_STREAMS; i++)
        buf_done(&running->streams[i].text);
    buf_done(&running->progress);
    tool_command_done(&running->command);
    free(running);
    job->state = NULL;
}

const struct tool_kind tool_by_process = { .next = process_tool_next, .stop = process_tool_stop };
