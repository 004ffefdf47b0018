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
#include "toolbox/tool_internal.h"

/* A client's handle of a job. */
struct tool_call {
    struct tool_job *job; /* referenced */
    int watch_fd;
    bool is_joined;     /* another thread drives the job */
    bool is_background; /* that is one of the job table, from the start */
    struct tool_waiter waiter;
    struct tool_result result;
};

/* --- opening --------------------------------------------------------------------------------- */

static int tool_refuse_unknown(const char *name, struct err *err)
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

static int request_check(const struct tool_request *request, const struct tool **ret,
                         struct err *err)
{
    const struct tool *tool = request->name ? tool_find(request->name) : NULL;
    const struct sandbox_limits limits = { .memory_bytes = request->memory_bytes,
                                           .cpu_millis = request->cpus_milli };

    if (!tool)
        return tool_refuse_unknown(request->name ? request->name : "", err);
    if (request->is_read_only && !tool->is_read_only)
        return err_set(err, ERR_DENIED, "tool '%s' is not read-only, but this client is",
                       tool->name);
    if (request->tier && strcmp(tool->name, "bash") != 0)
        return err_set(err, ERR_INVALID, "tool '%s' has no tier; bash has one", tool->name);
    if (request->call_id && strlen(request->call_id) > TOOL_ID_MAX)
        return err_set(err, ERR_INVALID, "a tool call id must not exceed %d bytes", TOOL_ID_MAX);
    if (machine_check_limits(&limits, err) < 0)
        return -EINVAL;
    if (request->max_output_tokens > TOOL_OUTPUT_TOKENS_MAX)
        return err_set(err, ERR_INVALID, "max_output_tokens must not exceed %d",
                       TOOL_OUTPUT_TOKENS_MAX);
    *ret = tool;
    return 0;
}

/* Makes the call hear of the end of its job, which another thread drives. */
static int call_enter_waiters(struct tool_call *call, struct err *err)
{
    struct tool_job *job = call->job;

    call->waiter.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (call->waiter.event_fd < 0)
        return err_sys(err, -errno, "create an eventfd");
    lock_take(&job->lock);
    call->waiter.next = job->waiters;
    job->waiters = &call->waiter;
    lock_release(&job->lock);
    return 0;
}

static void call_leave_waiters(struct tool_call *call)
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

/* Lets a thread of the job table drive the job of the call from the start. Returns whether one
 * does; otherwise the call can drive it. */
static bool call_go_background(struct tool_call *call)
{
    struct tool_job *job = call->job;
    struct err ignored;

    if (call->is_joined || tool_job_is_over(job) || call_enter_waiters(call, &ignored) < 0)
        return false;
    if (tool_job_table_adopt(host_extension_data(sandbox_host(job->sandbox)), tool_job_ref(job)) <
        0) {
        tool_job_unref(job);
        call_leave_waiters(call);
        return false;
    }
    call->is_joined = call->is_background = true;
    return true;
}

/* Makes the call wait for a job that another call started. */
static int call_join(struct tool_call *call, struct tool_job *found, struct err *err)
{
    struct tool_job *own = call->job;
    int r = !own->digest[0] || strcmp(found->digest, own->digest) == 0
                ? 0
                : tool_job_refuse_reused_id(own, err);

    call->job = found;
    call->is_joined = true;
    tool_job_unref(own);
    return r < 0 ? r : call_enter_waiters(call, err);
}

/* Joins a running job with the same id, or restores its stored result, or lets the job begin. */
static int call_resolve_id(struct tool_call *call, struct err *err)
{
    struct tool_job *job = call->job;
    struct tool_job_table *jobs = host_extension_data(sandbox_host(job->sandbox));
    struct tool_job *found = tool_job_table_enter(jobs, job);
    int r;

    if (found)
        return call_join(call, found, err);
    /* After the table, so that a job that finishes meanwhile is found in one of the two places. */
    r = tool_archive_find(job, err);
    if (r == 0)
        return 0;
    if (r > 0)
        tool_result_restore(job);
    lock_take(&job->lock);
    job->is_repeated = r > 0;
    lock_release(&job->lock);
    tool_job_complete(job, r < 0 ? r : 0, err);
    return r < 0 ? r : 0;
}

int tool_open(struct sandbox *sandbox, const struct tool_request *request, int watch_fd,
              struct tool_call **ret, struct err *err)
{
    const struct tool *tool = NULL;
    struct tool_call *call;
    struct tool_job *job;
    int r = request_check(request, &tool, err);

    if (r < 0)
        return r;
    job = tool_job_new(sandbox, tool, request);
    call = xcalloc(1, sizeof(*call));
    *call = (struct tool_call){ .job = job, .watch_fd = watch_fd, .waiter.event_fd = -EBADF };
    if (tool_params_parse(tool, job->params, &job->values, &job->text) < 0) {
        /* Nothing was executed, so nothing is stored. */
        job->call_id[0] = '\0';
        job->result.is_error = true;
        tool_result_restore(job);
        tool_job_complete(job, 0, NULL);
    } else if (job->call_id[0]) {
        r = call_resolve_id(call, err);
    }
    if (r < 0) {
        tool_close(call);
        return r;
    }
    if (request->is_background && job->call_id[0])
        (void)call_go_background(call);
    *ret = call;
    return 0;
}

bool tool_is_background(const struct tool_call *call)
{
    return call->is_background;
}

/* The lock of the job makes the result come after what is stored here, and replace it. */
int tool_keep(struct tool_call *call)
{
    struct tool_job *job = call->job;
    int r = -EALREADY;
    lock_scope(&job->lock);

    if (!call->is_background)
        return -EINVAL;
    if (!job->is_ending)
        r = tool_archive_keep(job);
    job->is_kept |= r == 0;
    return r;
}

/* --- calls that were kept -------------------------------------------------------------------- */

/* Returns whether a new job of a call that is no longer in progress would join what the call has
 * started. A rollback has undone the calls of earlier generations. */
static bool kept_can_rejoin(struct tool_job *job, const struct tool_kept *kept)
{
    return kept->generation == job->generation && job->kind->can_rejoin &&
           tool_params_parse(job->tool, job->params, &job->values, &job->text) == 0 &&
           job->kind->can_rejoin(job);
}

/* Makes the call go on that an earlier daemon process has left. Returns 0 when it does, or 1 when
 * the call is over. */
static int kept_rejoin(struct tool_call *call, const struct tool_kept *kept, struct err *err)
{
    const struct tool_request request = { .params = kept->params,
                                          .call_id = call->job->call_id,
                                          .is_background = true };
    struct tool_job *job = tool_job_new(call->job->sandbox, kept->tool, &request), *found;

    tool_job_unref(call->job);
    call->job = job;
    job->is_kept = true;
    if (!kept_can_rejoin(job, kept)) {
        (void)err_set(err, ERR_INTERNAL,
                      "the call did not survive the end of the daemon or a rollback; what it has "
                      "done until then is not known");
        tool_job_complete(job, -EIO, err);
        return 1;
    }
    found = tool_job_table_enter(host_extension_data(sandbox_host(job->sandbox)), job);
    if (found)
        return call_join(call, found, err);
    if (call_go_background(call))
        return 0;
    (void)err_set(err, ERR_EXHAUSTED, "too many calls are in progress; try again");
    tool_job_complete(job, -EAGAIN, err);
    return -EAGAIN;
}

/* Restores the stored result of the call (1), whose parameters are not known, or makes it go on
 * (0). */
static int call_restore(struct tool_call *call, struct err *err)
{
    struct tool_kept kept = { .params = NULL };
    struct tool_job *job = call->job;
    int r = tool_archive_find(job, err);

    if (r < 0)
        return r;
    if (r == 0) {
        r = tool_archive_find_kept(job, &kept)
                ? kept_rejoin(call, &kept, err)
                : err_set(err, ERR_NOT_FOUND,
                          "sandbox '%s' has no call '%.60s'; only the latest are kept",
                          sandbox_id(job->sandbox), job->call_id);
        json_decref(kept.params);
        return r;
    }
    tool_result_restore(job);
    lock_take(&job->lock);
    job->is_repeated = true;
    lock_release(&job->lock);
    tool_job_complete(job, 0, NULL);
    return 1;
}

int tool_find_call(struct sandbox *sandbox, const char *call_id, struct tool_call **ret,
                   bool *ret_is_over, struct err *err)
{
    const struct tool_request request = { .call_id = call_id };
    struct tool_call *call = xcalloc(1, sizeof(*call));
    struct tool_job *found;
    int r;

    call->job = tool_job_new(sandbox, tool_find("bash"), &request);
    call->job->digest[0] = '\0';
    call->watch_fd = -1;
    call->waiter.event_fd = -EBADF;
    found = tool_job_table_find(host_extension_data(sandbox_host(sandbox)), call->job);
    r = found ? call_join(call, found, err) : call_restore(call, err);
    if (r < 0) {
        call->is_joined = true; /* it was never begun, so there is nothing to end */
        tool_close(call);
        return r;
    }
    *ret_is_over = r > 0 || (found && tool_job_is_over(call->job));
    *ret = call;
    return 0;
}

/* --- events ---------------------------------------------------------------------------------- */

/* Returns 0 when the job has ended, 1 after a while, or -ECANCELED. */
static int call_wait_joined(const struct tool_call *call)
{
    struct pollfd fds[2] = {
        { .fd = call->waiter.event_fd, .events = POLLIN },
        { .fd = call->watch_fd, .events = POLLRDHUP },
    };

    while (!tool_job_is_over(call->job)) {
        int n = poll(fds, 2, call->is_background ? TOOL_BACKGROUND_MS : TOOL_SILENCE_MS);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return 1;
        if (fds[1].revents)
            return -ECANCELED;
    }
    return 0;
}

static int call_take_result(struct tool_call *call, struct tool_event *ret, struct err *err)
{
    struct tool_job *job = call->job;

    /* Not the client of this call has disconnected, but that of the first one. */
    if (job->failure == -ECANCELED && call->is_joined)
        return err_set(err, ERR_UNAVAILABLE,
                       "the client that started this call has disconnected; repeat the call");
    if (job->failure < 0) {
        *err = job->err;
        return job->failure;
    }
    call->result = job->result;
    call->result.is_repeated = (call->is_joined && !call->is_background) || job->is_repeated;
    *ret = (struct tool_event){ .kind = TOOL_RESULT, .result = &call->result };
    return 0;
}

int tool_next(struct tool_call *call, struct tool_event *ret, struct err *err)
{
    struct tool_progress progress = { .text = NULL };
    int r = 0;

    if (call->is_joined)
        r = call_wait_joined(call);
    else if (!tool_job_is_over(call->job))
        r = tool_job_drive(call->job, call->watch_fd, &progress);
    if (r == 0)
        return call_take_result(call, ret, err);
    if (r < 0) {
        (void)err_set(err, ERR_CANCELED, "the client has disconnected");
        return r;
    }
    *ret = (struct tool_event){ .kind = TOOL_PROGRESS,
                                .progress = { progress.text, progress.len, progress.is_stderr } };
    return 0;
}

/* --- closing --------------------------------------------------------------------------------- */

/* Lets a thread of the job table drive the job from now on; returns whether one does. */
static bool job_hand_over(struct tool_job *job)
{
    struct host *host = sandbox_host(job->sandbox);
    struct err ignored;

    return job->call_id[0] && job->has_begun && job->kind->can_resume &&
           !tool_job_is_canceled(job) && host_is_open(host, &ignored) == 0 &&
           tool_job_table_adopt(host_extension_data(host), job) == 0;
}

/* Ends a job whose client has closed it early, or hands it over. Takes the caller's reference. */
static void job_abandon(struct tool_job *job)
{
    struct err err = { 0 };

    if (job_hand_over(job))
        return;
    (void)err_set(&err, ERR_CANCELED, "the client has disconnected");
    if (job->call_id[0] && job->has_begun && tool_job_is_canceled(job)) {
        tool_job_set_error(job, "the call was canceled.");
        tool_job_finish(job, 0, NULL);
    } else {
        tool_job_finish(job, -ECANCELED, &err);
    }
    tool_job_unref(job);
}

void tool_close(struct tool_call *call)
{
    if (!call)
        return;
    call_leave_waiters(call);
    if (call->is_joined || tool_job_is_over(call->job))
        tool_job_unref(call->job);
    else
        job_abandon(call->job);
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

/* --- full texts of truncated results --------------------------------------------------------- */

enum { CHARACTER_MAX = 4 }; /* bytes of UTF-8 */

/* Returns the number of continuation bytes at the start. */
static size_t utf8_partial(const char *text, size_t len)
{
    size_t at = 0;

    while (at < len && at < CHARACTER_MAX && ((unsigned char)text[at] & 0xC0) == 0x80)
        at++;
    return at;
}

/* Returns how many bytes to read when `left` bytes remain: at least one character. */
static uint64_t output_limit(const struct host *host, uint64_t wanted, uint64_t left)
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
    return limit < CHARACTER_MAX ? CHARACTER_MAX : limit;
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
                       "sandbox '%s' has no output '%.40s'; only the latest outputs are kept",
                       sandbox_id(sandbox), part->handle);
    total = (uint64_t)info.st_size;
    offset = part->offset < total ? part->offset : total;
    limit = output_limit(sandbox_host(sandbox), part->limit, total - offset);
    text = xcalloc(limit + CHARACTER_MAX, 1);
    n = pread(fd, text, limit + CHARACTER_MAX - 1, (off_t)offset);
    if (n < 0)
        return err_sys(err, -errno, "read output '%s' of sandbox '%s'", part->handle,
                       sandbox_id(sandbox));
    skip = utf8_partial(text, (size_t)n);
    *ret = (struct tool_output){ .len = utf8_cut(text, (size_t)n, limit) - skip,
                                 .offset = offset + skip,
                                 .total = total };
    memmove(text, text + skip, ret->len);
    text[ret->len] = '\0';
    ret->text = TAKE_PTR(text);
    return 0;
}

/* --- extension of the host ------------------------------------------------------------------- */

static void *extension_host_new(void)
{
    return tool_job_table_new();
}

static void extension_host_free(void *data)
{
    tool_job_table_close(data);
}

static void *extension_sandbox_new(struct sandbox *sandbox)
{
    return tool_archive_new(sandbox);
}

static void extension_sandbox_free(void *data)
{
    tool_archive_free(data);
}

const struct host_extension toolbox_extension = {
    .host_new = extension_host_new,
    .host_free = extension_host_free,
    .sandbox_new = extension_sandbox_new,
    .sandbox_free = extension_sandbox_free,
    .sandbox_remove = tool_archive_remove,
};
