// SPDX-License-Identifier: Apache-2.0
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

void cond_init(struct cond *cond)
{
    pthread_condattr_t monotonic;

    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&cond->cond, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

bool cond_wait_until_ns(struct cond *cond, struct lock *lock, uint64_t deadline_ns)
{
    const struct timespec until = clock_timespec(deadline_ns);

    lock_check_wait(lock);
    return pthread_cond_timedwait(&cond->cond, &lock->mutex, &until) != ETIMEDOUT;
}

bool cond_wait_until(struct cond *cond, struct lock *lock, uint64_t deadline_ms)
{
    if (deadline_ms <= CLOCK_NEVER / NS_PER_MS)
        return cond_wait_until_ns(cond, lock, deadline_ms * NS_PER_MS);
    cond_wait(cond, lock);
    return true;
}

#ifdef LOCK_CHECKS

enum { HELD_MAX = 16 };

static const char *const names[] = {
#define LOCK_NAME(rank, file, protects) [rank] = #rank,
    LOCK_TABLE(LOCK_NAME)
#undef LOCK_NAME
};

/* The locks that this thread holds, in the order in which it took them. */
static _Thread_local const struct lock *held[HELD_MAX];
static _Thread_local unsigned held_count;

__attribute__((noreturn)) static void lock_abort(const struct lock *lock, const char *why,
                                                 const struct lock *other)
{
    (void)fprintf(stderr, "lock order: %s %s", names[lock->rank], why);
    if (other)
        (void)fprintf(stderr, " %s", names[other->rank]);
    (void)fprintf(stderr, "\n");
    (void)fflush(stderr);
    abort();
}

void lock_check_take(const struct lock *lock)
{
    for (unsigned i = 0; i < held_count; i++)
        if (held[i]->rank >= lock->rank)
            lock_abort(lock, "taken inside", held[i]);
}

void lock_check_wait(const struct lock *lock)
{
    if (held_count == 0 || held[held_count - 1] != lock)
        lock_abort(lock, "waited with, but not the lock taken last", NULL);
}

void lock_note_taken(const struct lock *lock)
{
    if (held_count == HELD_MAX)
        lock_abort(lock, "is one lock too many", NULL);
    held[held_count++] = lock;
}

void lock_note_released(const struct lock *lock)
{
    unsigned i = held_count;

    while (i > 0 && held[i - 1] != lock)
        i--;
    if (i == 0)
        lock_abort(lock, "released by a thread that does not hold it", NULL);
    for (held_count--; i <= held_count; i++)
        held[i - 1] = held[i];
}

#endif
