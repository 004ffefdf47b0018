// SPDX-License-Identifier: Apache-2.0
/* Tools that a worker inside the sandbox does: those about files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text/base64.h"
#include "toolbox/tool_internal.h"
#include "toolbox/worker.h"

/* What it said becomes the job's; an image goes as base64. */
static int take_answer(struct tool_job *job, struct tool_worker_answer *answer, struct err *err)
{
    int r = 0;

    job->result.is_error = answer->outcome.flags & TOOL_IS_ERROR;
    if (answer->outcome.flags & TOOL_IS_IMAGE) {
        (void)snprintf(job->mime_text, sizeof(job->mime_text), "%s", answer->outcome.mime);
        job->mime = job->mime_text;
        r = base64_encode(&job->text, answer->content.data, answer->content.len);
    } else {
        job->text = answer->content;
        answer->content = (struct buf)BUF_INIT(0);
    }
    for (size_t i = 0; job->wants_changed && i < answer->change_count; i++)
        tool_job_note_change(job, answer->changes[i].kind, answer->changes[i].path);
    return r < 0 ? err_sys(err, r, "make room for what %s has read", job->tool->name) : 0;
}

static int time_out(struct tool_job *job)
{
    tool_job_refuse(job,
                    "%s did not come to an end in its time and was stopped. Ask for less: a "
                    "smaller directory, a simpler pattern.",
                    job->tool->name);
    job->result.timed_out = true;
    return 0;
}

static int run(struct tool_job *job, int watch_fd, struct err *err)
{
    const struct tool_worker_job work = {
        .tool = job->tool->worker,
        .values = job->values.at,
        .count = job->values.count,
        .watch_fd = watch_fd,
        .deadline_ms = job->deadline_ms,
        .is_read_only = job->is_read_only,
    };
    cleanup_with(tool_worker_answer_done) struct tool_worker_answer answer = { .change_count = 0 };
    int r = tool_worker_run(job->sandbox, &work, &answer, err);

    if (r == -ETIMEDOUT)
        return time_out(job);
    return r < 0 ? tool_job_fail(job, r, err) : take_answer(job, &answer, err);
}

static void set_cancel_fd(struct tool_job *job, int fd)
{
    lock_take(&job->lock);
    job->cancel_fd = fd;
    if (fd >= 0 && job->is_canceled)
        (void)shutdown(fd, SHUT_RDWR);
    lock_release(&job->lock);
}

/* Its client may go, but whoever cancels the call hangs up on it. */
static int run_for_all(struct tool_job *job, struct err *err)
{
    int pair[2], r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, -errno, "make a pair of sockets");
    set_cancel_fd(job, pair[1]);
    r = run(job, pair[0], err);
    set_cancel_fd(job, -EBADF);
    (void)fd_close(pair[0]);
    (void)fd_close(pair[1]);
    return r;
}

static int worker_tool_next(struct tool_job *job, int watch_fd, struct tool_progress *ret,
                            struct err *err)
{
    (void)ret;
    return job->call_id[0] ? run_for_all(job, err) : run(job, watch_fd, err);
}

static void worker_tool_cancel(struct tool_job *job)
{
    if (job->cancel_fd >= 0)
        (void)shutdown(job->cancel_fd, SHUT_RDWR);
}

const struct tool_kind tool_by_worker = { .next = worker_tool_next, .cancel = worker_tool_cancel };
