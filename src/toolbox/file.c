// SPDX-License-Identifier: Apache-2.0
/* File tools, which a worker inside the sandbox executes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text/base64.h"
#include "host/view/query.h"
#include "toolbox/tool_internal.h"
#include "toolbox/worker.h"

/* Moves the reply to the job; encodes an image as base64. */
static int job_take_reply(struct tool_job *job, struct tool_worker_reply *reply, struct err *err)
{
    int r = 0;

    job->result.is_error = reply->outcome.flags & TOOL_IS_ERROR;
    if (reply->outcome.flags & TOOL_IS_IMAGE) {
        (void)snprintf(job->mime_text, sizeof(job->mime_text), "%s", reply->outcome.mime);
        job->mime = job->mime_text;
        r = base64_encode(&job->text, reply->content.data, reply->content.len);
    } else {
        job->text = reply->content;
        reply->content = (struct buf)BUF_INIT(0);
    }
    for (size_t i = 0; job->wants_changed && i < reply->change_count; i++)
        tool_job_add_change(job, reply->changes[i].kind, reply->changes[i].path);
    return r < 0 ? err_sys(err, r, "store the image that %s has read", job->tool->name) : 0;
}

/* Names the rule that protects a path, so that a model does not try again. */
static int job_name_rule(struct tool_job *job, struct err *err)
{
    const char *path = json_string_value(json_object_get(job->params, "path"));
    char reason[PERMISSION_REASON_SIZE];
    int r;

    if (!job->result.is_error || !path || !job->text.data ||
        !strcasestr(job->text.data, "permission denied") ||
        !permission_reason(job->sandbox, path, reason))
        return 0;
    r = buf_printf(&job->text, " It is %s.", reason);
    return r < 0 ? err_sys(err, r, "store the result of %s", job->tool->name) : 0;
}

static int job_time_out(struct tool_job *job)
{
    tool_job_set_error(job,
                       "%s exceeded its time limit and was stopped. Use a smaller directory or a "
                       "simpler pattern.",
                       job->tool->name);
    job->result.timed_out = true;
    return 0;
}

static int job_run_worker(struct tool_job *job, int watch_fd, struct err *err)
{
    const struct tool_worker_job work = {
        .tool = job->tool->worker,
        .values = job->values.at,
        .count = job->values.count,
        .watch_fd = watch_fd,
        .deadline_ms = job->deadline_ms,
        .is_read_only = job->is_read_only,
    };
    cleanup_with(tool_worker_reply_done) struct tool_worker_reply reply = { .change_count = 0 };
    int r = tool_worker_run(job->sandbox, &work, &reply, err);

    if (r == -ETIMEDOUT)
        return job_time_out(job);
    r = r < 0 ? tool_job_fail(job, r, err) : job_take_reply(job, &reply, err);
    return r < 0 ? r : job_name_rule(job, err);
}

static void set_cancel_fd(struct tool_job *job, int fd)
{
    lock_take(&job->lock);
    job->cancel_fd = fd;
    if (fd >= 0 && job->is_canceled)
        (void)shutdown(fd, SHUT_RDWR);
    lock_release(&job->lock);
}

/* Runs a call with an id, which only tool_cancel ends early, not a disconnect of the client. */
static int job_run_detached(struct tool_job *job, struct err *err)
{
    int pair[2], r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, -errno, "create a socket pair");
    set_cancel_fd(job, pair[1]);
    r = job_run_worker(job, pair[0], err);
    set_cancel_fd(job, -EBADF);
    (void)fd_close(pair[0]);
    (void)fd_close(pair[1]);
    return r;
}

static int worker_tool_next(struct tool_job *job, int watch_fd, struct tool_progress *ret,
                            struct err *err)
{
    (void)ret;
    return job->call_id[0] ? job_run_detached(job, err) : job_run_worker(job, watch_fd, err);
}

static void worker_tool_cancel(struct tool_job *job)
{
    if (job->cancel_fd >= 0)
        (void)shutdown(job->cancel_fd, SHUT_RDWR);
}

const struct tool_kind tool_by_worker = { .next = worker_tool_next, .cancel = worker_tool_cancel };
