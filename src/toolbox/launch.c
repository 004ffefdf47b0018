// SPDX-License-Identifier: Apache-2.0
/* Tools for background processes: process_start, process_logs, process_kill. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "host/process/record.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/process_text.h"
#include "toolbox/tool_internal.h"

enum { START_CMD, START_CWD };
enum { LOGS_PROCESS, LOGS_OFFSET };
enum { KILL_PROCESS, KILL_SIGNAL };

enum { LOG_BYTES = 16 * 1024 * 1024, KEY_SIZE = 80 };

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

static void add_stream(struct record *record, enum output_stream stream, uint64_t from,
                       struct buf *out)
{
    size_t before = out->len;

    process_text_copy(record, stream, from, LOG_BYTES, out);
    if (out->len > before && out->data[out->len - 1] != '\n')
        (void)buf_add_str(out, "\n");
}

static int run_process_logs(struct tool_job *job, struct err *err)
{
    cleanup_with(record_unref_slot) struct record *record = NULL;
    uint64_t from = (uint64_t)tool_number_at(job, LOGS_OFFSET);
    struct record_info info;
    int r = sandbox_find_record(job->sandbox, tool_text_at(job, LOGS_PROCESS), &record, err);

    if (r < 0)
        return tool_job_fail(job, r, err);
    record_get(record, &info);
    add_stream(record, PROCESS_OUT, from, &job->text);
    if (info.streams[PROCESS_ERR].total > from)
        (void)buf_add_str(&job->text, "[stderr]\n");
    add_stream(record, PROCESS_ERR, from, &job->text);
    add_status(&info, &job->text);
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
    (void)watch_fd, (void)ret;
    if (strcmp(job->tool->name, "process_start") == 0)
        return run_process_start(job, err);
    return strcmp(job->tool->name, "process_logs") == 0 ? run_process_logs(job, err)
                                                        : run_process_kill(job, err);
}

const struct tool_kind tool_by_launch = { .next = launch_tool_next };
