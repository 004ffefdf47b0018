// SPDX-License-Identifier: Apache-2.0
#include "host/build_queue.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/xalloc.h"

/* On the stack of who waits. */
struct waiter {
    struct waiter *next;
};

struct build_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct waiter *first;
    size_t running, running_max;
};

struct build_queue *build_queue_new(size_t running_max)
{
    struct build_queue *queue = xcalloc(1, sizeof(*queue));

    (void)pthread_mutex_init(&queue->lock, NULL);
    (void)pthread_cond_init(&queue->changed, NULL);
    queue->running_max = running_max;
    return queue;
}

void build_queue_free(struct build_queue *queue)
{
    if (!queue)
        return;
    (void)pthread_cond_destroy(&queue->changed);
    (void)pthread_mutex_destroy(&queue->lock);
    free(queue);
}

/* Where the pointer to it is; to one that is not in the queue yet, its end. */
static struct waiter **slot_of(struct build_queue *queue, const struct waiter *waiter)
{
    struct waiter **slot = &queue->first;

    while (*slot && *slot != waiter)
        slot = &(*slot)->next;
    return slot;
}

bool build_queue_enter(struct build_queue *queue, const atomic_bool *is_cancelled)
{
    struct waiter own = { .next = NULL };
    bool may_run;

    (void)pthread_mutex_lock(&queue->lock);
    *slot_of(queue, &own) = &own;
    while (!atomic_load(is_cancelled) &&
           (queue->first != &own || queue->running >= queue->running_max))
        (void)pthread_cond_wait(&queue->changed, &queue->lock);
    *slot_of(queue, &own) = own.next;
    may_run = !atomic_load(is_cancelled);
    queue->running += may_run;
    (void)pthread_cond_broadcast(&queue->changed);
    (void)pthread_mutex_unlock(&queue->lock);
    return may_run;
}

void build_queue_leave(struct build_queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    queue->running--;
    (void)pthread_cond_broadcast(&queue->changed);
    (void)pthread_mutex_unlock(&queue->lock);
}

void build_queue_wake(struct build_queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    (void)pthread_cond_broadcast(&queue->changed);
    (void)pthread_mutex_unlock(&queue->lock);
}
