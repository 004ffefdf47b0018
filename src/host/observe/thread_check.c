// SPDX-License-Identifier: Apache-2.0
/* Checks that the central threads still respond. Nothing here waits for a lock that one of them
 * could hold for long; an unanswered request stays pending. */
#include "host/observe/thread_check.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/core/reactor.h"
#include "host/process/writer.h"

enum { POLL_EVERY_MS = 5 };

struct thread_check {
    struct reactor_timer timer;
    atomic_bool is_pending; /* the reactor owns the timer until it fires */
};

struct thread_check *thread_check_new(void)
{
    return xcalloc(1, sizeof(struct thread_check));
}

void thread_check_free(struct thread_check *thread_check)
{
    free(thread_check);
}

static void reactor_on_timer(struct reactor_timer *timer)
{
    struct thread_check *thread_check =
        (struct thread_check *)(void *)((char *)timer - offsetof(struct thread_check, timer));

    atomic_store(&thread_check->is_pending, false);
}

static void reactor_ping(struct host *host)
{
    if (atomic_exchange(&host->thread_check->is_pending, true))
        return;
    host->thread_check->timer.fire = reactor_on_timer;
    reactor_set_timer(host->reactor, &host->thread_check->timer, clock_ms());
}

int host_check_threads(struct host *host, unsigned patience_ms, struct err *err)
{
    uint64_t until_ms = clock_ms() + patience_ms;
    bool has_reactor = false, has_writer = false;

    reactor_ping(host);
    process_writer_ask(host->writer);
    for (;;) {
        has_reactor = !atomic_load(&host->thread_check->is_pending);
        has_writer = process_writer_has_answered(host->writer);
        if ((has_reactor && has_writer) || clock_ms() >= until_ms)
            break;
        clock_sleep_ms(POLL_EVERY_MS);
    }
    if (!has_reactor)
        return err_set(err, ERR_INTERNAL, "the reactor thread does not respond");
    if (!has_writer)
        return err_set(err, ERR_INTERNAL, "the process writer does not respond");
    return 0;
}
