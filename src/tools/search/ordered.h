/* Jobs that several threads do and whose results are taken in the order in which they were given.
 * Few jobs are done by the giver alone, so that a small search starts no thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ordered;

enum {
    ORDERED_JOBS = 512,      /* given and not taken yet */
    ORDERED_THREADS_MAX = 4, /* but no more than there are processors */
};

struct ordered_ops {
    size_t job_size; /* a job is so many bytes, zero at first */

    /* What one thread needs for itself, and its end. */
    void *(*thread_new)(void *context);
    void (*thread_free)(void *thread);

    /* Does a job; returns how many bytes its result keeps until it is taken. */
    size_t (*work)(void *context, void *thread, void *job);

    /* Takes the result, one at a time, and leaves the job ready to be used again; false when no
     * more are wanted. */
    bool (*take)(void *context, void *job);

    /* Instead, for those that come after that. */
    void (*drop)(void *context, void *job);
};

struct ordered *ordered_new(const struct ordered_ops *ops, void *context);

/* A place for the next job, once there is one; NULL when no more are wanted. */
void *ordered_next(struct ordered *ordered);

/* What was put into that place is to be done. */
void ordered_give(struct ordered *ordered);

/* Waits until all are done and taken, or dropped. */
void ordered_finish(struct ordered *ordered);
