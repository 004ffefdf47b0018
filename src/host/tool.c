// SPDX-License-Identifier: Apache-2.0
#include "host/tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/near.h"
#include "base/xalloc.h"
#include "host/sandbox_internal.h"
#include "host/tool_internal.h"
#include "host/tool_params.h"

#define WORKSPACE "/workspace"

/* The client's end of it. */
struct tool_call {
    struct tool_job *job;
    int watch_fd;
    struct tool_result result;
};

/* --- what kinds of tools use ----------------------------------------------------------------- */

void tool_job_refuse(struct tool_job *job, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_clear(&job->text);
    (void)buf_add_str(&job->text, text);
    job->result.is_error = true;
}

/* What is wrong with the sandbox or the daemon is for whoever runs the model. */
static bool is_for_model(const struct err *err)
{
    static const bool keeps_from_running[ERR_CAUSES] = {
        [CAUSE_SESSION_NOT_FOUND] = true,  [CAUSE_SESSION_PAUSED] = true,
        [CAUSE_SESSION_DESTROYING] = true, [CAUSE_ROLLBACK_IN_PROGRESS] = true,
        [CAUSE_INVALID_STATE] = true,      [CAUSE_SHUTTING_DOWN] = true,
    };

    return !keeps_from_running[err->cause] && err->kind != ERR_INTERNAL &&
           err->kind != ERR_UNAVAILABLE && err->kind != ERR_CANCELED;
}

int tool_job_fail(struct tool_job *job, int r, struct err *err)
{
    const char *remedy = err_remedy_of(err);

    if (r == -ECANCELED || !is_for_model(err))
        return r;
    tool_job_refuse(job, "%s%s%s", err->msg, remedy ? "\n" : "", remedy ? remedy : "");
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

/* --- jobs ------------------------------------------------------------------------------------ */

static int not_yet_next(struct tool_job *job, int watch_fd, struct tool_progress *ret,
                        struct err *err)
{
    (void)watch_fd, (void)ret, (void)err;
    tool_job_refuse(job, "the tool %s is not there yet.", job->tool->name);
    return 0;
}

static const struct tool_kind not_yet = { .next = not_yet_next };

static const struct tool_kind *kind_of(const struct tool *tool)
{
    return strcmp(tool->name, "bash") == 0 ? &tool_by_process : &not_yet;
}

static struct tool_job *job_new(struct sandbox *sandbox, const struct tool *tool,
                                const struct tool_request *request)
{
    enum { DEFAULT_TIMEOUT_MS = 5 * 60 * 1000, DEFAULT_TOKENS = 10000 };
    struct tool_job *job = xcalloc(1, sizeof(*job));
    uint64_t tokens = request->max_output_tokens ? request->max_output_tokens : DEFAULT_TOKENS;

    atomic_init(&job->refs, 1);
    (void)pthread_mutex_init(&job->lock, NULL);
    job->sandbox = sandbox_ref(sandbox);
    job->tool = tool;
    job->kind = kind_of(tool);
    job->params = json_incref((json_t *)(uintptr_t)request->params);
    job->began_ms = clock_ms();
    job->deadline_ms =
        job->began_ms + (request->timeout_ms ? request->timeout_ms : DEFAULT_TIMEOUT_MS);
    job->budget = tokens * TOOL_TOKEN_BYTES;
    job->memory_bytes = request->memory_bytes;
    job->cpus_milli = request->cpus_milli;
    job->wants_changed = request->wants_changed;
    job->wants_snapshot = request->snapshot > 0;
    job->only_looks = request->only_looks;
    job->text.max = TOOL_TEXT_MAX;
    return job;
}

static void job_unref(struct tool_job *job)
{
    if (!job || atomic_fetch_sub(&job->refs, 1) != 1)
        return;
    if (job->kind->stop)
        job->kind->stop(job);
    tool_params_done(&job->values);
    buf_done(&job->text);
    json_decref(job->params);
    sandbox_unref(job->sandbox);
    (void)pthread_mutex_destroy(&job->lock);
    free(job);
}

static unsigned tier_of(const struct tool *tool)
{
    return tool->work == TOOL_BY_HOST ? 0 : tool->work == TOOL_BY_WORKER ? 1 : 2;
}

static void conclude(struct tool_job *job)
{
    job->block = (struct tool_block){ .text = job->text.data ? job->text.data : "",
                                      .len = job->text.len,
                                      .mime = job->mime };
    job->result.blocks = &job->block;
    job->result.block_count = 1;
    job->result.duration_ms = clock_ms() - job->began_ms;
    job->result.tier = tier_of(job->tool);
    job->is_over = true;
}

/* --- calls ----------------------------------------------------------------------------------- */

static int refuse_unknown(const char *name, struct err *err)
{
    const char *nearest = NULL;
    int least = NEAR_MAX + 1;

    for (size_t i = 0; tool_at(i); i++) {
        int distance = word_distance(name, tool_at(i)->name);

        if (distance < least) {
            least = distance;
            nearest = tool_at(i)->name;
        }
    }
    if (nearest)
        return err_set(err, ERR_NOT_FOUND, "no tool '%.60s'; did you mean '%s'?", name, nearest);
    return err_set(err, ERR_NOT_FOUND, "no tool '%.60s'", name);
}

static int check(const struct tool_request *request, const struct tool **ret, struct err *err)
{
    const struct tool *tool = request->name ? tool_find(request->name) : NULL;

    if (!tool)
        return refuse_unknown(request->name ? request->name : "", err);
    if (request->only_looks && !tool->only_looks)
        return err_set(err, ERR_DENIED, "the tool %s changes things, and this client may only look",
                       tool->name);
    if (request->call_id && strlen(request->call_id) > TOOL_ID_MAX)
        return err_set(err, ERR_INVALID, "a tool call id has at most %d bytes", TOOL_ID_MAX);
    if (request->max_output_tokens > TOOL_OUTPUT_TOKENS_MAX)
        return err_set(err, ERR_INVALID, "max_output_tokens is at most %d", TOOL_OUTPUT_TOKENS_MAX);
    *ret = tool;
    return 0;
}

int tool_open(struct sandbox *sandbox, const struct tool_request *request, int watch_fd,
              struct tool_call **ret, struct err *err)
{
    const struct tool *tool = NULL;
    struct tool_call *call;
    struct tool_job *job;
    int r = check(request, &tool, err);

    if (r < 0)
        return r;
    job = job_new(sandbox, tool, request);
    if (tool_params_take(tool, job->params, &job->values, &job->text) < 0) {
        job->result.is_error = true;
        conclude(job);
    }
    call = xcalloc(1, sizeof(*call));
    *call = (struct tool_call){ .job = job, .watch_fd = watch_fd };
    *ret = call;
    return 0;
}

int tool_next(struct tool_call *call, struct tool_event *ret, struct err *err)
{
    struct tool_job *job = call->job;
    struct tool_progress progress = { .text = NULL };
    int r = job->is_over ? 0 : job->kind->next(job, call->watch_fd, &progress, err);

    if (r < 0)
        return r;
    *ret = (struct tool_event){ .kind = r > 0 ? TOOL_PROGRESS : TOOL_RESULT };
    if (r > 0) {
        ret->progress.text = progress.text;
        ret->progress.len = progress.len;
        ret->progress.is_stderr = progress.is_stderr;
        return 0;
    }
    if (!job->is_over)
        conclude(job);
    call->result = job->result;
    ret->result = &call->result;
    return 0;
}

void tool_close(struct tool_call *call)
{
    if (!call)
        return;
    job_unref(call->job);
    free(call);
}

void tool_cancel(struct tool_call *call)
{
    (void)pthread_mutex_lock(&call->job->lock);
    call->job->is_canceled = true;
    (void)pthread_mutex_unlock(&call->job->lock);
}

int tool_read_output(struct sandbox *sandbox, const char *handle, uint64_t offset, uint64_t limit,
                     char **ret, size_t *ret_len, uint64_t *ret_total, struct err *err)
{
    (void)offset, (void)limit, (void)ret, (void)ret_len, (void)ret_total;
    return err_set(err, ERR_NOT_FOUND, "sandbox '%s' has no output '%.40s'", sandbox->info.id,
                   handle);
}
