/* One descriptor of the event loop with its owner. */
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
    WATCH_SHELL,
    WATCH_NETLINK,
    WATCH_RESOURCES,
    WATCH_CELL
};

struct watch {
    enum watch_kind kind;
    int fd;
    uint32_t events; /* registered events; 0: not in the epoll set */
    void *owner;     /* the process or the connection */
    int index;       /* stream number, for WATCH_OUTPUT */
};

/* Registers exactly these events; 0 removes the descriptor from the epoll set, because a hung-up
 * descriptor reports EPOLLHUP whatever was asked for and would wake the loop forever. */
static inline void watch_set(int epoll_fd, struct watch *watch, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = watch };
    int op = watch->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

    if (watch->fd < 0 || watch->events == events)
        return;
    (void)epoll_ctl(epoll_fd, op, watch->fd, &event);
    watch->events = events;
}
