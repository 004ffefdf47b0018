// SPDX-License-Identifier: Apache-2.0
#include "api/stream/work_stream.h"

#include <errno.h>

#include "base/clock.h"

enum { PROGRESS_INTERVAL_MS = 200 };

void work_stream_progress(const struct template_progress *progress, void *context)
{
    struct work_stream *work = context;

    lock_take(&work->lock);
    work->progress = *progress;
    lock_release(&work->lock);
}

struct msg_import_progress work_stream_message(const struct work_stream *work)
{
    return (struct msg_import_progress){
        .bytes = work->progress.bytes,
        .files = work->progress.files,
        .source_bytes = work->progress.source_bytes,
        .source_total = work->progress.source_total,
    };
}

static void work_main(void *context)
{
    struct work_stream *work = context;
    struct err err = { 0 };
    int r = work->ops->run(work, &err);

    lock_scope(&work->lock);
    work->result = r;
    work->err = err;
    work->is_over = true;
    cond_signal(&work->over);
}

/* Waits until the work is over or progress is due. Needs the lock. */
static bool work_wait(struct work_stream *work)
{
    uint64_t until_ms = clock_after_ms(PROGRESS_INTERVAL_MS);

    while (!work->is_over && cond_wait_until(&work->over, &work->lock, until_ms))
        ;
    return work->is_over;
}

/* Progress is sent even without a change: only a write detects a client that has gone. */
static int work_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct work_stream *work = (struct work_stream *)stream;
    bool is_over;
    int r;

    lock_take(&work->lock);
    is_over = work_wait(work);
    if (is_over && work->result < 0) {
        *err = work->err;
        r = work->result == -ECANCELED ? -EIO : work->result;
    } else {
        r = is_over ? work->ops->finish(work, out) : work->ops->tell(work, out);
    }
    lock_release(&work->lock);
    if (r < 0)
        return err->kind != ERR_NONE ? r : err_sys(err, r, "write a progress message");
    return is_over ? 0 : 1;
}

static void work_close(struct stream *stream)
{
    struct work_stream *work = (struct work_stream *)stream;

    if (work->ops->cancel)
        work->ops->cancel(work);
    thread_join(&work->thread);
    work->ops->free(work);
}

void work_stream_init(struct work_stream *work, const struct work_ops *ops)
{
    static const struct stream_ops stream_ops = { work_next, work_close };

    work->stream.ops = &stream_ops;
    work->ops = ops;
    lock_init(&work->lock, LOCK_TEMPLATE_IMPORT);
    cond_init(&work->over);
}

void work_stream_done(struct work_stream *work)
{
    cond_destroy(&work->over);
    lock_destroy(&work->lock);
}

int work_stream_start(struct work_stream *work, struct stream **ret, struct err *err)
{
    int r = thread_start(&work->thread, work->ops->thread_name, work_main, work);

    if (r < 0)
        return err_sys(err, r, "start the work");
    *ret = &work->stream;
    return 0;
}
