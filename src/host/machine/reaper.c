// SPDX-License-Identifier: Apache-2.0
#include "host/machine/reaper.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/sandbox/sandbox_internal.h"

enum {
    EVENTS_PER_TURN = 64,
    RETRY_MIN_NS = 50 * 1000,
    RETRY_MAX_NS = 100 * 1000 * 1000,
};

/* Machines, first in first out, linked by `next`. */
struct machine_queue {
    struct machine *first, **last;
};

struct reaper {
    struct host *host;
    int epoll_fd; /* holt-init of every machine in `waiting` */
    int wake_fd;
    struct thread thread;

    struct lock lock; /* protects the next three */
    struct machine_queue added;
    uint64_t deadline_ms; /* 0: none */
    bool is_stopping;

    /* Used by the thread only. */
    struct machine_queue waiting; /* holt-init may still run */
    struct machine_queue ending;  /* holt-init has ended, the rest has not */
    bool is_abandoning;
};

static void queue_init(struct machine_queue *queue)
{
    queue->first = NULL;
    queue->last = &queue->first;
}

static void queue_put(struct machine_queue *queue, struct machine *machine)
{
    machine->next = NULL;
    *queue->last = machine;
    queue->last = &machine->next;
}

static struct machine *queue_take(struct machine_queue *queue)
{
    struct machine *machine = queue->first;

    if (machine)
        queue->first = machine->next;
    if (!queue->first)
        queue->last = &queue->first;
    return machine;
}

static void reaper_wake(const struct reaper *reaper)
{
    const uint64_t one = 1;

    (void)!write(reaper->wake_fd, &one, sizeof(one));
}

/* Marks that holt-init has ended, or that the kernel cannot report it: then it is asked for now and
 * then. */
static void machine_end_soon(struct machine *machine)
{
    machine->reap_pause_ns = RETRY_MIN_NS;
    machine->reap_at_ns = clock_ns();
}

static void reaper_watch(struct reaper *reaper, struct machine *machine)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = machine };

    machine->reap_pause_ns = 0;
    if (machine->guest.pidfd < 0 || machine->needs_kill ||
        epoll_ctl(reaper->epoll_fd, EPOLL_CTL_ADD, machine->guest.pidfd, &event) < 0)
        machine_end_soon(machine);
    queue_put(&reaper->waiting, machine);
}

/* Takes the machines that were added, and learns whether the thread may end and when it must. */
static bool reaper_take_added(struct reaper *reaper, uint64_t *ret_deadline_ms)
{
    struct machine_queue added;
    struct machine *machine;
    bool is_stopping;

    queue_init(&added);
    lock_take(&reaper->lock);
    while ((machine = queue_take(&reaper->added)))
        queue_put(&added, machine);
    is_stopping = reaper->is_stopping;
    *ret_deadline_ms = reaper->deadline_ms;
    lock_release(&reaper->lock);
    while ((machine = queue_take(&added)))
        reaper_watch(reaper, machine);
    return is_stopping;
}

/* Moves the machines whose holt-init has ended. The order of their ends is kept by the next step,
 * which visits all of them. */
static void reaper_sort(struct reaper *reaper)
{
    struct machine_queue waiting = reaper->waiting;
    struct machine *machine;

    if (!waiting.first)
        return;
    queue_init(&reaper->waiting);
    while ((machine = queue_take(&waiting)))
        queue_put(machine->reap_pause_ns > 0 ? &reaper->ending : &reaper->waiting, machine);
}

static long next_pause(long pause_ns)
{
    return pause_ns < RETRY_MAX_NS / 2 ? pause_ns * 2 : RETRY_MAX_NS;
}

/* Visits the machines whose time has come; lowers *wait_ns to the time until the next one. */
static void reaper_release_ended(struct reaper *reaper, uint64_t *wait_ns)
{
    struct machine_queue ending = reaper->ending;
    struct machine *machine;
    uint64_t now_ns = clock_ns();

    if (!ending.first)
        return;
    queue_init(&reaper->ending);
    while ((machine = queue_take(&ending))) {
        if (machine->reap_at_ns <= now_ns) {
            if (machine_try_reap(machine)) {
                tree_cleaner_add_machine(reaper->host->tree_cleaner, machine);
                continue;
            }
            machine->reap_at_ns = now_ns + (uint64_t)machine->reap_pause_ns;
            machine->reap_pause_ns = next_pause(machine->reap_pause_ns);
        }
        if (machine->reap_at_ns - now_ns < *wait_ns)
            *wait_ns = machine->reap_at_ns - now_ns;
        queue_put(&reaper->ending, machine);
    }
}

static void queue_abandon(const struct machine_queue *queue)
{
    for (struct machine *machine = queue->first; machine; machine = machine->next)
        machine_abandon(machine);
}

/* Waits for an end, for a new machine, or for wait_ns nanoseconds. */
static void reaper_wait(struct reaper *reaper, uint64_t wait_ns)
{
    struct epoll_event events[EVENTS_PER_TURN];
    const struct timespec timeout = { .tv_sec = (time_t)(wait_ns / NS_PER_S),
                                      .tv_nsec = (long)(wait_ns % NS_PER_S) };
    uint64_t ignored;
    int n = epoll_pwait2(reaper->epoll_fd, events, EVENTS_PER_TURN,
                         wait_ns == UINT64_MAX ? NULL : &timeout, NULL);

    for (int i = 0; i < n; i++) {
        struct machine *machine = events[i].data.ptr;

        if (!machine) {
            (void)!read(reaper->wake_fd, &ignored, sizeof(ignored));
            continue;
        }
        (void)epoll_ctl(reaper->epoll_fd, EPOLL_CTL_DEL, machine->guest.pidfd, NULL);
        machine_end_soon(machine);
    }
}

/* Returns false when the thread may end: nothing is left, or it is time to abandon the rest. */
static bool reaper_turn(struct reaper *reaper)
{
    uint64_t wait_ns = UINT64_MAX, deadline_ms, now_ms;
    bool is_stopping = reaper_take_added(reaper, &deadline_ms);

    reaper_sort(reaper);
    reaper_release_ended(reaper, &wait_ns);
    now_ms = clock_ms();
    reaper->is_abandoning = deadline_ms > 0 && now_ms >= deadline_ms;
    if (reaper->is_abandoning) {
        queue_abandon(&reaper->waiting);
        queue_abandon(&reaper->ending);
    }
    if (is_stopping && (reaper->is_abandoning || (!reaper->waiting.first && !reaper->ending.first)))
        return false;
    if (deadline_ms > now_ms && (deadline_ms - now_ms) * NS_PER_MS < wait_ns)
        wait_ns = (deadline_ms - now_ms) * NS_PER_MS;
    reaper_wait(reaper, wait_ns);
    return true;
}

static void reaper_main(void *argument)
{
    struct reaper *reaper = argument;

    while (reaper_turn(reaper))
        ;
}

int reaper_start(struct host *host, struct reaper **ret, struct err *err)
{
    struct reaper *reaper = xcalloc(1, sizeof(*reaper));
    struct epoll_event event = { .events = EPOLLIN };
    int r = 0;

    reaper->host = host;
    queue_init(&reaper->added);
    queue_init(&reaper->waiting);
    queue_init(&reaper->ending);
    lock_init(&reaper->lock, LOCK_REAPER);
    reaper->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    reaper->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (reaper->epoll_fd < 0 || reaper->wake_fd < 0 ||
        epoll_ctl(reaper->epoll_fd, EPOLL_CTL_ADD, reaper->wake_fd, &event) < 0)
        r = -errno;
    if (r == 0)
        r = thread_start(&reaper->thread, "holt-reaper", reaper_main, reaper);
    if (r < 0) {
        reaper_free(reaper);
        return err_sys(err, r, "start the reaper");
    }
    *ret = reaper;
    return 0;
}

void reaper_add(struct reaper *reaper, struct machine *machine)
{
    lock_take(&reaper->lock);
    queue_put(&reaper->added, machine);
    lock_release(&reaper->lock);
    reaper_wake(reaper);
}

void reaper_abandon_at(struct reaper *reaper, uint64_t deadline_ms)
{
    lock_take(&reaper->lock);
    reaper->deadline_ms = deadline_ms;
    lock_release(&reaper->lock);
    reaper_wake(reaper);
}

bool reaper_stop(struct reaper *reaper)
{
    if (!reaper)
        return true;
    lock_take(&reaper->lock);
    reaper->is_stopping = true;
    lock_release(&reaper->lock);
    reaper_wake(reaper);
    thread_join(&reaper->thread);
    return !reaper->waiting.first && !reaper->ending.first && !reaper->added.first;
}

void reaper_free(struct reaper *reaper)
{
    if (!reaper)
        return;
    (void)fd_close(reaper->epoll_fd);
    (void)fd_close(reaper->wake_fd);
    lock_destroy(&reaper->lock);
    free(reaper);
}
