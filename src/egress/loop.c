// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/xalloc.h"
#include "egress/agent.h"
#include "egress/egress_internal.h"

enum {
    EVENTS_PER_TURN = 1024,
    SLICE_NS = 2000 * 1000, /* that one sandbox uses in a turn, and what a step takes more */
    TICK_MS = 50,           /* while something waits for it */
    IDLE_TICK_MS = 1000,
    SECOND_MS = 1000,
    PIPES_MAX = 512,
    PIPES_KEPT = 64,
    PIPE_BYTES = 256 * 1024,
};

void watch_set(struct egress *egress, struct watch *watch, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = watch };
    int op = events == 0 ? EPOLL_CTL_DEL : watch->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

    if (watch->fd < 0 || watch->events == events)
        return;
    if (epoll_ctl(egress->epoll_fd, op, watch->fd, &event) == 0 || events == 0)
        watch->events = events;
}

void watch_close(struct egress *egress, struct watch *watch)
{
    watch_set(egress, watch, 0);
    watch->fd = fd_close(watch->fd);
}

bool owner_may_use(const struct egress *egress, uint64_t own, uint64_t used, uint64_t max)
{
    if (used >= max)
        return false;
    return used < max / 4 * 3 || own < max / (egress->owner_count + 1);
}

static struct pipe *pipe_new(struct egress *egress)
{
    struct pipe *pipe = xcalloc(1, sizeof(*pipe));
    if (pipe2(pipe->fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        free(pipe);
        return NULL;
    }
    (void)fcntl(pipe->fds[1], F_SETPIPE_SZ, PIPE_BYTES); /* the default works as well */
    egress->pipe_count++;
    return pipe;
}

struct pipe *pipe_borrow(struct guest *guest)
{
    struct egress *egress = guest->egress;
    struct pipe *pipe = egress->pipes;

    if (!owner_may_use(egress, guest->owner->pipes, egress->pipes_lent, PIPES_MAX))
        return NULL;
    if (pipe)
        egress->pipes = pipe->next;
    else
        pipe = pipe_new(egress);
    if (!pipe)
        return NULL;
    egress->pipes_lent++;
    guest->owner->pipes++;
    return pipe;
}

static void pipe_free(struct egress *egress, struct pipe *pipe)
{
    (void)close(pipe->fds[0]);
    (void)close(pipe->fds[1]);
    free(pipe);
    egress->pipe_count--;
}

void pipe_discard(struct guest *guest, struct pipe *pipe)
{
    guest->egress->pipes_lent--;
    guest->owner->pipes--;
    pipe_free(guest->egress, pipe);
}

void pipe_return(struct guest *guest, struct pipe *pipe)
{
    struct egress *egress = guest->egress;

    egress->pipes_lent--;
    guest->owner->pipes--;
    if (egress->pipe_count > PIPES_KEPT) {
        pipe_free(egress, pipe);
        return;
    }
    pipe->next = egress->pipes;
    egress->pipes = pipe;
}

static bool has_short_waits(const struct egress *egress)
{
    if (egress->query_count > 0 || egress->peeking > 0 || egress->lookups > 0)
        return true;
    for (const struct guest *guest = egress->guests; guest; guest = guest->next)
        if (guest->is_waiting || agent_is_waiting(guest))
            return true;
    return false;
}

bool slice_is_over(const struct egress *egress)
{
    return clock_ns() >= egress->slice_until_ns;
}

/* Returns what is left of the time of a sandbox in this turn. */
static uint64_t slice_left(const struct egress *egress, struct guest *guest)
{
    if (guest->turn != egress->turn) {
        guest->turn = egress->turn;
        guest->used_ns = 0;
    }
    return guest->used_ns < SLICE_NS ? SLICE_NS - guest->used_ns : 0;
}

/* Handles the events that were left by the turn before, or the others. Those of a sandbox that has
 * used its time are left for the next turn, to which epoll gives them again: however many
 * connections one sandbox has, another waits for no more than its slice. */
static void events_handle(struct egress *egress, struct epoll_event *events, int count,
                          bool are_late)
{
    uint64_t now_ns = clock_ns();

    for (int i = 0; i < count; i++) {
        struct watch *watch = events[i].data.ptr;
        struct guest *guest;
        uint64_t left_ns = SLICE_NS, began_ns = now_ns;

        /* An earlier event of this turn may have closed it. */
        if (!watch || watch->events == 0 || watch->is_late != are_late)
            continue;
        guest = watch->guest;
        if (guest)
            left_ns = slice_left(egress, guest);
        watch->is_late = left_ns == 0;
        if (watch->is_late)
            continue;
        events[i].data.ptr = NULL;
        egress->slice_until_ns = began_ns + left_ns;
        watch->ready(watch, events[i].events);
        now_ns = clock_ns();
        egress->now_ms = now_ns / NS_PER_MS;
        if (guest) /* its memory is there until the end of the turn */
            guest->used_ns += now_ns - began_ns;
    }
}

void egress_run(struct egress *egress)
{
    uint64_t tick_ms = 0, second_ms = 0;

    while (!egress->is_ending) {
        struct epoll_event events[EVENTS_PER_TURN];
        int count = epoll_wait(egress->epoll_fd, events, EVENTS_PER_TURN,
                               has_short_waits(egress) ? TICK_MS : IDLE_TICK_MS);

        egress->now_ms = clock_ms();
        egress->turn++;
        events_handle(egress, events, count, true);
        events_handle(egress, events, count, false);
        if (egress->now_ms >= tick_ms + TICK_MS) {
            bool is_second = egress->now_ms >= second_ms + SECOND_MS;

            egress_guests_tick(egress, is_second);
            resolver_tick(egress);
            upstreams_tick(egress);
            if (is_second) {
                report_counters(egress);
                report_active(egress);
                second_ms = egress->now_ms;
            }
            tick_ms = egress->now_ms;
        }
        connections_free_dead(egress);
        guests_free_dead(egress);
        upstreams_free_dead(egress);
        control_flush(egress);
    }
}
