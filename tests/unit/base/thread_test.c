// SPDX-License-Identifier: Apache-2.0
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/thread.h"
#include "check.h"

struct seen {
    char name[THREAD_NAME_MAX + 1];
    sigset_t blocked;
};

static void look_main(void *argument)
{
    struct seen *seen = argument;

    (void)prctl(PR_GET_NAME, seen->name, 0, 0, 0);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
}

static void a_thread_has_a_name_and_takes_no_signals(void)
{
    struct seen seen = { .name = "" };
    struct thread thread = { .is_started = false };
    sigset_t before, after;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    thread_join(&thread); /* nothing was started */
    CHECK(thread_start(&thread, "holt-look", look_main, &seen) == 0);
    thread_join(&thread);
    thread_join(&thread);
    CHECK_TEXT(seen.name, "holt-look");
    CHECK(sigismember(&seen.blocked, SIGINT) == 1 && sigismember(&seen.blocked, SIGCHLD) == 1);
    CHECK(sigismember(&seen.blocked, SIGTTIN) == 0 && sigismember(&seen.blocked, SIGTTOU) == 0);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    CHECK(sigismember(&after, SIGINT) == sigismember(&before, SIGINT), "(the caller's own)");
}

static void post_main(void *argument)
{
    (void)sem_post(argument);
}

static void a_detached_thread_runs(void)
{
    sem_t ran;

    (void)sem_init(&ran, 0, 0);
    CHECK(thread_start_detached("detached", 0, post_main, &ran) == 0);
    CHECK(thread_start_detached("small", 256 * 1024, post_main, &ran) == 0);
    while (sem_wait(&ran) < 0)
        ;
    while (sem_wait(&ran) < 0)
        ;
    (void)sem_destroy(&ran);
}

struct counter {
    struct worker worker;
    unsigned wanted, done; /* under its lock */
};

static void counter_main(void *argument)
{
    struct counter *counter = argument;
    lock_scope(&counter->worker.lock);

    while (!counter->worker.is_stopping) {
        if (counter->done < counter->wanted)
            counter->done++;
        else
            cond_wait(&counter->worker.changed, &counter->worker.lock);
    }
}

static void a_worker_works_until_it_is_stopped(void)
{
    struct counter counter = { .wanted = 3 };

    worker_init(&counter.worker, LOCK_HOST);
    CHECK(thread_start(&counter.worker.thread, "counter", counter_main, &counter) == 0);
    for (bool is_done = false; !is_done;) {
        lock_scope(&counter.worker.lock);

        is_done = counter.done == counter.wanted;
    }
    worker_stop(&counter.worker);
    CHECK(counter.worker.is_stopping && counter.done == 3);
    worker_stop(&counter.worker); /* again, without a thread */
    worker_destroy(&counter.worker);
}

struct rounds {
    struct worker worker;
    uint64_t rest_ms;
    atomic_uint count;
};

static void rounds_main(void *argument)
{
    struct rounds *rounds = argument;

    do
        atomic_fetch_add(&rounds->count, 1);
    while (worker_rest(&rounds->worker, rounds->rest_ms, 0));
}

static void rounds_await(struct rounds *rounds, unsigned count)
{
    while (atomic_load(&rounds->count) < count)
        clock_sleep_ms(1);
}

static void a_worker_rests_between_its_rounds(void)
{
    struct rounds rounds = { .rest_ms = 10 };
    uint64_t before_ms = clock_ms();

    worker_init(&rounds.worker, LOCK_HOST);
    CHECK(thread_start(&rounds.worker.thread, "rounds", rounds_main, &rounds) == 0);
    rounds_await(&rounds, 4);
    worker_stop(&rounds.worker);
    CHECK(clock_ms() - before_ms >= 30);
    worker_destroy(&rounds.worker);
}

static void a_wake_up_ends_a_rest(void)
{
    struct rounds rounds = { .rest_ms = CLOCK_NEVER };

    worker_init(&rounds.worker, LOCK_HOST);
    worker_wake(&rounds.worker); /* before there is a thread: it counts for the first rest */
    CHECK(thread_start(&rounds.worker.thread, "rounds", rounds_main, &rounds) == 0);
    rounds_await(&rounds, 2);
    worker_wake(&rounds.worker);
    rounds_await(&rounds, 3);
    worker_stop(&rounds.worker); /* which ends a rest, too */
    worker_destroy(&rounds.worker);
}

static void wake_ups_are_gathered(void)
{
    struct worker worker;
    uint64_t before_ms = clock_ms();

    worker_init(&worker, LOCK_HOST);
    worker_wake(&worker);
    CHECK(worker_rest(&worker, CLOCK_NEVER, 20));
    CHECK(clock_ms() - before_ms >= 20);
    CHECK(worker_rest(&worker, 1, 0), "(one wake-up ends one rest)");
    worker_stop(&worker);
    CHECK(!worker_rest(&worker, CLOCK_NEVER, 0));
    worker_destroy(&worker);
}

int main(void)
{
    RUN(a_thread_has_a_name_and_takes_no_signals);
    RUN(a_detached_thread_runs);
    RUN(a_worker_works_until_it_is_stopped);
    RUN(a_worker_rests_between_its_rounds);
    RUN(a_wake_up_ends_a_rest);
    RUN(wake_ups_are_gathered);
    return 0;
}
