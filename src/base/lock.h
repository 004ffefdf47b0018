/* Mutexes and condition variables.
 *
 * Every lock has a rank of base/lock_ranks.h, and a thread takes locks in the order of their ranks
 * only. Builds with LOCK_CHECKS (BUILD=debug, asan, tsan, fuzz) abort where a thread does not;
 * other builds neither store nor look at ranks. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/lock_ranks.h"

struct lock {
    pthread_mutex_t mutex;
#ifdef LOCK_CHECKS
    enum lock_rank rank;
#endif
};

/* A condition variable whose timeouts are those of the monotonic clock. */
struct cond {
    pthread_cond_t cond;
};

#ifdef LOCK_CHECKS
#define LOCK_INIT(lock_rank)                                                                       \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = (lock_rank)                                    \
    }

/* Each aborts with both names when this thread may not take, or does not hold, the lock. */
void lock_check_take(const struct lock *lock);
void lock_check_wait(const struct lock *lock);
void lock_note_taken(const struct lock *lock);
void lock_note_released(const struct lock *lock);
#else
#define LOCK_INIT(lock_rank)                                                                       \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                                         \
    }

static inline void lock_check_take(const struct lock *lock)
{
    (void)lock;
}

static inline void lock_check_wait(const struct lock *lock)
{
    (void)lock;
}

static inline void lock_note_taken(const struct lock *lock)
{
    (void)lock;
}

static inline void lock_note_released(const struct lock *lock)
{
    (void)lock;
}
#endif

/* Initializes an unlocked lock. */
static inline void lock_init(struct lock *lock, enum lock_rank rank)
{
    (void)pthread_mutex_init(&lock->mutex, NULL);
#ifdef LOCK_CHECKS
    lock->rank = rank;
#else
    (void)rank;
#endif
}

/* Destroys an unlocked lock. */
static inline void lock_destroy(struct lock *lock)
{
    (void)pthread_mutex_destroy(&lock->mutex);
}

/* Waits until the calling thread holds the lock. */
static inline void lock_take(struct lock *lock)
{
    lock_check_take(lock);
    (void)pthread_mutex_lock(&lock->mutex);
    lock_note_taken(lock);
}

/* Takes the lock if it is free; returns whether it did. Needs no order, as it never waits. */
static inline bool lock_try(struct lock *lock)
{
    if (pthread_mutex_trylock(&lock->mutex) != 0)
        return false;
    lock_note_taken(lock);
    return true;
}

/* The calling thread must hold the lock. */
static inline void lock_release(struct lock *lock)
{
    lock_note_released(lock);
    (void)pthread_mutex_unlock(&lock->mutex);
}

static inline struct lock *lock_scope_begin(struct lock *lock)
{
    lock_take(lock);
    return lock;
}

static inline void lock_scope_end(struct lock *const *lock)
{
    lock_release(*lock);
}

#define LOCK_JOIN_(a, b) a##b
#define LOCK_JOIN(a, b) LOCK_JOIN_(a, b)

/* Takes the lock and releases it at the end of the enclosing block, however control leaves it. */
#define lock_scope(which)                                                                          \
    cleanup_with(lock_scope_end) __attribute__((__unused__)) struct lock *const LOCK_JOIN(         \
        lock_scope_, __LINE__) = lock_scope_begin(which)

/* Initializes a condition variable without waiters. */
void cond_init(struct cond *cond);

/* No thread may wait for it. */
static inline void cond_destroy(struct cond *cond)
{
    (void)pthread_cond_destroy(&cond->cond);
}

/* Wakes one thread that waits. */
static inline void cond_signal(struct cond *cond)
{
    (void)pthread_cond_signal(&cond->cond);
}

/* Wakes all threads that wait. */
static inline void cond_broadcast(struct cond *cond)
{
    (void)pthread_cond_broadcast(&cond->cond);
}

/* Releases the lock, which must be the one taken last, waits for a signal and takes it again. May
 * also return without a signal, as all three do. */
static inline void cond_wait(struct cond *cond, struct lock *lock)
{
    lock_check_wait(lock);
    (void)pthread_cond_wait(&cond->cond, &lock->mutex);
}

/* The same, but not beyond a deadline of clock_ns: false when it has passed. */
bool cond_wait_until_ns(struct cond *cond, struct lock *lock, uint64_t deadline_ns);

/* The same for a deadline of clock_ms; CLOCK_NEVER waits for a signal alone. */
bool cond_wait_until(struct cond *cond, struct lock *lock, uint64_t deadline_ms);
