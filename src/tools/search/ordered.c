// SPDX-License-Identifier: Apache-2.0
#include "tools/search/ordered.h"

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/thread.h"
#include "base/xalloc.h"

enum {
    FEW_JOBS = 16,               /* not worth waking anybody for */
    RESULT_BYTES_MAX = 16 << 20, /* that wait to be taken */
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
    struct cond work_changed;  /* there are jobs, or there will be none */
    struct cond place_changed; /* there is room, for jobs or for results */
    struct slot slots[ORDERED_JOBS];
    uint64_t first; /* not taken yet */
    uint64_t next;  /* nobody works on it yet */
    uint64_t end;
    size_t bytes; /* of results that are not taken */
    bool is_closed, is_stopped;
    bool was_started;
    unsigned idle;
    struct thread threads[ORDERED_THREADS_MAX];
    unsigned thread_count;
    void *own; /* of the giver, once it has worked itself */
};

static struct slot *slot_of(struct ordered *ordered, uint64_t number)
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

/* Takes what is done, in order. The lock is held. */
static void take_done(struct ordered *ordered)
{
    while (ordered->first < ordered->next && slot_of(ordered, ordered->first)->is_done) {
        struct slot *slot = slot_of(ordered, ordered->first++);

        if (ordered->is_stopped)
            ordered->ops->drop(ordered->context, slot->job);
        else
            ordered->is_stopped = !ordered->ops->take(ordered->context, slot->job);
        slot->is_done = false;
        ordered->bytes -= slot->bytes;
        slot->bytes = 0;
    }
}

/* Does the next job, which there is. The lock is held, but not meanwhile. */
static void work_once(struct ordered *ordered, void *thread)
{
    uint64_t number = ordered->next++;
    struct slot *slot = slot_of(ordered, number);

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
        take_done(ordered);
        cond_broadcast(&ordered->place_changed);
    }
    /* Results of big files wait for the one that is to be taken first, whoever works on that. */
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
            work_once(ordered, thread);
            continue;
        }
        ordered->idle++;
        cond_wait(&ordered->work_changed, &ordered->lock);
        ordered->idle--;
    }
    lock_release(&ordered->lock);
    ordered->ops->thread_free(thread);
}

static unsigned processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : CPU_COUNT(&set);

    return count < 1 ? 1 : count > ORDERED_THREADS_MAX ? ORDERED_THREADS_MAX : (unsigned)count;
}

/* As many as can be had; with none the giver does it all. */
static void start_threads(struct ordered *ordered)
{
    unsigned wanted = processors();

    ordered->was_started = true;
    while (ordered->thread_count < wanted &&
           thread_start(&ordered->threads[ordered->thread_count], "holt-search", ordered_main,
                        ordered) == 0)
        ordered->thread_count++;
}

static void work_as_giver(struct ordered *ordered)
{
    if (!ordered->own)
        ordered->own = ordered->ops->thread_new(ordered->context);
    work_once(ordered, ordered->own);
}

void *ordered_next(struct ordered *ordered)
{
    struct slot *slot = NULL;

    lock_take(&ordered->lock);
    while (!ordered->is_stopped && ordered->end - ordered->first == ORDERED_JOBS) {
        if (ordered->thread_count == 0)
            work_as_giver(ordered);
        else
            cond_wait(&ordered->place_changed, &ordered->lock);
    }
    if (!ordered->is_stopped)
        slot = slot_of(ordered, ordered->end);
    lock_release(&ordered->lock);
    if (slot && !slot->job)
        slot->job = xcalloc(1, ordered->ops->job_size);
    return slot ? slot->job : NULL;
}

void ordered_give(struct ordered *ordered)
{
    lock_take(&ordered->lock);
    ordered->end++;
    if (!ordered->was_started && ordered->end - ordered->next == FEW_JOBS)
        start_threads(ordered);
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
        work_as_giver(ordered);
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
