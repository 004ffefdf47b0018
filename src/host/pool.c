// SPDX-License-Identifier: Apache-2.0
/* Blank sandboxes that wait for a root, so that a create need not make namespaces.
 *
 * One thread keeps the pool full. When a blank cannot be made it tries again a little later: creates
 * meanwhile start cold and report the reason themselves. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/host_internal.h"

enum { RETRY_S = 1 };

struct pool {
    struct host *host;
    const struct runtime_ops *ops;
    uint32_t size;
    pthread_t thread;

    pthread_mutex_t lock; /* over all below */
    pthread_cond_t changed;
    struct sandbox *blanks; /* a list by `next` */
    uint32_t count;
    bool is_stopping;
};

static void discard(struct sandbox *sandbox)
{
    sandbox_destroy(sandbox);
    sandbox_unref(sandbox);
}

static struct sandbox *make_blank(const struct pool *pool)
{
    struct sandbox *sandbox;
    struct err err;

    if (sandbox_start_blank(pool->host, pool->ops, &sandbox, &err) < 0)
        return NULL;
    if (sandbox_wait_blank(sandbox, &err) == 0)
        return sandbox;
    discard(sandbox);
    return NULL;
}

/* Locked before and after, not while a blank is made. */
static void add_one(struct pool *pool)
{
    struct timespec retry;
    struct sandbox *blank;

    (void)pthread_mutex_unlock(&pool->lock);
    blank = make_blank(pool);
    (void)pthread_mutex_lock(&pool->lock);
    if (blank) {
        blank->next = pool->blanks;
        pool->blanks = blank;
        pool->count++;
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &retry);
    retry.tv_sec += RETRY_S;
    if (!pool->is_stopping)
        (void)pthread_cond_timedwait(&pool->changed, &pool->lock, &retry);
}

static void *pool_main(void *argument)
{
    struct pool *pool = argument;

    (void)pthread_mutex_lock(&pool->lock);
    while (!pool->is_stopping) {
        if (pool->count < pool->size)
            add_one(pool);
        else
            (void)pthread_cond_wait(&pool->changed, &pool->lock);
    }
    (void)pthread_mutex_unlock(&pool->lock);
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
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->changed, NULL);
    r = -pthread_create(&pool->thread, NULL, pool_main, pool);
    if (r < 0) {
        free(pool);
        return err_sys(err, r, "start the warm pool");
    }
    *ret = pool;
    return 0;
}

/* Takes one out of the list. Locked. */
static struct sandbox *pop(struct pool *pool)
{
    struct sandbox *blank = pool->blanks;

    if (blank) {
        pool->blanks = blank->next;
        pool->count--;
    }
    return blank;
}

static bool is_usable(struct sandbox *sandbox)
{
    bool is_blank;

    (void)pthread_mutex_lock(&sandbox->lock);
    is_blank = sandbox->state == SANDBOX_BLANK;
    (void)pthread_mutex_unlock(&sandbox->lock);
    return is_blank;
}

struct sandbox *pool_take(struct pool *pool, const struct runtime_ops *ops)
{
    struct sandbox *blank;

    if (ops != pool->ops)
        return NULL;
    do {
        (void)pthread_mutex_lock(&pool->lock);
        blank = pop(pool);
        (void)pthread_cond_signal(&pool->changed);
        (void)pthread_mutex_unlock(&pool->lock);
        if (!blank || is_usable(blank))
            return blank;
        discard(blank); /* somebody killed it while it waited */
    } while (true);
}

uint32_t pool_ready(struct pool *pool)
{
    uint32_t count;

    (void)pthread_mutex_lock(&pool->lock);
    count = pool->count;
    (void)pthread_mutex_unlock(&pool->lock);
    return count;
}

void pool_stop(struct pool *pool)
{
    struct sandbox *blank;

    if (!pool)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    pool->is_stopping = true;
    (void)pthread_cond_broadcast(&pool->changed);
    (void)pthread_mutex_unlock(&pool->lock);
    (void)pthread_join(pool->thread, NULL);
    while ((blank = pop(pool)))
        discard(blank);
    (void)pthread_cond_destroy(&pool->changed);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}
