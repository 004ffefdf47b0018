// SPDX-License-Identifier: Apache-2.0
/* Runs the commands of a build in its sandbox. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "builder/build_internal.h"
#include "host/core/reactor.h"
#include "host/process/record.h"
#include "host/sandbox/sandbox.h"

int build_check_cancel(struct build *build, struct err *err)
{
    if (!atomic_load(&build->is_cancelled))
        return 0;
    return err_set(err, ERR_CANCELED, "the build was cancelled");
}

static int process_send_file(struct process *process, int fd, struct err *err)
{
    cleanup_free char *data = xcalloc(1, PROCESS_INPUT_MAX);
    ssize_t n;
    int r;

    do {
        n = read(fd, data, PROCESS_INPUT_MAX);
        if (n < 0)
            return err_sys(err, -errno, "read the uploaded files");
        r = process_send_input(process, data, (size_t)n, n == 0, err);
    } while (r == 0 && n > 0);
    return r;
}

static void build_set_process(struct build *build, struct process *process)
{
    lock_take(&build->lock);
    build->process = process;
    lock_release(&build->lock);
}

static int command_explain(const struct build *build, const struct build_command *command,
                           const struct process_end *end, struct err *err)
{
    const char *what = command->what ? command->what : command->text;

    if (end->outcome == OUTCOME_TIMED_OUT)
        return err_set(err, ERR_DEADLINE,
                       "failed to run command '%.60s': the build took longer than %llu s", what,
                       (unsigned long long)build->limit_ms / 1000);
    if (end->outcome == OUTCOME_NOT_STARTED && end->start_failure == START_FAILURE_USER)
        return err_set(err, ERR_INVALID,
                       "failed to run command '%.60s': command failed: unauthenticated: invalid "
                       "username: '%.60s'",
                       what, command->user);
    if (end->outcome == OUTCOME_EXITED)
        return err_set(err, ERR_INVALID, "failed to run command '%.100s': exit status %d", what,
                       end->exit_code);
    return err_set(err, ERR_INVALID, "failed to run command '%.60s': %s %.100s", what,
                   process_outcome_name(end->outcome), end->reason);
}

/* Logs the output of the process and returns its end. */
static struct process_end build_follow_process(struct build *build, struct process *process)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(1 << 20), errors = BUF_INIT(1 << 20);
    struct buf *pending[] = { [PROCESS_OUT] = &out, [PROCESS_ERR] = &errors };
    struct reader_event event = { .kind = READER_DATA };
    char data[16 * 1024];

    while (process_next(process, -1, data, sizeof(data), &event) == 0 &&
           event.kind != READER_ENDED) {
        if (event.kind != READER_DATA)
            continue;
        (void)buf_add(pending[event.stream], data, event.len);
        build_log_output(build, pending[event.stream], event.stream, false);
    }
    build_log_output(build, &out, PROCESS_OUT, true);
    build_log_output(build, &errors, PROCESS_ERR, true);
    return event.end;
}

/* Returns at least 1, because 0 means no limit. */
static uint64_t ms_until(uint64_t end_ms)
{
    uint64_t now = clock_ms();

    return now < end_ms ? end_ms - now : 1;
}

static int command_start(struct build *build, const struct build_command *command,
                         struct process **ret, struct err *err)
{
    char bash[] = "/bin/bash", login[] = "-l", flag[] = "-c", zero[] = "step";
    cleanup_free char *text = xstrdup(command->text);
    cleanup_with(json_words_free) char **env = json_words(command->env ? command->env : build->env);
    char *args[16] = { bash, login, flag, text, zero };
    struct process_spec spec = {
        .args = command->argv ? command->argv : args,
        .env = env,
        .cwd = command->cwd ? command->cwd : "/",
        .user = command->user && *command->user ? command->user : NULL,
        .has_stdin = command->input_fd >= 0,
        .is_detached = command->is_detached,
    };

    if (!command->is_detached)
        spec.timeout_ms = ms_until(command->until_ms ? command->until_ms : build->end_ms);
    for (size_t i = 0; command->args && command->args[i] && i < 10; i++)
        args[5 + i] = command->args[i];
    return sandbox_exec(build->sandbox, &spec, ret, err);
}

int build_run(struct build *build, const struct build_command *command, struct err *err)
{
    struct process *process = NULL;
    struct process_end end = { .outcome = OUTCOME_NONE };
    struct err ignored;
    int r = build_check_cancel(build, err);

    if (r == 0)
        r = build_need_sandbox(build, err);
    if (r == 0)
        r = command_start(build, command, &process, err);
    if (r < 0)
        return r;
    if (command->is_detached) {
        process_unref(process);
        return 0;
    }
    build_set_process(build, process);
    if (build_check_cancel(build, &ignored) < 0)
        process_kill(process, KILLER_USER);
    /* A command that does not read all of its input is judged by its exit code. */
    if (command->input_fd >= 0)
        (void)process_send_file(process, command->input_fd, &ignored);
    end = build_follow_process(build, process);
    build_set_process(build, NULL);
    process_unref(process);
    r = build_check_cancel(build, err);
    if (r < 0)
        return r;
    if (command->ret_code) {
        *command->ret_code = end.exit_code;
        return 0;
    }
    return end.outcome == OUTCOME_EXITED && end.exit_code == 0
               ? 0
               : command_explain(build, command, &end, err);
}
