// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/xalloc.h"

struct start {
    const char *name;
    void (*main)(void *argument);
    void *argument;
};

static void *thread_main(void *argument)
{
    struct start start = *(struct start *)argument;

    free(argument);
    (void)prctl(PR_SET_NAME, start.name, 0, 0, 0);
    start.main(start.argument);
    return NULL;
}

/* Blocked by the caller around the start, so that there is no moment in which the new thread could
 * take one. */
static int start_blocked(pthread_t *ret, const pthread_attr_t *attributes, struct start *start)
{
    sigset_t blocked, before;
    int r;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    (void)sigfillset(&blocked);
    if (sigismember(&before, SIGTTIN) == 0)
        (void)sigdelset(&blocked, SIGTTIN);
    if (sigismember(&before, SIGTTOU) == 0)
        (void)sigdelset(&blocked, SIGTTOU);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    r = -pthread_create(ret, attributes, thread_main, start);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r < 0)
        free(start);
    return r;
}

static struct start *start_new(const char *name, void (*main)(void *argument), void *argument)
{
    struct start *start = xcalloc(1, sizeof(*start));

    *start = (struct start){ name, main, argument };
    return start;
}

int thread_start(struct thread *thread, const char *name, void (*main)(void *argument),
                 void *argument)
{
    int r = start_blocked(&thread->id, NULL, start_new(name, main, argument));

    thread->is_started = r == 0;
    return r;
}

int thread_start_detached(const char *name, size_t stack_bytes, void (*main)(void *argument),
                          void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int r;

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack_bytes > 0)
        (void)pthread_attr_setstacksize(&attributes, stack_bytes);
    r = start_blocked(&thread, &attributes, start_new(name, main, argument));
    (void)pthread_attr_destroy(&attributes);
    return r;
}

void thread_join(struct thread *thread)
{
    if (thread->is_started)
        (void)pthread_join(thread->id, NULL);
    thread->is_started = false;
}

void worker_init(struct worker *worker, enum lock_rank rank)
{
    lock_init(&worker->lock, rank);
    cond_init(&worker->changed);
    worker->is_woken = worker->is_stopping = false;
    worker->thread.is_started = false;
}

void worker_wake(struct worker *worker)
{
    lock_scope(&worker->lock);

    if (!worker->is_woken)
        cond_broadcast(&worker->changed);
    worker->is_woken = true;
}

bool worker_rest(struct worker *worker, uint64_t ms, uint64_t gather_ms)
{
    uint64_t until_ms = clock_after_ms(ms);
    lock_scope(&worker->lock);

    while (!worker->is_woken && !worker->is_stopping &&
           cond_wait_until(&worker->changed, &worker->lock, until_ms))
        ;
    until_ms = clock_after_ms(gather_ms);
    while (worker->is_woken && !worker->is_stopping &&
           cond_wait_until(&worker->changed, &worker->lock, until_ms))
        ;
    worker->is_woken = false;
    return !worker->is_stopping;
}

void worker_stop(struct worker *worker)
{
    lock_take(&worker->lock);
    worker->is_stopping = true;
    cond_broadcast(&worker->changed);
    lock_release(&worker->lock);
    thread_join(&worker->thread);
}

void worker_destroy(struct worker *worker)
{
    cond_destroy(&worker->changed);
    lock_destroy(&worker->lock);
}
