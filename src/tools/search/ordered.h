/* A queue of jobs for several threads that delivers the results in the order of submission. The
 * submitting thread does a few jobs itself, so that a small search starts no threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ordered;

enum {
    ORDERED_JOBS = 512,      /* submitted jobs whose results are not delivered yet */
    ORDERED_THREADS_MAX = 4, /* and at most one per processor */
};

struct ordered_ops {
    size_t job_size; /* bytes of a job, which is zeroed first */

    /* Make and free the data of a thread. */
    void *(*thread_new)(void *context);
    void (*thread_free)(void *thread);

    /* Does a job; returns the bytes that its result occupies. */
    size_t (*work)(void *context, void *thread, void *job);

    /* Consumes the result, one at a time, and resets the job. Returns false when no more results
     * are needed. */
    bool (*deliver)(void *context, void *job);

    /* Frees the result of a job that is not needed. */
    void (*drop)(void *context, void *job);
};

struct ordered *ordered_new(const struct ordered_ops *ops, void *context);

/* Returns the next job to fill in, waiting for a free one; NULL when no more are needed. */
void *ordered_next(struct ordered *ordered);

/* Submits the job that ordered_next returned. */
void ordered_submit(struct ordered *ordered);

/* Waits until all results are delivered or dropped, and frees the queue. */
void ordered_finish(struct ordered *ordered);
