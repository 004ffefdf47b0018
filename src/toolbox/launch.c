// SPDX-License-Identifier: Apache-2.0
/* Tools for background processes: process_start, process_list, process_logs, process_wait and
 * process_kill. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/parse.h"
#include "base/text/utf8.h"
#include "host/core/host.h"
#include "host/process/record.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/process_text.h"
#include "toolbox/tool_internal.h"

enum { START_CMD, START_CWD };
enum { LOGS_PROCESS, LOGS_OFFSET, LOGS_ERR_OFFSET };
enum { WAIT_PROCESS, WAIT_TIMEOUT };
enum { KILL_PROCESS, KILL_SIGNAL };

enum { LOG_BYTES = 16 * 1024 * 1024, KEY_SIZE = 80, COMMAND_SHOWN = 120, WAIT_SLICE_MS = 500 };

/* --- process_start --------------------------------------------------------------------------- */

/* Starts the process, or finds the one that the same call started under an earlier daemon process,
 * and waits until its start has succeeded or failed. */
static int launch_process(struct tool_job *job, const struct process_spec *spec,
                          struct record **ret, struct err *err)
{
    struct process *process = NULL;
    int r = sandbox_exec(job->sandbox, spec, &process, err);

    if (r == 0) {
        r = process_limit(process, job->memory_bytes, job->cpus_milli, err);
        if (r < 0)
            process_kill(process, KILLER_CLIENT);
        (void)process_wait_started(process);
        *ret = record_ref(process_record(process));
        process_abandon(process);
    } else if (spec->key && err->cause == CAUSE_PROCESS_EXISTS) {
        r = sandbox_find_record_by_key(job->sandbox, spec->key, ret, err);
    }
    return r;
}

static int run_process_start(struct tool_job *job, struct err *err)
{
    cleanup_with(record_unref_slot) struct record *record = NULL;
    cleanup_free char *cwd = tool_path(tool_text_at(job, START_CWD));
    char *args[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t)tool_text_at(job, START_CMD), NULL };
    char key[KEY_SIZE];
    struct process_spec spec = { .args = args, .cwd = cwd, .is_detached = true };
    struct record_info info;
    int r;

    if (args[2][strspn(args[2], " \t\r\n")] == '\0') {
        tool_job_set_error(job, "'cmd' is empty.");
        return 0;
    }
    if (job->call_id[0]) {
        (void)snprintf(key, sizeof(key), "holt-tool-%" PRIu32 "-%.40s-0", job->generation,
                       job->id_hash);
        spec.key = key;
    }
    r = launch_process(job, &spec, &record, err);
    if (r < 0)
        return tool_job_fail(job, r, err);
    record_get(record, &info);
    if (info.is_over && info.end.outcome == OUTCOME_NOT_STARTED) {
        tool_job_set_error(job, "the command was not started: %s", info.end.reason);
        return 0;
    }
    (void)buf_printf(&job->text,
                     "process %s was started. process_logs process_id=%s shows its output and "
                     "whether it is running; process_kill ends it.",
                     info.id, info.id);
    return 0;
}

/* --- process_logs ---------------------------------------------------------------------------- */

static void add_status(const struct record_info *info, struct buf *out)
{
    const struct process_end *end = &info->end;

    if (!info->is_over) {
        (void)buf_printf(out, "[process %s is running", info->id);
        if (info->pid > 0)
            (void)buf_printf(out, " as pid %u", info->pid);
    } else {
        (void)buf_printf(out, "[process %s has ended: %s, exit code %d", info->id,
                         process_outcome_name(end->outcome), end->exit_code);
        if (end->reason[0])
            (void)buf_printf(out, ", %s", end->reason);
    }
    (void)buf_printf(out, "; %" PRIu64 " bytes of stdout and %" PRIu64 " of stderr so far]",
                     info->streams[PROCESS_OUT].total, info->streams[PROCESS_ERR].total);
}

/* Adds the output from an offset on, and returns that of its end. */
static uint64_t add_stream(struct record *record, enum output_stream stream, uint64_t from,
                           struct buf *out)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(TOOL_TEXT_MAX);
    uint64_t end = process_text_copy(record, stream, from, LOG_BYTES, &text);

    if (text.len > 0 && stream == PROCESS_ERR)
        (void)buf_add_str(out, "[stderr]\n");
    (void)buf_add(out, text.data, text.len);
    if (text.len > 0 && text.data[text.len - 1] != '\n')
        (void)buf_add_str(out, "\n");
    return end;
}

static int run_process_logs(struct tool_job *job, struct err *err)
{
    cleanup_with(record_unref_slot) struct record *record = NULL;
    int64_t from = tool_number_at(job, LOGS_OFFSET),
            err_from = tool_number_at(job, LOGS_ERR_OFFSET);
    struct record_info info;
    uint64_t out_end, err_end;
    int r = sandbox_find_record(job->sandbox, tool_text_at(job, LOGS_PROCESS), &record, err);

    if (r < 0)
        return tool_job_fail(job, r, err);
    if (err_from < 0)
        err_from = from;
    /* Before the output, so that a process that has ended has no more of it. */
    record_get(record, &info);
    out_end = add_stream(record, PROCESS_OUT, (uint64_t)from, &job->text);
    err_end = add_stream(record, PROCESS_ERR, (uint64_t)err_from, &job->text);
    add_status(&info, &job->text);
    if (!info.is_over || out_end < info.streams[PROCESS_OUT].total ||
        err_end < info.streams[PROCESS_ERR].total)
        (void)buf_printf(&job->text,
                         "\n[for what comes next: offset=%" PRIu64 " stderr_offset=%" PRIu64 "]",
                         out_end, err_end);
    job->result.has_exit_code = info.is_over;
    job->result.exit_code = info.end.exit_code;
    return 0;
}

/* --- process_list, process_wait -------------------------------------------------------------- */

/* Adds the command line, on one line and as far as it fits. */
static void add_command(const struct record_info *info, struct buf *out)
{
    cleanup_with(buf_done) struct buf line = BUF_INIT(COMMAND_SHOWN + 1);
    struct utf8_cleaner cleaner = { .len = 0 };
    char *const *args = info->spec->args;

    /* What process_start and bash run is "sh -c COMMAND". */
    if (args && args[0] && args[1] && strcmp(args[1], "-c") == 0 && args[2])
        args += 2;
    for (; args && *args && line.len < COMMAND_SHOWN; args++) {
        size_t room = COMMAND_SHOWN - line.len, len = strnlen(*args, room);

        (void)buf_add(&line, *args, len);
        if (line.len < COMMAND_SHOWN && args[1])
            (void)buf_add(&line, " ", 1);
    }
    for (size_t i = 0; i < line.len; i++)
        if ((unsigned char)line.data[i] < ' ')
            line.data[i] = ' ';
    (void)utf8_clean(&cleaner, line.data ? line.data : "", line.len, out);
    utf8_clean_end(&cleaner, out);
}

static void add_record(struct record *record, struct buf *out)
{
    struct record_info info;
    char when[TIME_TEXT_SIZE];

    record_get(record, &info);
    format_time_ms(info.started_ms, when);
    (void)buf_printf(out, "%s  ", info.id);
    if (info.is_over)
        (void)buf_printf(out, "%s, exit code %d", process_outcome_name(info.end.outcome),
                         info.end.exit_code);
    else
        (void)buf_add_str(out, "running");
    (void)buf_printf(out, "  since %s  ", when);
    add_command(&info, out);
    if (info.address && !info.is_over)
        (void)buf_printf(out, "  (port %u is %s)", info.spec->port, info.address);
    (void)buf_add_str(out, "\n");
}

static int run_process_list(struct tool_job *job)
{
    struct record **list = NULL;
    size_t count = 0;

    sandbox_list_records(job->sandbox, &list, &count);
    for (size_t i = 0; i < count; i++) {
        add_record(list[i], &job->text);
        record_unref(list[i]);
    }
    free(list);
    if (count == 0)
        (void)buf_add_str(&job->text, "(no processes)");
    return 0;
}

/* Waits in short slices, because nothing else wakes it when the call is canceled. */
static int run_process_wait(struct tool_job *job, int watch_fd, struct err *err)
{
    cleanup_with(record_unref_slot) struct record *record = NULL;
    uint64_t until_ms = job->began_ms + (uint64_t)tool_number_at(job, WAIT_TIMEOUT);
    uint64_t silent_ms = clock_ms() + TOOL_SILENCE_MS;
    struct process_end end;
    struct record_info info;
    int r = sandbox_find_record(job->sandbox, tool_text_at(job, WAIT_PROCESS), &record, err);

    if (r < 0)
        return tool_job_fail(job, r, err);
    if (job->deadline_ms > 0 && job->deadline_ms < until_ms)
        until_ms = job->deadline_ms;
    do {
        uint64_t now_ms = clock_ms(), left_ms = until_ms > now_ms ? until_ms - now_ms : 1;

        r = record_wait(record, watch_fd, left_ms < WAIT_SLICE_MS ? left_ms : WAIT_SLICE_MS, &end);
        if (r == -ECANCELED || tool_job_is_canceled(job))
            return -ECANCELED;
        if (host_is_open(sandbox_host(job->sandbox), err) < 0)
            return -ESHUTDOWN;
        if (r == -ETIMEDOUT && clock_ms() >= silent_ms && clock_ms() < until_ms)
            return 1;
    } while (r == -ETIMEDOUT && clock_ms() < until_ms);
    record_get(record, &info);
    add_status(&info, &job->text);
    if (!info.is_over)
        (void)buf_printf(&job->text, "\n[waited %" PRIu64 " ms%s]", clock_ms() - job->began_ms,
                         until_ms == job->deadline_ms ? ", the limit of a call" : "");
    (void)buf_printf(&job->text, "\nprocess_logs process_id=%s shows its output%s", info.id,
                     info.is_over ? "." : "; process_wait waits again.");
    job->result.has_exit_code = info.is_over;
    job->result.exit_code = info.end.exit_code;
    return 0;
}

/* --- process_kill ---------------------------------------------------------------------------- */

static bool parse_signal(const char *word, int *ret)
{
    uint64_t number;

    if (parse_u64(word, &number) == 0) {
        *ret = (int)(number < (uint64_t)NSIG ? number : 0);
        return *ret > 0;
    }
    if (strncasecmp(word, "SIG", 3) == 0)
        word += 3;
    for (*ret = 1; *ret < NSIG; (*ret)++) {
        const char *name = sigabbrev_np(*ret);

        if (name && strcasecmp(name, word) == 0)
            return true;
    }
    return false;
}

static int run_process_kill(struct tool_job *job, struct err *err)
{
    const char *id = tool_text_at(job, KILL_PROCESS), *word = tool_text_at(job, KILL_SIGNAL);
    struct process *process = NULL;
    int signal, r;

    if (!parse_signal(word, &signal)) {
        tool_job_set_error(job, "no signal '%.40s'; examples: TERM, INT, HUP, KILL.", word);
        return 0;
    }
    r = sandbox_find_process(job->sandbox, id, &process, err);
    if (r == 0)
        r = process_signal(process, signal, true, err);
    process_unref(process);
    if (r < 0)
        return tool_job_fail(job, r, err);
    (void)buf_printf(&job->text, "SIG%s was sent to process %s and all processes that it started.",
                     sigabbrev_np(signal) ? sigabbrev_np(signal) : word, id);
    return 0;
}

static int launch_tool_next(struct tool_job *job, int watch_fd, struct tool_progress *ret,
                            struct err *err)
{
    const char *verb = job->tool->name + strlen("process_");

    (void)ret;
    if (strcmp(verb, "start") == 0)
        return run_process_start(job, err);
    if (strcmp(verb, "list") == 0)
        return run_process_list(job);
    if (strcmp(verb, "wait") == 0)
        return run_process_wait(job, watch_fd, err);
    return strcmp(verb, "logs") == 0 ? run_process_logs(job, err) : run_process_kill(job, err);
}

/* Waiting again changes nothing. */
static bool launch_tool_can_rejoin(struct tool_job *job)
{
    return strcmp(job->tool->name, "process_wait") == 0;
}

const struct tool_kind tool_by_launch = { .next = launch_tool_next,
                                          .can_rejoin = launch_tool_can_rejoin };
