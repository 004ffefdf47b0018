// SPDX-License-Identifier: Apache-2.0
#include "tools/search/ordered.h"

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/thread.h"
#include "base/xalloc.h"

enum {
    FEW_JOBS = 16,               /* not worth waking a thread */
    RESULT_BYTES_MAX = 16 << 20, /* of results that wait for delivery */
};

struct slot {
    bool is_done;
    size_t bytes;
    void *job;
};

/* Jobs have numbers; the slot is the number modulo ORDERED_JOBS. first <= next <= end. */
struct ordered {
    const struct ordered_ops *ops;
    void *context;
    struct lock lock;
    struct cond work_changed;  /* new jobs, or closed */
    struct cond place_changed; /* room for jobs or results */
    struct slot slots[ORDERED_JOBS];
    uint64_t first; /* not delivered yet */
    uint64_t next;  /* not started yet */
    uint64_t end;
    size_t bytes; /* of results that are not delivered */
    bool is_closed, is_stopped;
    bool was_started;
    unsigned idle;
    struct thread threads[ORDERED_THREADS_MAX];
    unsigned thread_count;
    void *own; /* thread data of the submitter, once it has done a job */
};

static struct slot *ordered_slot(struct ordered *ordered, uint64_t number)
{
    return &ordered->slots[number % ORDERED_JOBS];
}

struct ordered *ordered_new(const struct ordered_ops *ops, void *context)
{
    struct ordered *ordered = xcalloc(1, sizeof(*ordered));

    ordered->ops = ops;
    ordered->context = context;
    lock_init(&ordered->lock, LOCK_SEARCH);
    cond_init(&ordered->work_changed);
    cond_init(&ordered->place_changed);
    return ordered;
}

/* Delivers finished results in order. The caller holds the lock. */
static void ordered_deliver(struct ordered *ordered)
{
    while (ordered->first < ordered->next && ordered_slot(ordered, ordered->first)->is_done) {
        struct slot *slot = ordered_slot(ordered, ordered->first++);

        if (ordered->is_stopped)
            ordered->ops->drop(ordered->context, slot->job);
        else
            ordered->is_stopped = !ordered->ops->deliver(ordered->context, slot->job);
        slot->is_done = false;
        ordered->bytes -= slot->bytes;
        slot->bytes = 0;
    }
}

/* Does the next job, which exists. The caller holds the lock; it is released during the work. */
static void ordered_work_once(struct ordered *ordered, void *thread)
{
    uint64_t number = ordered->next++;
    struct slot *slot = ordered_slot(ordered, number);

    if (!ordered->is_stopped) {
        size_t bytes;

        lock_release(&ordered->lock);
        bytes = ordered->ops->work(ordered->context, thread, slot->job);
        lock_take(&ordered->lock);
        slot->bytes = bytes;
    }
    slot->is_done = true;
    ordered->bytes += slot->bytes;
    if (number == ordered->first) {
        ordered_deliver(ordered);
        cond_broadcast(&ordered->place_changed);
    }
    /* Back-pressure: large results wait until the first one is delivered. */
    while (ordered->bytes > RESULT_BYTES_MAX && ordered->first <= number && !ordered->is_stopped)
        cond_wait(&ordered->place_changed, &ordered->lock);
}

static void ordered_main(void *arg)
{
    struct ordered *ordered = arg;
    void *thread = ordered->ops->thread_new(ordered->context);

    lock_take(&ordered->lock);
    while (ordered->next < ordered->end || !ordered->is_closed) {
        if (ordered->next < ordered->end) {
            ordered_work_once(ordered, thread);
            continue;
        }
        ordered->idle++;
        cond_wait(&ordered->work_changed, &ordered->lock);
        ordered->idle--;
    }
    lock_release(&ordered->lock);
    ordered->ops->thread_free(thread);
}

static unsigned processor_count(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : CPU_COUNT(&set);

    return count < 1 ? 1 : count > ORDERED_THREADS_MAX ? ORDERED_THREADS_MAX : (unsigned)count;
}

/* Starts as many threads as possible; without any, the submitter does all jobs. */
static void ordered_start_threads(struct ordered *ordered)
{
    unsigned wanted = processor_count();

    ordered->was_started = true;
    while (ordered->thread_count < wanted &&
           thread_start(&ordered->threads[ordered->thread_count], "holt-search", ordered_main,
                        ordered) == 0)
        ordered->thread_count++;
}

static void ordered_work_as_submitter(struct ordered *ordered)
{
    if (!ordered->own)
        ordered->own = ordered->ops->thread_new(ordered->context);
    ordered_work_once(ordered, ordered->own);
}

void *ordered_next(struct ordered *ordered)
{
    struct slot *slot = NULL;

    lock_take(&ordered->lock);
    while (!ordered->is_stopped && ordered->end - ordered->first == ORDERED_JOBS) {
        if (ordered->thread_count == 0)
            ordered_work_as_submitter(ordered);
        else
            cond_wait(&ordered->place_changed, &ordered->lock);
    }
    if (!ordered->is_stopped)
        slot = ordered_slot(ordered, ordered->end);
    lock_release(&ordered->lock);
    if (slot && !slot->job)
        slot->job = xcalloc(1, ordered->ops->job_size);
    return slot ? slot->job : NULL;
}

void ordered_submit(struct ordered *ordered)
{
    lock_take(&ordered->lock);
    ordered->end++;
    if (!ordered->was_started && ordered->end - ordered->next == FEW_JOBS)
        ordered_start_threads(ordered);
    else if (ordered->idle > 0 && ordered->end - ordered->next >= FEW_JOBS)
        cond_broadcast(&ordered->work_changed);
    lock_release(&ordered->lock);
}

void ordered_finish(struct ordered *ordered)
{
    lock_take(&ordered->lock);
    ordered->is_closed = true;
    cond_broadcast(&ordered->work_changed);
    while (ordered->thread_count == 0 && ordered->next < ordered->end)
        ordered_work_as_submitter(ordered);
    lock_release(&ordered->lock);
    for (unsigned i = 0; i < ordered->thread_count; i++)
        thread_join(&ordered->threads[i]);
    if (ordered->own)
        ordered->ops->thread_free(ordered->own);
    for (size_t i = 0; i < ORDERED_JOBS; i++)
        free(ordered->slots[i].job);
    cond_destroy(&ordered->place_changed);
    cond_destroy(&ordered->work_changed);
    lock_destroy(&ordered->lock);
    free(ordered);
}
