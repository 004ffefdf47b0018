// SPDX-License-Identifier: Apache-2.0
/* A tool that is a process, from its start to what is told of its end. */
#include "toolbox/process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "host/process/record.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/archive.h"
#include "toolbox/process_text.h"
#include "toolbox/tool_internal.h"

enum {
    READ_BYTES = 32 * 1024,
    EXIT_NOT_FOUND = 127,
    KEY_SIZE = 80,
    EXTRA_BYTES = 64 * 1024,
};

/* Which value is which. */
enum { BASH_CMD, BASH_TIMEOUT, BASH_CWD };

struct running {
    const struct tool_recipe *recipe;
    struct tool_command command;
    struct process *process;      /* referenced; NULL: of an earlier life, and over */
    struct record *record;        /* referenced */
    struct output_reader *reader; /* NULL: the process has its own */
    struct process_text text;
    struct buf progress; /* what was told last */
    int attempt;
    bool is_attached;
    bool is_looker; /* it is counted */
    bool is_over;
    char key[KEY_SIZE]; /* of its process, for a call with an id */
    char data[READ_BYTES];
};

/* --- what to run ----------------------------------------------------------------------------- */

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

static int make_bash(struct tool_job *job, int attempt, struct tool_command *ret, struct err *err)
{
    static const char *const programs[] = { "/bin/bash", "/bin/sh" };
    const char *text = tool_text_at(job, BASH_CMD);

    (void)err;
    if (text[strspn(text, " \t\r\n")] == '\0') {
        tool_job_refuse(job, "the command is empty.");
        return 0;
    }
    tool_command_add(ret, programs[attempt]);
    tool_command_add(ret, "-c");
    tool_command_add(ret, text);
    ret->cwd = tool_path(tool_text_at(job, BASH_CWD));
    ret->timeout_ms = (uint64_t)tool_number_at(job, BASH_TIMEOUT);
    return 1;
}

static const struct tool_recipe bash = {
    .name = "bash",
    .make = make_bash,
    .silence = "(no output)\n",
    .attempts = 2,
    .is_shell = true,
};

/* --- starting it ----------------------------------------------------------------------------- */

static bool is_same(char *const *one, char *const *other)
{
    while (*one && *other && strcmp(*one, *other) == 0) {
        one++;
        other++;
    }
    return !*one && !*other;
}

static void set_key(const struct tool_job *job, int attempt, char ret[static KEY_SIZE])
{
    (void)snprintf(ret, KEY_SIZE, "holt-tool-%" PRIu32 "-%.40s-%d", job->generation, job->id_hash,
                   attempt);
}

/* Whether an earlier life of the daemon had gone on to the next program: it knew that this one does
 * not exist, and died before that was written down. */
static bool has_gone_on(struct tool_job *job, const struct running *running)
{
    char key[KEY_SIZE];
    struct record *record = NULL;
    struct err ignored;

    if (!job->call_id[0])
        return false;
    set_key(job, running->attempt + 1, key);
    if (sandbox_find_record_by_key(job->sandbox, key, &record, &ignored) < 0)
        return false;
    record_unref(record);
    return true;
}

/* An earlier life of the daemon began it for the same call. */
static int rejoin(struct tool_job *job, struct running *running, const struct process_spec *spec,
                  struct err *err)
{
    struct record_info info;
    struct err ignored;
    int r = sandbox_find_record_by_key(job->sandbox, spec->key, &running->record, err);

    if (r < 0)
        return r;
    record_get(running->record, &info);
    if (!info.spec->args || !is_same(info.spec->args, spec->args))
        return tool_refuse_other_call(job, err);
    (void)sandbox_find_process(job->sandbox, info.id, &running->process, &ignored);
    if (job->has_mark) {
        sandbox_unmark(job->sandbox, &job->mark);
        job->has_mark = false;
        job->result.changed_is_cut = true;
    }
    return 0;
}

/* For a call with an id: whatever becomes of this daemon, the next finds the process by its key. */
static int start_keyed(struct tool_job *job, struct running *running, struct process_spec *spec,
                       struct err *err)
{
    const struct reader_spec all = { .follows = true, .is_flow = true };
    int r;

    set_key(job, running->attempt, running->key);
    spec->key = running->key;
    spec->is_detached = true;
    r = sandbox_exec(job->sandbox, spec, &running->process, err);
    if (r == 0)
        running->record = record_ref(process_record(running->process));
    else if (err->cause == CAUSE_PROCESS_EXISTS)
        r = rejoin(job, running, spec, err);
    return r == 0 ? reader_open(running->record, &all, &running->reader, err) : r;
}

static int start_plain(struct tool_job *job, struct running *running, struct process_spec *spec,
                       struct err *err)
{
    int r = sandbox_exec(job->sandbox, spec, &running->process, err);

    if (r == 0)
        running->record = record_ref(process_record(running->process));
    return r;
}

/* Who cancels finds it, or has been here before. */
static void offer(struct tool_job *job, struct process *process)
{
    lock_take(&job->lock);
    job->process = process;
    if (process && job->is_canceled)
        process_kill(process, KILLER_CLIENT);
    lock_release(&job->lock);
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
    r = job->call_id[0] ? start_keyed(job, running, &spec, err)
                        : start_plain(job, running, &spec, err);
    if (r == 0)
        offer(job, running->process);
    if (r == 0 && running->process)
        r = process_limit(running->process, job->memory_bytes, job->cpus_milli, err);
    return r < 0 ? tool_job_fail(job, r, err) : 1;
}

/* It is over, or somebody wants that. */
static void end_process(struct tool_job *job, struct running *running)
{
    struct err ignored;

    offer(job, NULL);
    if (running->process && !running->is_over &&
        host_is_open(sandbox_host(job->sandbox), &ignored) == 0)
        process_kill(running->process, KILLER_CLIENT);
    reader_close(TAKE_PTR(running->reader));
    record_unref(TAKE_PTR(running->record));
    if (running->process)
        process_abandon(TAKE_PTR(running->process));
}

static const struct tool_recipe *recipe_of(const struct tool *tool)
{
    return strcmp(tool->name, bash.name) == 0 ? &bash : tool_git_recipe(tool->name);
}

/* Who may only look takes no process from those who may more. */
static int count_looker(const struct tool_job *job, struct running *running, struct err *err)
{
    atomic_int *count;

    if (!job->is_read_only)
        return 0;
    count = &tool_archive_of(job->sandbox)->read_only_processes;
    if (atomic_fetch_add(count, 1) < TOOL_LOOKERS_MAX) {
        running->is_looker = true;
        return 0;
    }
    atomic_fetch_sub(count, 1);
    return err_refuse(err, CAUSE_CAPACITY_EXCEEDED,
                      "%d such calls of clients that may only look go on in sandbox '%s'",
                      TOOL_LOOKERS_MAX, sandbox_id(job->sandbox));
}

/* 1, or 0 when the job is over already. */
static int begin(struct tool_job *job, struct err *err)
{
    struct running *running = xcalloc(1, sizeof(*running));
    int r;

    job->state = running;
    running->recipe = recipe_of(job->tool);
    if (running->recipe->text_max > 0 && job->budget > running->recipe->text_max)
        job->budget = running->recipe->text_max;
    process_text_init(&running->text, job->budget + EXTRA_BYTES);
    running->progress.max = (size_t)4 * READ_BYTES;
    r = count_looker(job, running, err);
    if (r == 0)
        r = running->recipe->make(job, 0, &running->command, err);
    return r > 0 ? start(job, running, err) : r;
}

/* --- following it ---------------------------------------------------------------------------- */

static bool take_data(struct running *running, const struct reader_event *event,
                      struct tool_progress *ret)
{
    buf_clear(&running->progress);
    process_text_add(&running->text, event->stream, running->data, event->len, &running->progress);
    *ret = (struct tool_progress){ .text = running->progress.data,
                                   .len = running->progress.len,
                                   .is_stderr = event->stream == PROCESS_ERR };
    return ret->len > 0;
}

static void conclude(struct tool_job *job, struct running *running, const struct process_end *end)
{
    const struct tool_recipe *recipe = running->recipe;
    struct tool_result *result = &job->result;

    result->has_exit_code = true;
    result->exit_code = end->exit_code;
    result->timed_out = end->outcome == OUTCOME_TIMED_OUT;
    result->oom = end->outcome == OUTCOME_OOM;
    result->is_error = end->outcome == OUTCOME_NOT_STARTED || end->outcome == OUTCOME_LOST ||
                       (end->outcome == OUTCOME_KILLED && tool_job_is_canceled(job)) ||
                       (recipe->is_failure_error && end->exit_code != 0);
    process_text_finish(&running->text, job, recipe, running->record, end);
}

/* The end of the process: 0, or 1 when another one is tried. */
static int take_end(struct tool_job *job, struct running *running, const struct process_end *end,
                    struct err *err)
{
    bool is_missing = end->outcome == OUTCOME_NOT_STARTED && end->exit_code == EXIT_NOT_FOUND;
    int r;

    running->is_over = true;
    /* It goes on, and the next daemon knows how it ends. */
    if (end->outcome == OUTCOME_LOST && host_is_open(sandbox_host(job->sandbox), err) < 0)
        return -ESHUTDOWN;
    is_missing = is_missing || (end->outcome == OUTCOME_LOST && has_gone_on(job, running));
    if (!is_missing || running->attempt + 1 >= running->recipe->attempts) {
        conclude(job, running, end);
        return 0;
    }
    end_process(job, running);
    running->is_over = false;
    tool_command_done(&running->command);
    r = running->recipe->make(job, ++running->attempt, &running->command, err);
    return r > 0 ? start(job, running, err) : r;
}

static int next_event(struct running *running, int watch_fd, struct reader_event *ret)
{
    struct output_reader *reader =
        running->reader ? running->reader : process_reader(running->process);

    return reader_next_within(reader, watch_fd, TOOL_SILENCE_MS, running->data,
                              sizeof(running->data), ret);
}

static int process_tool_next(struct tool_job *job, int watch_fd, struct tool_progress *ret,
                             struct err *err)
{
    int r = job->state ? 1 : begin(job, err);

    while (r == 1) {
        struct running *running = job->state;
        struct reader_event event;

        r = next_event(running, watch_fd, &event);
        if (r == -ETIMEDOUT)
            return 1;
        if (r == -ECANCELED)
            return r;
        if (r < 0)
            return err_sys(err, r, "read what '%s' has written", job->tool->name);
        r = 1;
        if (event.kind == READER_DATA && take_data(running, &event, ret))
            return 1;
        if (event.kind == READER_GAP)
            running->text.is_full = true;
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
    end_process(job, running);
    if (running->is_attached)
        sandbox_detach(job->sandbox, NULL);
    if (running->is_looker)
        atomic_fetch_sub(&tool_archive_of(job->sandbox)->read_only_processes, 1);
    process_text_done(&running->text);
    buf_done(&running->progress);
    tool_command_done(&running->command);
    free(running);
    job->state = NULL;
}

/* The job is locked, so the process stays. */
static void process_tool_cancel(struct tool_job *job)
{
    if (job->process)
        process_kill(job->process, KILLER_CLIENT);
}

const struct tool_kind tool_by_process = { .next = process_tool_next,
                                           .stop = process_tool_stop,
                                           .cancel = process_tool_cancel,
                                           .can_resume = true };

/* --- one that is only asked ------------------------------------------------------------------ */

int tool_capture(struct tool_job *job, const struct tool_command *command, struct buf *out,
                 struct err *err)
{
    struct process_spec spec = { .args = (char *const *)command->args,
                                 .env = (char *const *)command->env,
                                 .cwd = command->cwd,
                                 .timeout_ms = tool_job_left_ms(job, command->timeout_ms) };
    struct reader_event event = { .kind = READER_DATA };
    struct process *process = NULL;
    char data[4096];
    int r = sandbox_exec(job->sandbox, &spec, &process, err);

    if (r < 0)
        return r;
    while (r == 0 && event.kind != READER_ENDED) {
        r = process_next(process, -1, data, sizeof(data), &event);
        if (r == 0 && event.kind == READER_DATA && event.stream == PROCESS_OUT)
            (void)buf_add(out, data, event.len);
    }
    process_abandon(process);
    return r < 0 ? err_sys(err, r, "read what '%s' has written", command->args[0])
                 : event.end.exit_code;
}
