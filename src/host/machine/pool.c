// SPDX-License-Identifier: Apache-2.0
/* Warm machines: a create that takes one need not create namespaces, nor a root if it uses the same
 * template as the last create. For another template the machine gets a new root.
 *
 * One thread keeps the pool full. When a machine cannot be started, it retries after RETRY_MS;
 * creates meanwhile start cold and report the reason themselves. */
#include "host/machine/pool.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/core/descriptors.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/machine/pool_share.h"
#include "host/observe/metrics_internal.h"
#include "host/process/cell.h"

enum { RETRY_MS = 1000 };

struct pool {
    struct host *host;
    const struct runtime_ops *ops;
    struct worker worker;

    uint32_t size;         /* this and all below: under the worker's lock */
    struct machine *ready; /* linked by `next` */
    uint32_t count;
    struct pool_share share;
    bool is_making;
    bool has_dead;
};

static void machine_discard(struct machine *machine)
{
    machine_destroy(machine);
    machine_unref(machine);
}

static struct machine *machine_make_warm(const struct pool *pool)
{
    char template[TEMPLATE_NAME_MAX + 1];
    struct machine *machine;
    struct err err;
    int r;

    lock_take(&pool->host->lock);
    memcpy(template, pool->host->warm_template, sizeof(template));
    lock_release(&pool->host->lock);
    if (descriptors_check_sandbox(&err) < 0 ||
        machine_start_blank(pool->host, pool->ops, &machine, &err) < 0)
        return NULL;
    r = machine_wait(machine, MACHINE_BLANK, &err);
    if (r == 0)
        r = machine_set_scratch_root(machine, template, &err);
    if (r == 0)
        r = machine_wait(machine, MACHINE_WARM, &err);
    if (r == 0) {
        cell_prepare(machine); /* parked: it gets the root that the machine has when it is used */
        return machine;
    }
    machine_discard(machine);
    return NULL;
}

/* The caller holds the lock, which is released while a machine boots. */
static void pool_add(struct pool *pool)
{
    struct machine *machine;

    pool->is_making = true;
    lock_release(&pool->worker.lock);
    machine = machine_make_warm(pool);
    lock_take(&pool->worker.lock);
    pool->is_making = false;
    cond_broadcast(&pool->worker.changed);
    if (machine) {
        machine->next = pool->ready;
        pool->ready = machine;
        pool->count++;
        return;
    }
    if (!pool->worker.is_stopping)
        (void)cond_wait_until(&pool->worker.changed, &pool->worker.lock, clock_after_ms(RETRY_MS));
}

static bool machine_is_warm(struct machine *machine)
{
    bool is_warm;

    lock_take(&machine->lock);
    is_warm = machine->state == MACHINE_WARM;
    lock_release(&machine->lock);
    return is_warm;
}

/* Asks the kernel, which knows of an exit before the reactor does. */
static bool machine_is_running(const struct machine *machine)
{
    struct pollfd init = { .fd = machine->guest.pidfd, .events = POLLIN };

    return poll(&init, 1, 0) == 0;
}

/* Removes machines that were killed while they waited. The caller holds the lock. */
static void pool_remove_dead(struct pool *pool)
{
    struct machine **slot = &pool->ready;

    pool->has_dead = false;
    while (*slot) {
        struct machine *machine = *slot;

        if (machine_is_warm(machine)) {
            slot = &machine->next;
            continue;
        }
        *slot = machine->next;
        pool->count--;
        machine_discard(machine);
    }
}

/* Unlinks the first machine with this template (NULL: any). The caller holds the lock. */
static struct machine *pool_pop(struct pool *pool, const char *template)
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

static void pool_main(void *argument)
{
    struct pool *pool = argument;
    lock_scope(&pool->worker.lock);

    while (!pool->worker.is_stopping) {
        if (pool->has_dead)
            pool_remove_dead(pool);
        else if (pool->count < pool->size)
            pool_add(pool);
        else if (pool->count > pool->size)
            machine_discard(pool_pop(pool, NULL));
        else
            cond_wait(&pool->worker.changed, &pool->worker.lock);
    }
}

int pool_start(struct host *host, const struct runtime_ops *ops, uint32_t size, struct pool **ret,
               struct err *err)
{
    struct pool *pool = xcalloc(1, sizeof(*pool));
    int r;

    pool->host = host;
    pool->ops = ops;
    pool->size = size;
    worker_init(&pool->worker, LOCK_POOL);
    *ret = pool; /* before the thread: a machine that dies early calls pool_note_death */
    r = thread_start(&pool->worker.thread, "holt-pool", pool_main, pool);
    if (r < 0) {
        *ret = NULL;
        free(pool);
        return err_sys(err, r, "start the warm pool");
    }
    return 0;
}

/* Unlinks a machine for an owner unless those that are ready are left to others. The caller holds
 * the lock. */
static struct machine *pool_pop_for(struct pool *pool, const char *owner, const char *template)
{
    uint32_t rest = pool_share_ask(&pool->share, owner, clock_ms(), pool->size);
    struct machine *machine;

    if (pool->count <= rest)
        return NULL;
    machine = pool_pop(pool, template);
    return machine ? machine : pool_pop(pool, NULL);
}

/* No process of a client may run beside a container of gVisor in one machine. */
static bool fits(const struct runtime_ops *ops, const struct runtime_ops *warm)
{
    return ops == warm || (ops->is_like_native && warm->is_like_native && !warm->has_cells);
}

struct machine *pool_take(struct pool *pool, const struct runtime_ops *ops, const char *owner,
                          const char *template)
{
    struct machine *machine;

    if (!pool || !fits(ops, pool->ops))
        return NULL;
    for (;;) {
        lock_take(&pool->worker.lock);
        machine = pool_pop_for(pool, owner, template);
        cond_broadcast(&pool->worker.changed);
        lock_release(&pool->worker.lock);
        if (!machine || (machine_is_warm(machine) && machine_is_running(machine))) {
            if (machine)
                machine->guest.ops = ops;
            metrics_add(machine ? &pool->host->metrics->pool_hits
                                : &pool->host->metrics->pool_misses);
            return machine;
        }
        machine_discard(machine); /* it was killed while it waited */
    }
}

void pool_drop_template(struct pool *pool, const char *template)
{
    struct machine *machine;

    lock_take(&pool->worker.lock);
    while (pool->is_making)
        cond_wait(&pool->worker.changed, &pool->worker.lock);
    while ((machine = pool_pop(pool, template))) {
        machine_drop_volume(machine);
        machine_discard(machine);
    }
    cond_broadcast(&pool->worker.changed);
    lock_release(&pool->worker.lock);
}

uint32_t pool_ready(struct pool *pool)
{
    lock_scope(&pool->worker.lock);

    return pool->count;
}

uint32_t pool_size(struct pool *pool)
{
    lock_scope(&pool->worker.lock);

    return pool->size;
}

void pool_resize(struct pool *pool, uint32_t size)
{
    lock_scope(&pool->worker.lock);

    pool->size = size;
    cond_broadcast(&pool->worker.changed);
}

void pool_stop(struct pool *pool)
{
    struct machine *machine;

    if (!pool)
        return;
    worker_stop(&pool->worker);
    while ((machine = pool_pop(pool, NULL)))
        machine_discard(machine);
}

void pool_note_death(struct pool *pool)
{
    lock_scope(&pool->worker.lock);

    pool->has_dead = true;
    cond_broadcast(&pool->worker.changed);
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    worker_destroy(&pool->worker);
    free(pool);
}
