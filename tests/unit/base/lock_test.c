// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "check.h"

static struct lock outer = LOCK_INIT(LOCK_HOST), inner = LOCK_INIT(LOCK_MACHINE);

static bool is_free(struct lock *lock)
{
    bool is_taken = lock_try(lock);

    if (is_taken)
        lock_release(lock);
    return is_taken;
}

static int leave_early(struct lock *lock)
{
    lock_scope(lock);

    for (;;)
        return lock_try(lock) ? 1 : 2;
}

static void a_scope_holds_its_lock_to_its_end(void)
{
    CHECK(leave_early(&outer) == 2);
    CHECK(is_free(&outer));
    {
        lock_scope(&outer);
        lock_scope(&inner);

        CHECK(!lock_try(&outer) && !lock_try(&inner));
    }
    CHECK(is_free(&outer) && is_free(&inner));
}

static void locks_are_released_in_any_order(void)
{
    lock_take(&outer);
    lock_take(&inner);
    lock_release(&outer);
    CHECK(is_free(&outer) && !lock_try(&inner));
    lock_release(&inner);
    CHECK(is_free(&inner));
}

/* How a child ends that makes this mistake: the signal, or 0. */
static int mistake_signal(void (*mistake)(void))
{
    const struct rlimit no_core = { 0, 0 };
    pid_t pid = fork();
    int status;

    CHECK(pid >= 0);
    if (pid == 0) {
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)!freopen("/dev/null", "w", stderr);
        mistake();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void take_against_the_order(void)
{
    lock_take(&inner);
    lock_take(&outer);
}

static void take_two_of_one_rank(void)
{
    struct lock second = LOCK_INIT(LOCK_MACHINE);

    lock_take(&inner);
    lock_take(&second);
}

static void release_what_is_not_held(void)
{
    lock_release(&inner);
}

static void wait_with_the_lock_below(void)
{
    struct cond cond;

    cond_init(&cond);
    lock_take(&outer);
    lock_take(&inner);
    (void)cond_wait_until(&cond, &outer, clock_ms());
}

static void mistakes_abort_where_ranks_are_checked(void)
{
#ifdef LOCK_CHECKS
    const int wanted = SIGABRT;
#else
    const int wanted = 0;

    CHECK(sizeof(struct lock) == sizeof(pthread_mutex_t), "(release builds pay for ranks)");
#endif
    CHECK(mistake_signal(take_against_the_order) == wanted);
    CHECK(mistake_signal(take_two_of_one_rank) == wanted);
    CHECK(mistake_signal(release_what_is_not_held) == wanted);
    CHECK(mistake_signal(wait_with_the_lock_below) == wanted);
}

static void trying_needs_no_order(void)
{
    lock_take(&inner);
    CHECK(lock_try(&outer));
    lock_release(&outer);
    lock_release(&inner);
}

static void a_wait_ends_at_its_deadline(void)
{
    uint64_t deadline = clock_after_ms(30);
    struct cond cond;

    cond_init(&cond);
    lock_take(&outer);
    while (cond_wait_until(&cond, &outer, deadline))
        ;
    CHECK(clock_ms() >= deadline);
    CHECK(!cond_wait_until_ns(&cond, &outer, clock_ns() - 1));
    CHECK(!cond_wait_until(&cond, &outer, 0));
    lock_release(&outer);
    cond_destroy(&cond);
}

struct signaller {
    struct cond cond;
    bool is_set;
};

static void signaller_main(void *argument)
{
    struct signaller *signaller = argument;
    lock_scope(&outer);

    signaller->is_set = true;
    cond_signal(&signaller->cond);
}

static void a_signal_ends_a_wait(void)
{
    struct signaller signaller = { .is_set = false };
    struct thread thread;

    cond_init(&signaller.cond);
    lock_take(&outer);
    CHECK(thread_start(&thread, "signaller", signaller_main, &signaller) == 0);
    while (!signaller.is_set)
        CHECK(cond_wait_until(&signaller.cond, &outer, CLOCK_NEVER));
    lock_release(&outer);
    thread_join(&thread);
    cond_destroy(&signaller.cond);
}

int main(void)
{
    RUN(a_scope_holds_its_lock_to_its_end);
    RUN(locks_are_released_in_any_order);
    RUN(mistakes_abort_where_ranks_are_checked);
    RUN(trying_needs_no_order);
    RUN(a_wait_ends_at_its_deadline);
    RUN(a_signal_ends_a_wait);
    return 0;
}
