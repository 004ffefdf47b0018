// SPDX-License-Identifier: Apache-2.0
#include "builder/queue.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/xalloc.h"

struct build_queue {
    struct lock lock;
    struct cond changed;
    struct build_turn *first;
    size_t running, running_max;
};

struct build_queue *build_queue_new(size_t running_max)
{
    struct build_queue *queue = xcalloc(1, sizeof(*queue));

    lock_init(&queue->lock, LOCK_BUILD_QUEUE);
    cond_init(&queue->changed);
    queue->running_max = running_max;
    return queue;
}

void build_queue_free(struct build_queue *queue)
{
    if (!queue)
        return;
    cond_destroy(&queue->changed);
    lock_destroy(&queue->lock);
    free(queue);
}

/* Returns the pointer to a build in the list; for one that is not in it, the end of the list. */
static struct build_turn **queue_slot(struct build_queue *queue, const struct build_turn *turn)
{
    struct build_turn **slot = &queue->first;

    while (*slot && *slot != turn)
        slot = &(*slot)->next;
    return slot;
}

void build_queue_join(struct build_queue *queue, struct build_turn *turn)
{
    turn->next = NULL;
    lock_take(&queue->lock);
    *queue_slot(queue, turn) = turn;
    lock_release(&queue->lock);
}

/* Removes a waiting build. The caller holds the lock. */
static void queue_remove(struct build_queue *queue, struct build_turn *turn)
{
    *queue_slot(queue, turn) = turn->next;
    cond_broadcast(&queue->changed);
}

void build_queue_quit(struct build_queue *queue, struct build_turn *turn)
{
    lock_take(&queue->lock);
    queue_remove(queue, turn);
    lock_release(&queue->lock);
}

bool build_queue_enter(struct build_queue *queue, struct build_turn *turn,
                       const atomic_bool *is_cancelled)
{
    bool may_run;

    lock_take(&queue->lock);
    while (!atomic_load(is_cancelled) &&
           (queue->first != turn || queue->running >= queue->running_max))
        cond_wait(&queue->changed, &queue->lock);
    may_run = !atomic_load(is_cancelled);
    queue->running += may_run;
    queue_remove(queue, turn);
    lock_release(&queue->lock);
    return may_run;
}

void build_queue_leave(struct build_queue *queue)
{
    lock_take(&queue->lock);
    queue->running--;
    cond_broadcast(&queue->changed);
    lock_release(&queue->lock);
}

void build_queue_wake(struct build_queue *queue)
{
    lock_take(&queue->lock);
    cond_broadcast(&queue->changed);
    lock_release(&queue->lock);
}
