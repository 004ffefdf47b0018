// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/hex.h"
#include "base/xalloc.h"
#include "host/core/extension.h"
#include "host/core/host.h"
#include "host/observe/metrics.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/archive.h"
#include "toolbox/job_table.h"
#include "toolbox/params.h"
#include "toolbox/tool_internal.h"

#define WORKSPACE "/workspace"

/* --- for kinds of tools ---------------------------------------------------------------------- */

void tool_job_set_error(struct tool_job *job, const char *format, ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_clear(&job->text);
    (void)buf_add_str(&job->text, text);
    job->result.is_error = true;
}

/* Errors of the sandbox or the daemon go to the client, not to the model. */
static bool is_for_model(const struct err *err)
{
    static const bool is_for_client[ERR_CAUSES] = {
        [CAUSE_SESSION_NOT_FOUND] = true,  [CAUSE_SESSION_PAUSED] = true,
        [CAUSE_SESSION_DESTROYING] = true, [CAUSE_ROLLBACK_IN_PROGRESS] = true,
        [CAUSE_INVALID_STATE] = true,      [CAUSE_SHUTTING_DOWN] = true,
    };

    return !is_for_client[err->cause] && err->kind != ERR_INTERNAL &&
           err->kind != ERR_UNAVAILABLE && err->kind != ERR_CANCELED;
}

/* Returns a remedy in terms of tools: a model cannot run commands of Holt. */
static const char *remedy_for_model(const struct err *err)
{
    static const char *const remedies[ERR_CAUSES] = {
        [CAUSE_PROCESS_NOT_FOUND] = "process_start returns the id of the process that it starts",
        [CAUSE_PROCESS_ENDED] = "process_logs shows its output",
        [CAUSE_SNAPSHOT_NOT_FOUND] = "list_snapshots lists the snapshots",
    };
    const char *remedy = err->cause < ERR_CAUSES ? remedies[err->cause] : NULL;

    if (!remedy)
        remedy = err_remedy_of(err);
    return remedy && strstr(remedy, "'holt ") ? NULL : remedy;
}

int tool_job_fail(struct tool_job *job, int r, struct err *err)
{
    const char *remedy = remedy_for_model(err);

    if (r == -ECANCELED || !is_for_model(err))
        return r;
    tool_job_set_error(job, "%s%s%s", err->msg, remedy ? "\n" : "", remedy ? remedy : "");
    return 0;
}

char *tool_path(const char *path)
{
    if (path[0] == '/')
        return xstrdup(path);
    if (path[0] == '\0' || strcmp(path, ".") == 0)
        return xstrdup(WORKSPACE);
    return xasprintf(WORKSPACE "/%s", path);
}

uint64_t tool_job_left_ms(const struct tool_job *job, uint64_t most)
{
    uint64_t now_ms = clock_ms(), left_ms;

    if (job->deadline_ms == 0)
        return most;
    left_ms = job->deadline_ms > now_ms ? job->deadline_ms - now_ms : 1;
    return most == 0 || left_ms < most ? left_ms : most;
}

int tool_job_refuse_reused_id(const struct tool_job *job, struct err *err)
{
    (void)err_set(err, ERR_INVALID,
                  "the tool call id '%.100s' was used with another tool or other parameters",
                  job->call_id);
    return err_remedy(err, "use a different id for a different call");
}

/* --- creation -------------------------------------------------------------------------------- */

static void hash_hex(const char *text, size_t len, char ret[static TOOL_HASH_SIZE])
{
    unsigned char bytes[SHA256_DIGEST_LENGTH];

    (void)SHA256((const unsigned char *)text, len, bytes);
    hex_encode(bytes, sizeof(bytes), ret);
}

/* Sorts the keys, so that the digest does not depend on how the client wrote the parameters. */
static void job_set_id(struct tool_job *job, const char *id)
{
    cleanup_free char *params =
        job->params ? json_dumps(job->params, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    cleanup_free char *all = xasprintf("%s %s%s%s", job->tool->name, params ? params : "{}",
                                       job->tier ? " in " : "", job->tier ? job->tier : "");

    (void)snprintf(job->call_id, sizeof(job->call_id), "%s", id);
    hash_hex(id, strlen(id), job->id_hash);
    hash_hex(all, strlen(all), job->digest);
    job->generation = sandbox_generation(job->sandbox);
}

static const struct tool_kind *kind_of(const struct tool *tool)
{
    if (tool->work == TOOL_BY_WORKER)
        return &tool_by_worker;
    if (tool->work == TOOL_BY_HOST)
        return &tool_by_host;
    if (strcmp(tool->name, "shell") == 0)
        return &tool_by_shell;
    return strncmp(tool->name, "process_", strlen("process_")) == 0 ? &tool_by_launch
                                                                    : &tool_by_process;
}

static uint64_t deadline_of(const struct tool_job *job, uint64_t timeout_ms)
{
    return timeout_ms == 0 || timeout_ms > UINT64_MAX - job->began_ms ? 0
                                                                      : job->began_ms + timeout_ms;
}

struct tool_job *tool_job_new(struct sandbox *sandbox, const struct tool *tool,
                              const struct tool_request *request)
{
    struct tool_job *job = xcalloc(1, sizeof(*job));
    uint64_t tokens = request->max_output_tokens;
    struct host_tool_settings settings;

    host_get_tool_settings(sandbox_host(sandbox), &settings);
    atomic_init(&job->refs, 1);
    lock_init(&job->lock, LOCK_TOOL_JOB);
    job->sandbox = sandbox_ref(sandbox);
    job->tool = tool;
    job->kind = kind_of(tool);
    job->params = json_incref((json_t *)(uintptr_t)request->params);
    job->began_ms = clock_ms();
    job->began_ns = clock_ns();
    job->deadline_ms =
        deadline_of(job, request->timeout_ms ? request->timeout_ms : settings.timeout_ms);
    job->budget = (tokens ? tokens : settings.output_tokens) * TOOL_TOKEN_BYTES;
    job->memory_bytes = request->memory_bytes ? request->memory_bytes : settings.memory_bytes;
    job->cpus_milli = request->cpus_milli ? request->cpus_milli : settings.cpus_milli;
    job->wants_changed = request->wants_changed;
    job->wants_snapshot = request->snapshot < 0 ? settings.takes_snapshots : request->snapshot > 0;
    job->tier = request->tier ? xstrdup(request->tier) : NULL;
    job->is_read_only = request->is_read_only;
    job->is_background = request->is_background;
    job->text.max = TOOL_TEXT_MAX;
    job->spill.fd = job->cancel_fd = -EBADF;
    if (request->call_id && *request->call_id)
        job_set_id(job, request->call_id);
    return job;
}

struct tool_job *tool_job_ref(struct tool_job *job)
{
    atomic_fetch_add(&job->refs, 1);
    return job;
}

void tool_job_unref(struct tool_job *job)
{
    if (!job || atomic_fetch_sub(&job->refs, 1) != 1)
        return;
    tool_params_done(&job->values);
    buf_done(&job->text);
    buf_done(&job->images);
    free(job->blocks);
    buf_done(&job->paths);
    free(job->changes);
    json_decref(job->params);
    free(job->tier);
    sandbox_unref(job->sandbox);
    lock_destroy(&job->lock);
    free(job);
}

/* --- execution ------------------------------------------------------------------------------- */

bool tool_job_is_over(struct tool_job *job)
{
    bool is_over;

    lock_take(&job->lock);
    is_over = job->is_over;
    lock_release(&job->lock);
    return is_over;
}

bool tool_job_is_canceled(struct tool_job *job)
{
    bool is_canceled;

    lock_take(&job->lock);
    is_canceled = job->is_canceled;
    lock_release(&job->lock);
    return is_canceled;
}

/* Counts the job and marks the files to compare with; if that fails, the list of changes in the
 * result is marked as not complete. */
static int job_begin(struct tool_job *job, struct err *err)
{
    struct err ignored;
    int r = sandbox_tool_began(job->sandbox, err);

    if (r < 0)
        return r;
    job->has_begun = true;
    host_tool_began(sandbox_host(job->sandbox));
    if (!job->wants_changed || job->tool->is_read_only || job->tool->work != TOOL_BY_PROCESS)
        return 0;
    job->has_mark = sandbox_mark(job->sandbox, &job->mark, &ignored) == 0;
    job->result.changed_is_cut = !job->has_mark;
    return 0;
}

void tool_job_complete(struct tool_job *job, int r, const struct err *err)
{
    const uint64_t one = 1;

    lock_take(&job->lock);
    job->failure = r;
    if (r < 0)
        job->err = *err;
    job->is_over = true;
    for (const struct tool_waiter *waiter = job->waiters; waiter; waiter = waiter->next)
        (void)!write(waiter->event_fd, &one, sizeof(one));
    lock_release(&job->lock);
    if (job->call_id[0])
        tool_job_table_leave(host_extension_data(sandbox_host(job->sandbox)), job);
}

/* Returns false if a rollback has undone the job, unless the job is that rollback. */
static bool job_is_lasting(struct tool_job *job)
{
    job->end_generation = sandbox_generation(job->sandbox);
    return job->generation == job->end_generation || strcmp(job->tool->name, "rollback") == 0;
}

static void job_drop_mark(struct tool_job *job)
{
    if (job->has_mark)
        sandbox_unmark(job->sandbox, &job->mark);
    job->has_mark = false;
}

/* Makes it too late to keep the job, and returns whether it was kept. */
static bool job_end_keeping(struct tool_job *job)
{
    bool is_kept;

    lock_take(&job->lock);
    is_kept = job->is_kept;
    job->is_ending = true;
    job->result.is_canceled = job->is_canceled;
    lock_release(&job->lock);
    return is_kept;
}

/* Storing a result removes older ones, which a read-only client must not cause. A job that was kept
 * is for readers of its outcome, so an error is stored too, unless the next daemon process will
 * know more. */
static void job_store(struct tool_job *job, int r, const struct err *err)
{
    bool is_kept = job_end_keeping(job), is_lasting;
    struct err ignored;

    if (!job->call_id[0] || !job->has_begun || job->is_read_only)
        return;
    is_lasting = job_is_lasting(job);
    if (r < 0 && is_kept && host_is_open(sandbox_host(job->sandbox), &ignored) == 0) {
        tool_job_set_error(job, "%s", err->msg);
        tool_result_finish(job);
        tool_archive_store(job);
    } else if (r == 0 && (job->is_background ? is_kept : is_lasting)) {
        tool_archive_store(job);
    }
}

void tool_job_finish(struct tool_job *job, int r, const struct err *err)
{
    if (job->kind->stop)
        job->kind->stop(job);
    if (r == 0)
        tool_result_finish(job);
    job_drop_mark(job);
    if (job->spill.fd >= 0)
        bounded_dir_drop(&tool_archive_of(job->sandbox)->outputs, &job->spill);
    job_store(job, r, err);
    if (job->has_begun) {
        host_tool_ended(sandbox_host(job->sandbox), tool_tier(job->tool), job->began_ns,
                        r == 0 && job->result.is_error ? -EINVAL : r);
        sandbox_tool_ended(job->sandbox);
    }
    tool_job_complete(job, r, err);
}

int tool_job_drive(struct tool_job *job, int watch_fd, struct tool_progress *ret)
{
    struct err err = { 0 };
    int r = job->has_begun ? 0 : job_begin(job, &err);

    if (r < 0) {
        tool_job_finish(job, r, &err);
        return 0;
    }
    if (job->call_id[0] && !job->kind->can_resume)
        watch_fd = -1;
    r = tool_job_is_canceled(job) && !job->state ? -ECANCELED
                                                 : job->kind->next(job, watch_fd, ret, &err);
    if (r > 0)
        return 1;
    if (r == -ECANCELED && !tool_job_is_canceled(job))
        return r;
    if (r == -ECANCELED) {
        tool_job_set_error(job, "the call was canceled.");
        r = 0;
    }
    tool_job_finish(job, r, &err);
    return 0;
}
