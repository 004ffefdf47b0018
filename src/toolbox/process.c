// SPDX-License-Identifier: Apache-2.0
/* Tools that run a process and return its output. */
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

/* Indices of the parameters. */
enum { BASH_CMD, BASH_TIMEOUT, BASH_CWD, BASH_TIER };

struct process_run {
    const struct tool_recipe *recipe;
    struct tool_command command;
    struct process *process;      /* referenced; NULL: ended under an earlier daemon process */
    struct record *record;        /* referenced */
    struct output_reader *reader; /* NULL: that of the process */
    struct process_text text;
    struct buf progress; /* text of the last event */
    int attempt;
    bool is_attached;
    bool is_counted_read_only;
    bool is_over;
    char key[KEY_SIZE]; /* idempotency key of the process of a call with an id */
    char data[READ_BYTES];
};

/* --- commands -------------------------------------------------------------------------------- */

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
        tool_job_set_error(job, "'cmd' is empty.");
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

/* --- start ----------------------------------------------------------------------------------- */

static bool args_equal(char *const *one, char *const *other)
{
    while (*one && *other && strcmp(*one, *other) == 0) {
        one++;
        other++;
    }
    return !*one && !*other;
}

static void make_process_key(const struct tool_job *job, int attempt, char ret[static KEY_SIZE])
{
    (void)snprintf(ret, KEY_SIZE, "holt-tool-%" PRIu32 "-%.40s-%d", job->generation, job->id_hash,
                   attempt);
}

/* Returns whether an earlier daemon process tried the next program: it found that this one does not
 * exist and died before it recorded that. */
static bool has_next_attempt(struct tool_job *job, const struct process_run *run)
{
    char key[KEY_SIZE];
    struct record *record = NULL;
    struct err ignored;

    if (!job->call_id[0])
        return false;
    make_process_key(job, run->attempt + 1, key);
    if (sandbox_find_record_by_key(job->sandbox, key, &record, &ignored) < 0)
        return false;
    record_unref(record);
    return true;
}

/* Joins the process that an earlier daemon process started for the same call. */
static int run_rejoin(struct tool_job *job, struct process_run *run,
                      const struct process_spec *spec, struct err *err)
{
    struct record_info info;
    struct err ignored;
    int r = sandbox_find_record_by_key(job->sandbox, spec->key, &run->record, err);

    if (r < 0)
        return r;
    record_get(run->record, &info);
    if (!info.spec->args || !args_equal(info.spec->args, spec->args))
        return tool_job_refuse_reused_id(job, err);
    (void)sandbox_find_process(job->sandbox, info.id, &run->process, &ignored);
    if (job->has_mark) {
        sandbox_unmark(job->sandbox, &job->mark);
        job->has_mark = false;
        job->result.changed_is_cut = true;
    }
    return 0;
}

/* Starts the process of a call with an id; the key lets the next daemon process find it. */
static int run_start_keyed(struct tool_job *job, struct process_run *run, struct process_spec *spec,
                           struct err *err)
{
    const struct reader_spec all = { .follows = true, .is_flow = true };
    int r;

    make_process_key(job, run->attempt, run->key);
    spec->key = run->key;
    spec->is_detached = true;
    r = sandbox_exec(job->sandbox, spec, &run->process, err);
    if (r == 0)
        run->record = record_ref(process_record(run->process));
    else if (err->cause == CAUSE_PROCESS_EXISTS)
        r = run_rejoin(job, run, spec, err);
    return r == 0 ? reader_open(run->record, &all, &run->reader, err) : r;
}

static int run_start_plain(struct tool_job *job, struct process_run *run, struct process_spec *spec,
                           struct err *err)
{
    int r = sandbox_exec(job->sandbox, spec, &run->process, err);

    if (r == 0)
        run->record = record_ref(process_record(run->process));
    return r;
}

/* Makes the process known to tool_cancel, and kills it if the job is canceled already. */
static void job_set_process(struct tool_job *job, struct process *process)
{
    lock_take(&job->lock);
    job->process = process;
    if (process && job->is_canceled)
        process_kill(process, KILLER_CLIENT);
    lock_release(&job->lock);
}

/* The call and its parameters may both name a tier, which the configuration may exceed. Other tools
 * run in the sandbox's own runtime. */
static int run_choose_tier(struct tool_job *job, const struct process_run *run, const char **ret,
                           struct err *err)
{
    const char *param = run->recipe == &bash ? tool_text_at(job, BASH_TIER) : "";
    struct host_tool_settings settings;
    int r;

    if (run->recipe != &bash)
        return 0;
    host_get_tool_settings(sandbox_host(job->sandbox), &settings);
    if (*param && job->tier && strcmp(param, job->tier) != 0)
        return err_set(err, ERR_INVALID, "the call has tier '%s', and its parameter is '%.20s'",
                       job->tier, param);
    r = sandbox_choose_tier(job->sandbox, *param ? param : job->tier, settings.bash_tier, ret, err);
    job->is_stronger = r == 0 && *ret;
    return r;
}

static int run_start(struct tool_job *job, struct process_run *run, struct err *err)
{
    struct process_spec spec = {
        .args = run->command.args,
        .env = run->command.env,
        .cwd = run->command.cwd,
        .timeout_ms = tool_job_left_ms(job, run->command.timeout_ms),
    };
    int r = run_choose_tier(job, run, &spec.tier, err);

    if (r < 0)
        return tool_job_fail(job, r, err);
    if (!run->is_attached)
        sandbox_attach(job->sandbox);
    run->is_attached = true;
    r = job->call_id[0] ? run_start_keyed(job, run, &spec, err)
                        : run_start_plain(job, run, &spec, err);
    if (r == 0)
        job_set_process(job, run->process);
    if (r == 0 && run->process)
        r = process_limit(run->process, job->memory_bytes, job->cpus_milli, err);
    return r < 0 ? tool_job_fail(job, r, err) : 1;
}

/* Kills the process unless it has ended or the daemon stops, and drops all references to it. */
static void run_end(struct tool_job *job, struct process_run *run)
{
    struct err ignored;

    job_set_process(job, NULL);
    if (run->process && !run->is_over && host_is_open(sandbox_host(job->sandbox), &ignored) == 0)
        process_kill(run->process, KILLER_CLIENT);
    reader_close(TAKE_PTR(run->reader));
    record_unref(TAKE_PTR(run->record));
    if (run->process)
        process_abandon(TAKE_PTR(run->process));
}

static const struct tool_recipe *recipe_find(const struct tool *tool)
{
    const struct tool_recipe *code = tool_code_recipe(tool->name);

    if (code)
        return code;
    return strcmp(tool->name, bash.name) == 0 ? &bash : tool_git_recipe(tool->name);
}

/* Limits the processes of read-only clients, so that they cannot use up those of the sandbox. */
static int run_count_read_only(const struct tool_job *job, struct process_run *run, struct err *err)
{
    atomic_int *count;

    if (!job->is_read_only)
        return 0;
    count = &tool_archive_of(job->sandbox)->read_only_processes;
    if (atomic_fetch_add(count, 1) < TOOL_READ_ONLY_PROCESSES_MAX) {
        run->is_counted_read_only = true;
        return 0;
    }
    atomic_fetch_sub(count, 1);
    return err_refuse(err, CAUSE_CAPACITY_EXCEEDED,
                      "limit of %d processes of read-only clients reached in sandbox '%s'",
                      TOOL_READ_ONLY_PROCESSES_MAX, sandbox_id(job->sandbox));
}

/* Returns 1, or 0 when the job has ended already. */
static int run_begin(struct tool_job *job, struct err *err)
{
    struct process_run *run = xcalloc(1, sizeof(*run));
    int r;

    job->state = run;
    run->recipe = recipe_find(job->tool);
    if (run->recipe->text_max > 0 && job->budget > run->recipe->text_max)
        job->budget = run->recipe->text_max;
    process_text_init(&run->text, job->budget + EXTRA_BYTES);
    run->progress.max = (size_t)4 * READ_BYTES;
    r = run_count_read_only(job, run, err);
    if (r == 0)
        r = run->recipe->make(job, 0, &run->command, err);
    return r > 0 ? run_start(job, run, err) : r;
}

/* --- output and end -------------------------------------------------------------------------- */

static bool run_take_data(struct process_run *run, const struct reader_event *event,
                          struct tool_progress *ret)
{
    buf_clear(&run->progress);
    process_text_add(&run->text, event->stream, run->data, event->len, &run->progress);
    *ret = (struct tool_progress){ .text = run->progress.data,
                                   .len = run->progress.len,
                                   .is_stderr = event->stream == PROCESS_ERR };
    return ret->len > 0;
}

static void run_finish(struct tool_job *job, struct process_run *run, const struct process_end *end)
{
    const struct tool_recipe *recipe = run->recipe;
    struct tool_result *result = &job->result;

    result->has_exit_code = true;
    result->exit_code = end->exit_code;
    result->timed_out = end->outcome == OUTCOME_TIMED_OUT;
    result->oom = end->outcome == OUTCOME_OOM;
    result->is_error = end->outcome == OUTCOME_NOT_STARTED || end->outcome == OUTCOME_LOST ||
                       (end->outcome == OUTCOME_KILLED && tool_job_is_canceled(job)) ||
                       (recipe->is_failure_error && end->exit_code != 0);
    process_text_finish(&run->text, job, recipe, run->record, end);
    if (recipe->finish && end->outcome == OUTCOME_EXITED)
        recipe->finish(job);
}

/* Handles the end of the process. Returns 0, or 1 when the next program was started. */
static int run_take_end(struct tool_job *job, struct process_run *run,
                        const struct process_end *end, struct err *err)
{
    bool is_missing = end->outcome == OUTCOME_NOT_STARTED && end->exit_code == EXIT_NOT_FOUND;
    int r;

    run->is_over = true;
    /* The process continues; the next daemon process will see its end. */
    if (end->outcome == OUTCOME_LOST && host_is_open(sandbox_host(job->sandbox), err) < 0)
        return -ESHUTDOWN;
    is_missing = is_missing || (run->recipe->retry_exit && end->outcome == OUTCOME_EXITED &&
                                end->exit_code == run->recipe->retry_exit);
    is_missing = is_missing || (end->outcome == OUTCOME_LOST && has_next_attempt(job, run));
    if (!is_missing || run->attempt + 1 >= run->recipe->attempts) {
        run_finish(job, run, end);
        return 0;
    }
    run_end(job, run);
    run->is_over = false;
    tool_command_done(&run->command);
    r = run->recipe->make(job, ++run->attempt, &run->command, err);
    return r > 0 ? run_start(job, run, err) : r;
}

static int run_next_event(struct process_run *run, int watch_fd, struct reader_event *ret)
{
    struct output_reader *reader = run->reader ? run->reader : process_reader(run->process);

    return reader_next_within(reader, watch_fd, TOOL_SILENCE_MS, run->data, sizeof(run->data), ret);
}

static int process_tool_next(struct tool_job *job, int watch_fd, struct tool_progress *ret,
                             struct err *err)
{
    int r = job->state ? 1 : run_begin(job, err);

    while (r == 1) {
        struct process_run *run = job->state;
        struct reader_event event;

        r = run_next_event(run, watch_fd, &event);
        if (r == -ETIMEDOUT)
            return 1;
        if (r == -ECANCELED)
            return r;
        if (r < 0)
            return err_sys(err, r, "read the output of tool '%s'", job->tool->name);
        r = 1;
        if (event.kind == READER_DATA && run_take_data(run, &event, ret))
            return 1;
        if (event.kind == READER_GAP)
            run->text.is_full = true;
        if (event.kind == READER_ENDED)
            r = run_take_end(job, run, &event.end, err);
    }
    return r;
}

static void process_tool_stop(struct tool_job *job)
{
    struct process_run *run = job->state;

    if (!run)
        return;
    run_end(job, run);
    if (run->is_attached)
        sandbox_detach(job->sandbox, NULL);
    if (run->is_counted_read_only)
        atomic_fetch_sub(&tool_archive_of(job->sandbox)->read_only_processes, 1);
    process_text_done(&run->text);
    buf_done(&run->progress);
    tool_command_done(&run->command);
    free(run);
    job->state = NULL;
}

/* The lock of the job keeps the process alive. */
static void process_tool_cancel(struct tool_job *job)
{
    if (job->process)
        process_kill(job->process, KILLER_CLIENT);
}

static bool process_tool_can_rejoin(struct tool_job *job)
{
    const struct tool_recipe *recipe = recipe_find(job->tool);
    struct record *record = NULL;
    char key[KEY_SIZE];
    struct err ignored;

    for (int i = 0; i < recipe->attempts && !record; i++) {
        make_process_key(job, i, key);
        (void)sandbox_find_record_by_key(job->sandbox, key, &record, &ignored);
    }
    record_unref(record);
    return record != NULL;
}

const struct tool_kind tool_by_process = { .next = process_tool_next,
                                           .stop = process_tool_stop,
                                           .cancel = process_tool_cancel,
                                           .can_resume = true,
                                           .can_rejoin = process_tool_can_rejoin };

/* --- auxiliary commands ---------------------------------------------------------------------- */

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
    return r < 0 ? err_sys(err, r, "read the output of '%s'", command->args[0])
                 : event.end.exit_code;
}
