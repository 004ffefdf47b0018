// SPDX-License-Identifier: Apache-2.0
#include "remote/archive/pipeline.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/thread.h"
#include "base/xalloc.h"

/* Most of the time a thread waits for the storage: for a disk that syncs, or for a network. */
enum { WORKERS = 8, JOBS = 12 };

struct slot {
    struct archive_job job;
    bool is_done;
};

struct archive_pipeline {
    archive_work_fn *work;
    void *context;
    struct thread threads[WORKERS];
    struct lock lock;            /* over all below */
    struct cond submitted, done; /* for the threads, for the owner */
    /* Numbers of jobs, each at its place modulo JOBS: what the owner takes next, what a thread
     * begins next, what the owner submits next. */
    uint64_t oldest, begun, newest;
    bool is_stopping;
    struct slot slots[JOBS];
};

static struct slot *slot_begin(struct archive_pipeline *pipeline)
{
    lock_scope(&pipeline->lock);
    while (!pipeline->is_stopping && pipeline->begun == pipeline->newest)
        cond_wait(&pipeline->submitted, &pipeline->lock);
    return pipeline->is_stopping ? NULL : &pipeline->slots[pipeline->begun++ % JOBS];
}

static void slot_end(struct archive_pipeline *pipeline, struct slot *slot)
{
    lock_scope(&pipeline->lock);
    slot->is_done = true;
    cond_signal(&pipeline->done);
}

static void pipeline_main(void *argument)
{
    struct archive_pipeline *pipeline = argument;
    struct archive_scratch scratch;
    struct slot *slot;

    archive_scratch_init(&scratch);
    while ((slot = slot_begin(pipeline))) {
        slot->job.result = pipeline->work(pipeline->context, &slot->job, &scratch);
        slot_end(pipeline, slot);
    }
    archive_scratch_done(&scratch);
}

int archive_pipeline_start(archive_work_fn *work, void *context, struct archive_pipeline **ret,
                           struct err *err)
{
    struct archive_pipeline *pipeline = xcalloc(1, sizeof(*pipeline));
    int r = 0;

    pipeline->work = work;
    pipeline->context = context;
    lock_init(&pipeline->lock, LOCK_ARCHIVE_PIPELINE);
    cond_init(&pipeline->submitted);
    cond_init(&pipeline->done);
    for (size_t i = 0; i < JOBS; i++)
        pipeline->slots[i].job.content.max = ARCHIVE_CHUNK_MAX;
    for (size_t i = 0; r == 0 && i < WORKERS; i++)
        r = thread_start(&pipeline->threads[i], "archive", pipeline_main, pipeline);
    if (r < 0) {
        archive_pipeline_stop(pipeline);
        return err_sys(err, r, "start a thread for an archive");
    }
    *ret = pipeline;
    return 0;
}

void archive_pipeline_stop(struct archive_pipeline *pipeline)
{
    if (!pipeline)
        return;
    lock_take(&pipeline->lock);
    pipeline->is_stopping = true;
    cond_broadcast(&pipeline->submitted);
    lock_release(&pipeline->lock);
    for (size_t i = 0; i < WORKERS; i++)
        thread_join(&pipeline->threads[i]);
    for (size_t i = 0; i < JOBS; i++)
        buf_done(&pipeline->slots[i].job.content);
    cond_destroy(&pipeline->submitted);
    cond_destroy(&pipeline->done);
    lock_destroy(&pipeline->lock);
    free(pipeline);
}

struct archive_job *archive_pipeline_next(struct archive_pipeline *pipeline)
{
    lock_scope(&pipeline->lock);
    return pipeline->newest - pipeline->oldest == JOBS
               ? NULL
               : &pipeline->slots[pipeline->newest % JOBS].job;
}

void archive_pipeline_submit(struct archive_pipeline *pipeline)
{
    lock_scope(&pipeline->lock);
    pipeline->slots[pipeline->newest++ % JOBS].is_done = false;
    cond_signal(&pipeline->submitted);
}

struct archive_job *archive_pipeline_wait(struct archive_pipeline *pipeline)
{
    struct slot *slot = &pipeline->slots[pipeline->oldest % JOBS];
    lock_scope(&pipeline->lock);

    if (pipeline->oldest == pipeline->newest)
        return NULL;
    while (!slot->is_done)
        cond_wait(&pipeline->done, &pipeline->lock);
    return &slot->job;
}

void archive_pipeline_release(struct archive_pipeline *pipeline)
{
    lock_scope(&pipeline->lock);
    buf_clear(&pipeline->slots[pipeline->oldest++ % JOBS].job.content);
}
