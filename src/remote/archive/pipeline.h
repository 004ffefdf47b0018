/* A few threads that work on chunks, whose results come back in the order of the chunks. One
 * thread owns the pipeline and calls all functions. */
#pragma once

#include "base/err.h"
#include "remote/archive/chunk.h"

struct archive_job {
    struct archive_ref ref;
    struct buf content;
    uint64_t stored;
    int result; /* of the work: 0, or negative with err */
    struct err err;
};

typedef int archive_work_fn(void *context, struct archive_job *job,
                            struct archive_scratch *scratch);

struct archive_pipeline;

/* Starts the threads. */
int archive_pipeline_start(archive_work_fn *work, void *context, struct archive_pipeline **ret,
                           struct err *err);

/* Drops jobs that no thread has begun, and waits for the others. Accepts NULL. */
void archive_pipeline_stop(struct archive_pipeline *pipeline);

/* Returns the job to fill next; NULL while as many as may be are under way. */
struct archive_job *archive_pipeline_next(struct archive_pipeline *pipeline);

/* Hands the job of archive_pipeline_next to the threads. */
void archive_pipeline_submit(struct archive_pipeline *pipeline);

/* Waits for the oldest job; NULL if none is under way. */
struct archive_job *archive_pipeline_wait(struct archive_pipeline *pipeline);

/* Frees the job of archive_pipeline_wait. */
void archive_pipeline_release(struct archive_pipeline *pipeline);
