// SPDX-License-Identifier: Apache-2.0
/* Warm sandboxes, so that a create need not make namespaces, nor, if it wants the same template as
 * the last one, a root. With another template they are blanks: the new root replaces the old.
 *
 * One thread keeps the pool full. When a blank cannot be made it tries again a little later:
 * creates meanwhile start cold and report the reason themselves. */
#include "host/machine/pool.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/lock.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/observe/metrics_internal.h"

enum { RETRY_MS = 1000 };

struct pool {
    struct host *host;
    const struct runtime_ops *ops;
    pthread_t thread;

    struct lock lock; /* over all below */
    struct cond changed;
    uint32_t size;
    struct machine *ready; /* a list by `next` */
    uint32_t count;
    bool is_making;
    bool has_dead;
    bool is_stopping;
};

static void discard(struct machine *machine)
{
    machine_destroy(machine);
    machine_unref(machine);
}

static struct machine *make_warm(const struct pool *pool)
{
    char template[TEMPLATE_NAME_MAX + 1];
    struct machine *machine;
    struct err err;
    int r;

    lock_take(&pool->host->lock);
    memcpy(template, pool->host->warm_template, sizeof(template));
    lock_release(&pool->host->lock);
    if (machine_start_blank(pool->host, pool->ops, &machine, &err) < 0)
        return NULL;
    r = machine_wait(machine, MACHINE_BLANK, &err);
    if (r == 0)
        r = machine_furnish(machine, template, &err);
    if (r == 0)
        r = machine_wait(machine, MACHINE_WARM, &err);
    if (r == 0)
        return machine;
    discard(machine);
    return NULL;
}

/* Locked before and after, not while a sandbox is made. */
static void add_one(struct pool *pool)
{
    struct machine *machine;

    pool->is_making = true;
    lock_release(&pool->lock);
    machine = make_warm(pool);
    lock_take(&pool->lock);
    pool->is_making = false;
    cond_broadcast(&pool->changed);
    if (machine) {
        machine->next = pool->ready;
        pool->ready = machine;
        pool->count++;
        return;
    }
    if (!pool->is_stopping)
        (void)cond_wait_until(&pool->changed, &pool->lock, clock_after_ms(RETRY_MS));
}

static bool is_usable(struct machine *machine)
{
    bool is_warm;

    lock_take(&machine->lock);
    is_warm = machine->state == MACHINE_WARM;
    lock_release(&machine->lock);
    return is_warm;
}

/* Asks the kernel, which knows of an end before the reactor has heard of it. */
static bool is_running(const struct machine *machine)
{
    struct pollfd init = { .fd = machine->guest.pidfd, .events = POLLIN };

    return poll(&init, 1, 0) == 0;
}

/* Takes out those that somebody has killed while they waited. Locked. */
static void remove_dead(struct pool *pool)
{
    struct machine **slot = &pool->ready;

    pool->has_dead = false;
    while (*slot) {
        struct machine *machine = *slot;

        if (is_usable(machine)) {
            slot = &machine->next;
            continue;
        }
        *slot = machine->next;
        pool->count--;
        discard(machine);
    }
}

/* Takes the first out of the list that has this template (NULL: any). Locked. */
static struct machine *pop(struct pool *pool, const char *template)
{
    struct machine **slot = &pool->ready, *found;

    while (*slot && template && strcmp((*slot)->template, template) != 0)
        slot = &(*slot)->next;
    found = *slot;
    if (found) {
        *slot = found->next;
        pool->count--;
    }
    return found;
}

static void *pool_main(void *argument)
{
    struct pool *pool = argument;

    lock_take(&pool->lock);
    while (!pool->is_stopping) {
        if (pool->has_dead)
            remove_dead(pool);
        else if (pool->count < pool->size)
            add_one(pool);
        else if (pool->count > pool->size)
            discard(pop(pool, NULL));
        else
            cond_wait(&pool->changed, &pool->lock);
    }
    lock_release(&pool->lock);
    return NULL;
}

int pool_start(struct host *host, const struct runtime_ops *ops, uint32_t size, struct pool **ret,
               struct err *err)
{
    struct pool *pool = xcalloc(1, sizeof(*pool));
    int r;

    pool->host = host;
    pool->ops = ops;
    pool->size = size;
    lock_init(&pool->lock, LOCK_POOL);
    cond_init(&pool->changed);
    *ret = pool; /* before the thread makes anything that could die and say so */
    r = -pthread_create(&pool->thread, NULL, pool_main, pool);
    if (r < 0) {
        *ret = NULL;
        free(pool);
        return err_sys(err, r, "start the warm pool");
    }
    return 0;
}

struct machine *pool_take(struct pool *pool, const struct runtime_ops *ops, const char *template)
{
    struct machine *machine;

    if (!pool || ops != pool->ops)
        return NULL;
    for (;;) {
        lock_take(&pool->lock);
        machine = pop(pool, template);
        if (!machine)
            machine = pop(pool, NULL);
        cond_broadcast(&pool->changed);
        lock_release(&pool->lock);
        if (!machine || (is_usable(machine) && is_running(machine))) {
            metrics_add(machine ? &pool->host->metrics->pool_hits
                                : &pool->host->metrics->pool_misses);
            return machine;
        }
        discard(machine); /* somebody killed it while it waited */
    }
}

void pool_drop_template(struct pool *pool, const char *template)
{
    struct machine *machine;

    lock_take(&pool->lock);
    while (pool->is_making)
        cond_wait(&pool->changed, &pool->lock);
    while ((machine = pop(pool, template))) {
        machine_drop_volume(machine);
        discard(machine);
    }
    cond_broadcast(&pool->changed);
    lock_release(&pool->lock);
}

uint32_t pool_ready(struct pool *pool)
{
    uint32_t count;

    lock_take(&pool->lock);
    count = pool->count;
    lock_release(&pool->lock);
    return count;
}

uint32_t pool_size(struct pool *pool)
{
    uint32_t size;

    lock_take(&pool->lock);
    size = pool->size;
    lock_release(&pool->lock);
    return size;
}

void pool_resize(struct pool *pool, uint32_t size)
{
    lock_take(&pool->lock);
    pool->size = size;
    cond_broadcast(&pool->changed);
    lock_release(&pool->lock);
}

void pool_stop(struct pool *pool)
{
    struct machine *machine;

    if (!pool)
        return;
    lock_take(&pool->lock);
    pool->is_stopping = true;
    cond_broadcast(&pool->changed);
    lock_release(&pool->lock);
    (void)pthread_join(pool->thread, NULL);
    while ((machine = pop(pool, NULL)))
        discard(machine);
}

void pool_note_death(struct pool *pool)
{
    lock_take(&pool->lock);
    pool->has_dead = true;
    cond_broadcast(&pool->changed);
    lock_release(&pool->lock);
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    cond_destroy(&pool->changed);
    lock_destroy(&pool->lock);
    free(pool);
}
