// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "remote/archive/list.h"
#include "remote/archive/pipeline.h"

DEFINE_CLEANUP(archive_pipeline_stop, struct archive_pipeline *);

/* Runs in the threads. */
static int chunk_work(void *context, struct archive_job *job, struct archive_scratch *scratch)
{
    return archive_chunk_get(context, scratch, &job->ref, &job->content, &job->err);
}

/* Orders as many chunks as may be under way: 0 or a failure. */
static int chunks_order(struct archive_pipeline *pipeline, struct archive_cursor *cursor,
                        struct err *err)
{
    struct archive_job *job;
    int r = 1;

    while (r > 0 && (job = archive_pipeline_next(pipeline))) {
        r = archive_cursor_next(cursor, &job->ref, err);
        if (r > 0)
            archive_pipeline_submit(pipeline);
    }
    return r < 0 ? r : 0;
}

static int chunks_read(struct archive_pipeline *pipeline, struct archive_cursor *cursor,
                       archive_data_fn *data, void *context, struct err *err)
{
    for (;;) {
        const struct archive_job *job;
        int r = chunks_order(pipeline, cursor, err);

        if (r < 0)
            return r;
        job = archive_pipeline_wait(pipeline);
        if (!job)
            return 0;
        if (job->result < 0) {
            *err = job->err;
            return job->result;
        }
        r = data(context, job->content.data, job->content.len);
        if (r < 0)
            return r;
        archive_pipeline_release(pipeline);
    }
}

int archive_read(const struct archive_store *store, const char *name, archive_data_fn *data,
                 void *context, struct err *err)
{
    cleanup_with(archive_session_done) struct archive_session session = { 0 };
    cleanup_with(archive_scratch_done) struct archive_scratch scratch = { 0 };
    cleanup_with(archive_list_done) struct archive_list list = { 0 };
    cleanup_with(archive_cursor_done) struct archive_cursor cursor = { 0 };
    cleanup_with(archive_pipeline_stop_slot) struct archive_pipeline *pipeline = NULL;
    int r = archive_session_open(store, &session, err);

    if (r < 0)
        return r;
    archive_scratch_init(&scratch);
    r = archive_list_get(&session, &scratch, name, &list, err);
    if (r == 0)
        r = archive_pipeline_start(chunk_work, &session, &pipeline, err);
    if (r < 0)
        return r;
    archive_cursor_init(&cursor, &session, &scratch, &list);
    return chunks_read(pipeline, &cursor, data, context, err);
}
