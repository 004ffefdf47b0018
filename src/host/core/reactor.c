// SPDX-License-Identifier: Apache-2.0
#include "host/core/reactor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/thread.h"
#include "base/xalloc.h"

enum { EVENTS_PER_TURN = 64 };

struct reactor {
    int epoll_fd;
    int wake_fd;
    struct thread thread;
    struct lock lock;             /* protects timers and is_stopping; held while a timer fires */
    struct reactor_timer *timers; /* soonest first */
    bool is_stopping;
};

static void reactor_wake(const struct reactor *reactor)
{
    const uint64_t one = 1;

    (void)!write(reactor->wake_fd, &one, sizeof(one));
}

/* Fires all due timers. Returns the milliseconds until the next one, or -1. */
static int run_timers(struct reactor *reactor, bool *ret_stopping)
{
    int wait_ms = -1;

    lock_take(&reactor->lock);
    while (reactor->timers && reactor->timers->at_ms <= clock_ms()) {
        struct reactor_timer *timer = reactor->timers;

        reactor->timers = timer->next;
        timer->is_set = false;
        timer->fire(timer);
    }
    if (reactor->timers) {
        uint64_t left = reactor->timers->at_ms - clock_ms();

        wait_ms = left > 60000 ? 60000 : (int)left + 1;
    }
    *ret_stopping = reactor->is_stopping;
    lock_release(&reactor->lock);
    return wait_ms;
}

static void serve_source(const struct reactor *reactor, struct reactor_source *source)
{
    if (source->ready(source))
        return;
    (void)epoll_ctl(reactor->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    source->gone(source);
}

static void reactor_main(void *argument)
{
    struct reactor *reactor = argument;
    struct epoll_event events[EVENTS_PER_TURN];
    uint64_t count;

    for (;;) {
        bool is_stopping;
        int wait_ms = run_timers(reactor, &is_stopping);
        int n;

        if (is_stopping)
            return;
        n = epoll_wait(reactor->epoll_fd, events, EVENTS_PER_TURN, wait_ms);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr)
                serve_source(reactor, events[i].data.ptr);
            else
                (void)!read(reactor->wake_fd, &count, sizeof(count));
        }
    }
}

static void reactor_free(struct reactor *reactor)
{
    (void)fd_close(reactor->epoll_fd);
    (void)fd_close(reactor->wake_fd);
    lock_destroy(&reactor->lock);
    free(reactor);
}

int reactor_start(struct reactor **ret, struct err *err)
{
    struct reactor *reactor = xcalloc(1, sizeof(*reactor));
    struct epoll_event event = { .events = EPOLLIN };
    int r = 0;

    lock_init(&reactor->lock, LOCK_TIMERS);
    reactor->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    reactor->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (reactor->epoll_fd < 0 || reactor->wake_fd < 0 ||
        epoll_ctl(reactor->epoll_fd, EPOLL_CTL_ADD, reactor->wake_fd, &event) < 0)
        r = -errno;
    if (r == 0)
        r = thread_start(&reactor->thread, "holt-reactor", reactor_main, reactor);
    if (r < 0) {
        reactor_free(reactor);
        return err_sys(err, r, "start the reactor");
    }
    *ret = reactor;
    return 0;
}

void reactor_stop(struct reactor *reactor)
{
    if (!reactor)
        return;
    lock_take(&reactor->lock);
    reactor->is_stopping = true;
    lock_release(&reactor->lock);
    reactor_wake(reactor);
    thread_join(&reactor->thread);
    reactor_free(reactor);
}

int reactor_add(struct reactor *reactor, struct reactor_source *source)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

    return epoll_ctl(reactor->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

void reactor_set_timer(struct reactor *reactor, struct reactor_timer *timer, uint64_t at_ms)
{
    struct reactor_timer **slot = &reactor->timers;
    bool is_first;

    lock_take(&reactor->lock);
    timer->at_ms = at_ms;
    timer->is_set = true;
    while (*slot && (*slot)->at_ms <= at_ms)
        slot = &(*slot)->next;
    is_first = slot == &reactor->timers;
    timer->next = *slot;
    *slot = timer;
    lock_release(&reactor->lock);
    if (is_first)
        reactor_wake(reactor);
}

bool reactor_cancel_timer(struct reactor *reactor, struct reactor_timer *timer)
{
    struct reactor_timer **slot = &reactor->timers;
    bool was_set;

    lock_take(&reactor->lock);
    was_set = timer->is_set;
    while (was_set && *slot && *slot != timer)
        slot = &(*slot)->next;
    if (was_set && *slot)
        *slot = timer->next;
    timer->is_set = false;
    lock_release(&reactor->lock);
    return was_set;
}
