// SPDX-License-Identifier: Apache-2.0
/* The thread that copies between clients and guests. */
#include "host/port/thread.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/core/config.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/port/port_internal.h"
#include "host/sandbox/sandbox.h"

enum {
    EVENTS_PER_TURN = 64,
    ACCEPTS_PER_TURN = 64,
    ACCEPT_AGAIN_MS = 50, /* after too many connections or descriptors */
    FRAMES_MAX = FRAME_DATA_MAX + 1024,
};

void port_watch(struct ports *ports, struct port_source *source, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = source };
    int op = source->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (source->is_watched && source->events == events && !(events & EPOLLONESHOT))
        return;
    source->is_watched = epoll_ctl(ports->epoll_fd, op, source->fd, &event) == 0;
    source->events = events;
}

void port_unwatch(struct ports *ports, struct port_source *source)
{
    if (source->is_watched)
        (void)epoll_ctl(ports->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    source->is_watched = false;
}

void port_wake(struct ports *ports)
{
    const uint64_t one = 1;

    if (!ports->is_woken)
        (void)!write(ports->wake.fd, &one, sizeof(one));
    ports->is_woken = true;
}

void port_await_guest(struct machine *machine)
{
    struct port_source *guest = &machine->ports.guest;

    guest->kind = PORT_GUEST;
    guest->fd = machine->channel.source.fd;
    port_watch(machine->host->ports, guest, EPOLLOUT | EPOLLONESHOT);
}

/* Sends the pending frames of a machine whose channel can take frames again. */
static void serve_guest(struct port_source *source)
{
    struct machine *machine =
        (struct machine *)(void *)((char *)source - offsetof(struct machine, ports.guest));
    struct ports *ports = machine->host->ports;
    const struct buf none = BUF_INIT(0);
    int r = channel_offer(&machine->channel, &none);

    if (r == 1 || r == -EAGAIN) {
        port_await_guest(machine);
        return;
    }
    for (unsigned i = 0; i < FRAME_CONNECTIONS_MAX; i++) {
        struct port_connection *connection;

        lock_take(&ports->lock);
        connection = machine->ports.slots[i];
        lock_release(&ports->lock);
        /* Only this thread frees connections. */
        if (connection && connection->pending.len > 0)
            port_serve(connection);
    }
}

/* --- forwards --- */

static void forward_admit(struct port_forward *forward, int fd)
{
    struct port_connection *connection = port_connection_new(fd, forward->port, forward);

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int));
    if (forward->sandbox)
        sandbox_attach(forward->sandbox);
    if (port_connection_add(forward->machine, connection) == 0)
        return;
    if (forward->sandbox)
        sandbox_detach(forward->sandbox, NULL);
    port_connection_free(connection);
}

static bool machine_has_room(struct port_forward *forward)
{
    bool has;

    lock_take(&forward->ports->lock);
    has = forward->machine->ports.used < FRAME_CONNECTIONS_MAX;
    lock_release(&forward->ports->lock);
    return has;
}

/* Clients that cannot be served now stay in the listen backlog. */
static void accept_clients(struct port_forward *forward)
{
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = -EAGAIN;

        if (machine_has_room(forward)) {
            fd = accept4(forward->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
                return;
        }
        if (fd < 0) {
            port_unwatch(forward->ports, &forward->source);
            forward->is_waiting = true;
            forward->ports->waiting++;
            return;
        }
        forward_admit(forward, fd);
    }
}

static void stop_waiting(struct port_forward *forward)
{
    forward->ports->waiting -= forward->is_waiting;
    forward->is_waiting = false;
}

/* Resets all connections of the forward; the guest gets their END frames when its channel has room.
 */
static void drop_connections(struct port_forward *forward)
{
    struct ports *ports = forward->ports;

    for (unsigned i = 0; i < FRAME_CONNECTIONS_MAX; i++) {
        struct port_connection *connection = NULL;

        lock_take(&ports->lock);
        if (forward->machine->ports.slots)
            connection = forward->machine->ports.slots[i];
        lock_release(&ports->lock);
        if (!connection || connection->forward != forward)
            continue;
        connection->is_broken = true;
        port_serve(connection);
    }
}

static void end_forward(struct port_forward *forward)
{
    struct ports *ports = forward->ports;
    const uint64_t one = 1;

    port_unwatch(ports, &forward->source);
    forward->source.fd = fd_close(forward->source.fd);
    stop_waiting(forward);
    drop_connections(forward);
    (void)!write(forward->ended_fd, &one, sizeof(one));
}

/* Returns a forward that must end, or NULL. */
static struct port_forward *find_ending(struct ports *ports)
{
    struct port_forward *forward;

    lock_take(&ports->lock);
    forward = ports->forwards;
    while (forward &&
           (forward->is_over || !(forward->is_unwanted || forward->machine->ports.is_cut)))
        forward = forward->next;
    lock_release(&ports->lock);
    return forward;
}

/* Watches new listeners and those that had to wait. The caller holds the lock. */
static void watch_listeners(struct ports *ports)
{
    for (struct port_forward *forward = ports->forwards; forward; forward = forward->next) {
        if (forward->is_over || forward->source.is_watched ||
            forward->machine->ports.used == FRAME_CONNECTIONS_MAX)
            continue;
        stop_waiting(forward);
        port_watch(ports, &forward->source, EPOLLIN);
    }
}

static void update_forwards(struct ports *ports)
{
    struct port_forward *forward;
    bool has_changed;

    lock_take(&ports->lock);
    has_changed = ports->has_changed;
    ports->has_changed = false;
    lock_release(&ports->lock);
    while (has_changed && (forward = find_ending(ports))) {
        end_forward(forward);
        lock_take(&ports->lock);
        forward->is_over = true;
        cond_broadcast(&ports->changed);
        lock_release(&ports->lock);
    }
    if (!has_changed && ports->waiting == 0)
        return;
    lock_take(&ports->lock);
    watch_listeners(ports);
    lock_release(&ports->lock);
}

/* --- the thread --- */

static void source_dispatch(struct ports *ports, struct port_source *source, uint32_t events)
{
    struct port_connection *client = (struct port_connection *)(void *)source;
    uint64_t count;

    switch (source->kind) {
    case PORT_WAKE:
        (void)!read(ports->wake.fd, &count, sizeof(count));
        break;
    case PORT_LISTENER:
        accept_clients((struct port_forward *)(void *)source);
        break;
    case PORT_CLIENT:
        if (events & EPOLLERR)
            client->is_broken = true;
        if (events & EPOLLHUP)
            client->is_hung = true;
        port_serve(client);
        break;
    case PORT_GUEST:
        serve_guest(source);
        break;
    }
}

/* Serves the connections for which frames have arrived. */
static bool serve_ready(struct ports *ports)
{
    struct port_connection *ready;
    bool is_stopping;

    lock_take(&ports->lock);
    ports->is_woken = false;
    ready = TAKE_PTR(ports->ready);
    is_stopping = ports->is_stopping;
    lock_release(&ports->lock);
    while (ready) {
        struct port_connection *connection = ready;

        lock_take(&ports->lock);
        ready = connection->next_ready;
        connection->is_ready = false;
        lock_release(&ports->lock);
        port_serve(connection);
    }
    return is_stopping;
}

/* Frees ended connections that are neither in an event of this turn nor in the list of ready ones.
 */
static void free_over(struct ports *ports)
{
    struct port_connection **slot = &ports->over;

    while (*slot) {
        struct port_connection *connection = *slot;
        bool is_ready;

        lock_take(&ports->lock);
        is_ready = connection->is_ready;
        lock_release(&ports->lock);
        if (is_ready) {
            slot = &connection->next;
            continue;
        }
        *slot = connection->next;
        port_connection_free(connection);
    }
}

static void ports_main(void *argument)
{
    struct ports *ports = argument;
    struct epoll_event events[EVENTS_PER_TURN];

    for (;;) {
        int n = epoll_wait(ports->epoll_fd, events, EVENTS_PER_TURN,
                           ports->waiting > 0 ? ACCEPT_AGAIN_MS : -1);
        bool is_stopping;

        for (int i = 0; i < n; i++)
            source_dispatch(ports, events[i].data.ptr, events[i].events);
        is_stopping = serve_ready(ports);
        update_forwards(ports);
        free_over(ports);
        if (is_stopping)
            return;
    }
}

int ports_start(const struct config *config, struct ports **ret, struct err *err)
{
    struct ports *ports = xcalloc(1, sizeof(*ports));
    int r = 0;

    *ret = ports;
    ports->listen = xstrdup(config->ports_listen);
    ports->advertise = xstrdup(config->ports_advertise);
    ports->frames.max = FRAMES_MAX;
    lock_init(&ports->lock, LOCK_PORTS);
    cond_init(&ports->changed);
    ports->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    ports->wake = (struct port_source){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    if (ports->epoll_fd < 0 || ports->wake.fd < 0)
        r = -errno;
    if (r == 0) {
        port_watch(ports, &ports->wake, EPOLLIN);
        r = thread_start(&ports->thread, "holt-ports", ports_main, ports);
    }
    return r < 0 ? err_sys(err, r, "start the port thread") : 0;
}

void ports_stop(struct ports *ports)
{
    if (!ports || !ports->thread.is_started)
        return;
    lock_take(&ports->lock);
    ports->is_stopping = true;
    port_wake(ports);
    lock_release(&ports->lock);
    thread_join(&ports->thread);
}

void ports_free(struct ports *ports)
{
    if (!ports)
        return;
    (void)fd_close(ports->epoll_fd);
    (void)fd_close(ports->wake.fd);
    cond_destroy(&ports->changed);
    lock_destroy(&ports->lock);
    buf_done(&ports->frames);
    free(ports->listen);
    free(ports->advertise);
    free(ports);
}
