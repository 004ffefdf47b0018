// SPDX-License-Identifier: Apache-2.0
#include "toolbox/tool.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text/near.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "host/core/extension.h"
#include "host/core/host.h"
#include "host/machine/machine.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/archive.h"
#include "toolbox/job_table.h"
#include "toolbox/params.h"
#include "toolbox/result.h"
#include "toolbox/tool_internal.h"

/* The client's end of it. */
struct tool_call {
    struct tool_job *job; /* referenced */
    int watch_fd;
    bool is_joined; /* somebody else drives the job */
    struct tool_waiter waiter;
    struct tool_result result;
};

/* --- opening --------------------------------------------------------------------------------- */

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
    const struct sandbox_limits limits = { .memory_bytes = request->memory_bytes,
                                           .cpu_millis = request->cpus_milli };

    if (!tool)
        return refuse_unknown(request->name ? request->name : "", err);
    if (request->is_read_only && !tool->is_read_only)
        return err_set(err, ERR_DENIED, "the tool %s changes things, and this client may only look",
                       tool->name);
    if (request->call_id && strlen(request->call_id) > TOOL_ID_MAX)
        return err_set(err, ERR_INVALID, "a tool call id has at most %d bytes", TOOL_ID_MAX);
    if (machine_check_limits(&limits, err) < 0)
        return -EINVAL;
    if (request->max_output_tokens > TOOL_OUTPUT_TOKENS_MAX)
        return err_set(err, ERR_INVALID, "max_output_tokens is at most %d", TOOL_OUTPUT_TOKENS_MAX);
    *ret = tool;
    return 0;
}

/* Waits for another's job. */
static int join(struct tool_call *call, struct tool_job *found, struct err *err)
{
    struct tool_job *own = call->job;
    int r = strcmp(found->digest, own->digest) == 0 ? 0 : tool_refuse_other_call(own, err);

    call->job = found;
    call->is_joined = true;
    tool_job_unref(own);
    if (r < 0)
        return r;
    call->waiter.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (call->waiter.event_fd < 0)
        return err_sys(err, -errno, "make an event descriptor");
    lock_take(&found->lock);
    call->waiter.next = found->waiters;
    found->waiters = &call->waiter;
    lock_release(&found->lock);
    return 0;
}

/* A call with an id: it goes on already, or is over, or begins now. */
static int meet(struct tool_call *call, struct err *err)
{
    struct tool_job *job = call->job;
    struct tool_job_table *jobs = host_extension_data(sandbox_host(job->sandbox));
    struct tool_job *found = tool_job_table_enter(jobs, job);
    int r;

    if (found)
        return join(call, found, err);
    /* Only now, so that whoever finishes it meanwhile is seen in one place or the other. */
    r = tool_archive_find(job, err);
    if (r == 0)
        return 0;
    if (r > 0)
        tool_result_restore(job);
    lock_take(&job->lock);
    job->is_repeated = r > 0;
    lock_release(&job->lock);
    tool_job_settle(job, r < 0 ? r : 0, err);
    return r < 0 ? r : 0;
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
    job = tool_job_new(sandbox, tool, request);
    call = xcalloc(1, sizeof(*call));
    *call = (struct tool_call){ .job = job, .watch_fd = watch_fd, .waiter.event_fd = -EBADF };
    if (tool_params_take(tool, job->params, &job->values, &job->text) < 0) {
        /* Nothing was done, so nothing is remembered. */
        job->call_id[0] = '\0';
        job->result.is_error = true;
        tool_result_restore(job);
        tool_job_settle(job, 0, NULL);
    } else if (job->call_id[0]) {
        r = meet(call, err);
    }
    if (r < 0) {
        tool_close(call);
        return r;
    }
    *ret = call;
    return 0;
}

/* --- following ------------------------------------------------------------------------------- */

/* 0 when it is over, 1 after a silence. */
static int wait_for_other(const struct tool_call *call)
{
    struct pollfd fds[2] = {
        { .fd = call->waiter.event_fd, .events = POLLIN },
        { .fd = call->watch_fd, .events = POLLRDHUP },
    };

    while (!tool_job_is_over(call->job)) {
        int n = poll(fds, 2, TOOL_SILENCE_MS);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return 1;
        if (fds[1].revents)
            return -ECANCELED;
    }
    return 0;
}

static int take_result(struct tool_call *call, struct tool_event *ret, struct err *err)
{
    struct tool_job *job = call->job;

    /* It is not the client of this call who has gone. */
    if (job->failure == -ECANCELED && call->is_joined)
        return err_set(err, ERR_UNAVAILABLE,
                       "the call was given up by the client that had made it; make it again");
    if (job->failure < 0) {
        *err = job->err;
        return job->failure;
    }
    call->result = job->result;
    call->result.is_repeated = call->is_joined || job->is_repeated;
    *ret = (struct tool_event){ .kind = TOOL_RESULT, .result = &call->result };
    return 0;
}

int tool_next(struct tool_call *call, struct tool_event *ret, struct err *err)
{
    struct tool_progress progress = { .text = NULL };
    int r = 0;

    if (call->is_joined)
        r = wait_for_other(call);
    else if (!tool_job_is_over(call->job))
        r = tool_job_drive(call->job, call->watch_fd, &progress);
    if (r == 0)
        return take_result(call, ret, err);
    if (r < 0) {
        (void)err_set(err, ERR_CANCELED, "the client has gone");
        return r;
    }
    *ret = (struct tool_event){ .kind = TOOL_PROGRESS,
                                .progress = { progress.text, progress.len, progress.is_stderr } };
    return 0;
}

/* --- leaving --------------------------------------------------------------------------------- */

static void leave_waiters(struct tool_call *call)
{
    struct tool_waiter **slot;

    if (call->waiter.event_fd < 0)
        return;
    lock_take(&call->job->lock);
    slot = &call->job->waiters;
    while (*slot && *slot != &call->waiter)
        slot = &(*slot)->next;
    if (*slot)
        *slot = call->waiter.next;
    lock_release(&call->job->lock);
    call->waiter.event_fd = fd_close(call->waiter.event_fd);
}

/* Whether a job that has begun is in other hands now. */
static bool hand_over(struct tool_job *job)
{
    struct host *host = sandbox_host(job->sandbox);
    struct err ignored;

    return job->call_id[0] && job->has_begun && job->kind->can_resume &&
           !tool_job_is_canceled(job) && host_is_open(host, &ignored) == 0 &&
           tool_job_table_adopt(host_extension_data(host), job) == 0;
}

/* The one who drove it has gone before its end. */
static void abandon(struct tool_job *job)
{
    struct err err = { 0 };

    if (hand_over(job))
        return;
    (void)err_set(&err, ERR_CANCELED, "whoever made the call has gone");
    if (job->call_id[0] && job->has_begun && tool_job_is_canceled(job)) {
        tool_job_refuse(job, "the call was canceled.");
        tool_job_conclude(job, 0, NULL);
    } else {
        tool_job_conclude(job, -ECANCELED, &err);
    }
    tool_job_unref(job);
}

void tool_close(struct tool_call *call)
{
    if (!call)
        return;
    leave_waiters(call);
    if (call->is_joined || tool_job_is_over(call->job))
        tool_job_unref(call->job);
    else
        abandon(call->job);
    free(call);
}

void tool_cancel(struct tool_call *call)
{
    struct tool_job *job = call->job;

    lock_take(&job->lock);
    job->is_canceled = true;
    if (!job->is_over && job->kind->cancel)
        job->kind->cancel(job);
    lock_release(&job->lock);
}

/* --- what a result was cut from -------------------------------------------------------------- */

enum { CHARACTER_MAX = 4 }; /* bytes of UTF-8 */

/* Forward to where a character begins. */
static size_t skip_rest(const char *text, size_t len)
{
    size_t at = 0;

    while (at < len && at < CHARACTER_MAX && ((unsigned char)text[at] & 0xC0) == 0x80)
        at++;
    return at;
}

/* Of a request for so much at a place, what there is. */
static uint64_t limit_of(const struct host *host, uint64_t wanted, uint64_t left)
{
    const uint64_t most = (uint64_t)TOOL_OUTPUT_TOKENS_MAX * TOOL_TOKEN_BYTES;
    struct host_tool_settings settings;
    uint64_t limit = wanted;

    host_get_tool_settings(host, &settings);
    if (limit == 0)
        limit = (uint64_t)settings.output_tokens * TOOL_TOKEN_BYTES;
    if (limit > most)
        limit = most;
    if (limit > left)
        limit = left;
    return limit < CHARACTER_MAX ? CHARACTER_MAX : limit; /* one there must be room for */
}

int tool_read_output(struct sandbox *sandbox, const struct tool_part *part, struct tool_output *ret,
                     struct err *err)
{
    cleanup_close int fd = bounded_dir_open(&tool_archive_of(sandbox)->outputs, part->handle);
    cleanup_free char *text = NULL;
    uint64_t total, offset, limit;
    struct stat info;
    size_t skip;
    ssize_t n;

    if (fd < 0 || fstat(fd, &info) < 0)
        return err_set(err, ERR_NOT_FOUND,
                       "sandbox '%s' has no output '%.40s' (any more): only the latest are kept",
                       sandbox_id(sandbox), part->handle);
    total = (uint64_t)info.st_size;
    offset = part->offset < total ? part->offset : total;
    limit = limit_of(sandbox_host(sandbox), part->limit, total - offset);
    text = xcalloc(limit + CHARACTER_MAX, 1);
    n = pread(fd, text, limit + CHARACTER_MAX - 1, (off_t)offset);
    if (n < 0)
        return err_sys(err, -errno, "read output '%s' of sandbox '%s'", part->handle,
                       sandbox_id(sandbox));
    skip = skip_rest(text, (size_t)n);
    *ret = (struct tool_output){ .len = utf8_cut(text, (size_t)n, limit) - skip,
                                 .offset = offset + skip,
                                 .total = total };
    memmove(text, text + skip, ret->len);
    text[ret->len] = '\0';
    ret->text = TAKE_PTR(text);
    return 0;
}

/* --- with the host and its sandboxes --------------------------------------------------------- */

static void *jobs_new(void)
{
    return tool_job_table_new();
}

static void jobs_free(void *data)
{
    tool_job_table_close(data);
}

static void *archive_new(struct sandbox *sandbox)
{
    return tool_archive_new(sandbox);
}

static void archive_free(void *data)
{
    tool_archive_free(data);
}

const struct host_extension toolbox_extension = {
    .host_new = jobs_new,
    .host_free = jobs_free,
    .sandbox_new = archive_new,
    .sandbox_free = archive_free,
    .sandbox_remove = tool_archive_remove,
};
