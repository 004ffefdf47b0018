/* Threads of the program's own. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"

enum { THREAD_NAME_MAX = 15 }; /* bytes; the kernel cuts longer names */

struct thread {
    pthread_t id;
    bool is_started; /* and not yet joined */
};

/* Starts a thread that calls main(argument): 0 or -errno. `name` is a literal. The thread takes no
 * signals but SIGTTIN and SIGTTOU, whose mask it has from the caller: the kernel fails the terminal
 * input of a background thread that blocks them instead of stopping the job. */
int thread_start(struct thread *thread, const char *name, void (*main)(void *argument),
                 void *argument);

/* The same for a detached thread; stack_bytes 0: the default size. */
int thread_start_detached(const char *name, size_t stack_bytes, void (*main)(void *argument),
                          void *argument);

/* Waits for the end of the thread, if one is started. */
void thread_join(struct thread *thread);

/* A thread that works until it is asked to stop. It looks at is_stopping and waits for `changed`
 * under the lock, or leaves both to worker_rest. */
struct worker {
    struct thread thread; /* to be started with thread_start */
    struct lock lock;     /* over all below, and what the owner puts under it */
    struct cond changed;
    bool is_woken;
    bool is_stopping;
};

/* Makes a worker whose thread does not run yet. */
void worker_init(struct worker *worker, enum lock_rank rank);

/* Ends the rest of the worker, or its next one if it does not rest. */
void worker_wake(struct worker *worker);

/* Rests the calling worker for `ms` milliseconds or until worker_wake; after a wake-up it waits
 * gather_ms for more of them. Returns false when the worker is to stop. */
bool worker_rest(struct worker *worker, uint64_t ms, uint64_t gather_ms);

/* Asks the thread to stop and waits for its end. The lock can still be used. */
void worker_stop(struct worker *worker);

/* The thread must have ended, or never have been started. */
void worker_destroy(struct worker *worker);
