// SPDX-License-Identifier: Apache-2.0
#include "builder/queue.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/lock.h"
#include "base/xalloc.h"

/* An owner with builds that wait or run. */
struct queue_owner {
    struct queue_owner *next;
    char name[OWNER_NAME_MAX + 1];
    size_t builds, running;
    uint64_t served; /* number of the last start; 0: none yet */
};

struct build_queue {
    struct lock lock;
    struct cond changed;
    struct build_turn *first; /* those that wait, in order of arrival */
    struct queue_owner *owners;
    size_t running, running_max;
    uint64_t starts;
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

/* Finds or makes the entry of an owner, with one more build. The caller holds the lock. */
static struct queue_owner *owner_take(struct build_queue *queue, const char *name)
{
    struct queue_owner *owner = queue->owners;

    while (owner && strcmp(owner->name, name) != 0)
        owner = owner->next;
    if (!owner) {
        owner = xcalloc(1, sizeof(*owner));
        (void)snprintf(owner->name, sizeof(owner->name), "%s", name);
        owner->next = queue->owners;
        queue->owners = owner;
    }
    owner->builds++;
    return owner;
}

/* Drops a build of an owner. The caller holds the lock. */
static void owner_drop(struct build_queue *queue, struct queue_owner *owner)
{
    struct queue_owner **slot = &queue->owners;

    if (--owner->builds > 0)
        return;
    while (*slot != owner)
        slot = &(*slot)->next;
    *slot = owner->next;
    free(owner);
}

void build_queue_join(struct build_queue *queue, struct build_turn *turn, const char *owner)
{
    turn->next = NULL;
    lock_take(&queue->lock);
    turn->owner = owner_take(queue, owner);
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
    owner_drop(queue, turn->owner);
    lock_release(&queue->lock);
}

static bool comes_before(const struct queue_owner *one, const struct queue_owner *other)
{
    if (one->running != other->running)
        return one->running < other->running;
    return one->served < other->served;
}

/* Returns the build to run next, of those that wait. The caller holds the lock. */
static const struct build_turn *queue_next(const struct build_queue *queue)
{
    const struct build_turn *best = queue->first;

    for (const struct build_turn *each = best; each; each = each->next)
        if (comes_before(each->owner, best->owner))
            best = each;
    return best;
}

bool build_queue_enter(struct build_queue *queue, struct build_turn *turn,
                       const atomic_bool *is_cancelled)
{
    bool may_run;

    assert(turn);
    lock_take(&queue->lock);
    while (!atomic_load(is_cancelled) &&
           (queue->running >= queue->running_max || queue_next(queue) != turn))
        cond_wait(&queue->changed, &queue->lock);
    may_run = !atomic_load(is_cancelled);
    queue_remove(queue, turn);
    if (may_run) {
        queue->running++;
        turn->owner->running++;
        turn->owner->served = ++queue->starts;
    } else {
        owner_drop(queue, turn->owner);
    }
    lock_release(&queue->lock);
    return may_run;
}

void build_queue_leave(struct build_queue *queue, struct build_turn *turn)
{
    lock_take(&queue->lock);
    queue->running--;
    turn->owner->running--;
    owner_drop(queue, turn->owner);
    cond_broadcast(&queue->changed);
    lock_release(&queue->lock);
}

void build_queue_wake(struct build_queue *queue)
{
    lock_take(&queue->lock);
    cond_broadcast(&queue->changed);
    lock_release(&queue->lock);
}
