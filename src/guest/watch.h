/* One descriptor in the event loop and who it belongs to. */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

enum watch_kind {
    WATCH_LINK,
    WATCH_LISTEN,
    WATCH_SIGNAL,
    WATCH_OUTPUT,
    WATCH_INPUT,
    WATCH_CONNECTION,
    WATCH_SHELL
};

struct watch {
    enum watch_kind kind;
    int fd;
    uint32_t events; /* registered now; 0: not in the set */
    void *owner;     /* the process, or the connection */
    int index;       /* of output: which stream */
};

/* Registers exactly these events (0: none). Out of the set, not merely silent: a hung-up descriptor
 * would otherwise wake the loop for ever. */
static inline void watch_set(int epoll_fd, struct watch *watch, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = watch };
    int op = watch->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

    if (watch->fd < 0 || watch->events == events)
        return;
    (void)epoll_ctl(epoll_fd, op, watch->fd, &event);
    watch->events = events;
}
