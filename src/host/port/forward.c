// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/observe/event_internal.h"
#include "host/port/port_internal.h"

enum { BACKLOG = 1024 };

/* The address of a listener. */
struct listener {
    char host[INET6_ADDRSTRLEN];
    uint16_t port;
    union {
        struct sockaddr any;
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
    } address;
    socklen_t size;
};

static bool listener_set_host(struct listener *listener, const char *host, size_t len)
{
    if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;
    }
    if (len >= sizeof(listener->host))
        return false;
    memcpy(listener->host, host, len);
    listener->host[len] = '\0';
    if (inet_pton(AF_INET, listener->host, &listener->address.ipv4.sin_addr) == 1) {
        listener->address.ipv4.sin_family = AF_INET;
        listener->address.ipv4.sin_port = htons(listener->port);
        listener->size = sizeof(listener->address.ipv4);
        return true;
    }
    if (inet_pton(AF_INET6, listener->host, &listener->address.ipv6.sin6_addr) != 1)
        return false;
    listener->address.ipv6.sin6_family = AF_INET6;
    listener->address.ipv6.sin6_port = htons(listener->port);
    listener->size = sizeof(listener->address.ipv6);
    return true;
}

/* Parses "ADDR:PORT", ":PORT" or ""; missing parts come from the configuration. */
static int listener_parse(const struct ports *ports, const char *text, struct listener *ret,
                          struct err *err)
{
    const char *colon = text ? strrchr(text, ':') : NULL;
    const char *host = text && colon != text ? text : ports->listen;
    uint64_t port = 0;

    *ret = (struct listener){ .port = 0 };
    if (!text || *text == '\0') {
        (void)listener_set_host(ret, ports->listen, strlen(ports->listen));
        return 0;
    }
    if (!colon || parse_u64(colon + 1, &port) < 0 || port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "'%.100s' is not ADDR:PORT or :PORT", text);
    ret->port = (uint16_t)port;
    if (!listener_set_host(ret, host, host == text ? (size_t)(colon - text) : strlen(host)))
        return err_set(err, ERR_INVALID, "'%.*s' is not an IP address",
                       (int)(colon - text < 100 ? colon - text : 100), text);
    return 0;
}

static int listener_set_error(const struct listener *listener, int r, struct err *err)
{
    enum err_kind kind = r == -EADDRINUSE      ? ERR_EXISTS
                         : r == -EACCES        ? ERR_DENIED
                         : r == -EADDRNOTAVAIL ? ERR_INVALID
                                               : ERR_INTERNAL;
    bool is_ipv6 = listener->address.any.sa_family == AF_INET6;

    return err_set(err, kind, "cannot listen on %s%s%s:%u: %s", is_ipv6 ? "[" : "", listener->host,
                   is_ipv6 ? "]" : "", listener->port, strerror(-r));
}

/* Listens, and fills in the port when it was 0. */
static int listener_listen(struct listener *listener, int *ret_fd, struct err *err)
{
    cleanup_close int fd =
        socket(listener->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = listener->size;

    if (fd < 0)
        return err_sys(err, -errno, "create a socket");
    /* Lets a port be reused while old connections are in TIME_WAIT. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
    if (bind(fd, &listener->address.any, listener->size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, &listener->address.any, &size) < 0)
        return listener_set_error(listener, -errno, err);
    listener->port =
        ntohs(listener->address.any.sa_family == AF_INET6 ? listener->address.ipv6.sin6_port
                                                          : listener->address.ipv4.sin_port);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* ports.advertise replaces the configured address only, not one that the caller asked for. */
static void forward_set_address(struct port_forward *forward, const struct listener *listener)
{
    const struct ports *ports = forward->ports;
    bool is_configured = strcmp(listener->host, ports->listen) == 0;
    const char *host = is_configured && *ports->advertise ? ports->advertise : listener->host;
    bool needs_brackets = strchr(host, ':');

    forward->host_port = listener->port;
    (void)snprintf(forward->host, sizeof(forward->host), "%s", host);
    (void)snprintf(forward->address, sizeof(forward->address), "%s%s%s:%u",
                   needs_brackets ? "[" : "", host, needs_brackets ? "]" : "", listener->port);
}

static void forward_free(struct port_forward *forward)
{
    (void)fd_close(forward->source.fd);
    (void)fd_close(forward->ended_fd);
    machine_unref(forward->machine);
    free(forward);
}

static int forward_enlist(struct port_forward *forward, struct err *err)
{
    struct ports *ports = forward->ports;
    struct port_forward **slot = &ports->forwards;
    bool is_late;

    lock_take(&ports->lock);
    is_late = forward->machine->ports.is_cut || ports->is_stopping;
    while (*slot)
        slot = &(*slot)->next;
    if (!is_late) {
        *slot = forward;
        ports->has_changed = true;
        port_wake(ports);
    }
    lock_release(&ports->lock);
    return is_late ? err_set(err, ERR_BUSY, "sandbox '%s' has ended", forward->owner) : 0;
}

static void forward_emit_event(const struct port_forward *forward, enum event_type type)
{
    json_t *fields =
        json_pack("{s:i, s:s}", "port", (int)forward->port, "address", forward->address);

    if (forward->sandbox)
        sandbox_event(forward->sandbox, type, fields);
    else
        machine_event(forward->machine, type, fields);
}

int port_forward_open(struct machine *machine, const struct port_forward_spec *spec,
                      struct port_forward **ret, struct err *err)
{
    struct ports *ports = machine->host->ports;
    struct port_forward *forward;
    struct listener listener = { .port = 0 };
    int fd = -EBADF;
    int r = 0;

    if (spec->port == 0)
        r = err_set(err, ERR_INVALID, "port %u is not between 1 and %d", spec->port, UINT16_MAX);
    if (r == 0)
        r = listener_parse(ports, spec->listen, &listener, err);
    if (r == 0)
        r = listener_listen(&listener, &fd, err);
    if (r < 0)
        return r;
    forward = xcalloc(1, sizeof(*forward));
    forward->source = (struct port_source){ .kind = PORT_LISTENER, .fd = fd };
    forward->ports = ports;
    forward->machine = machine_ref(machine);
    forward->sandbox = spec->sandbox;
    forward->port = spec->port;
    forward->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)snprintf(forward->owner, sizeof(forward->owner), "%s", spec->owner);
    forward_set_address(forward, &listener);
    r = forward->ended_fd < 0 ? err_sys(err, -errno, "create an eventfd")
                              : forward_enlist(forward, err);
    if (r < 0) {
        forward_free(forward);
        return r;
    }
    forward_emit_event(forward, EVENT_PORT_OPENED);
    *ret = forward;
    return 0;
}

const char *port_forward_address(const struct port_forward *forward)
{
    return forward->address;
}

const char *port_forward_host(const struct port_forward *forward)
{
    return forward->host;
}

uint16_t port_forward_port(const struct port_forward *forward)
{
    return forward->host_port;
}

int port_forward_wait(const struct port_forward *forward, int watch_fd)
{
    struct pollfd fds[2] = {
        { .fd = forward->ended_fd, .events = POLLIN },
        { .fd = watch_fd, .events = POLLRDHUP },
    };

    while (poll(fds, 2, -1) < 0)
        if (errno != EINTR)
            return -errno;
    return fds[0].revents ? 0 : -ECANCELED;
}

void port_forward_close(struct port_forward *forward)
{
    struct ports *ports;
    struct port_forward **slot;

    if (!forward)
        return;
    ports = forward->ports;
    slot = &ports->forwards;
    lock_take(&ports->lock);
    forward->is_unwanted = true;
    ports->has_changed = true;
    port_wake(ports);
    while (!forward->is_over)
        cond_wait(&ports->changed, &ports->lock);
    while (*slot != forward)
        slot = &(*slot)->next;
    *slot = forward->next;
    lock_release(&ports->lock);
    forward_emit_event(forward, EVENT_PORT_CLOSED);
    forward_free(forward);
}

void port_list(struct host *host, const char *owner, struct port_info **ret, size_t *ret_count)
{
    struct ports *ports = host->ports;
    size_t count = 0;

    lock_take(&ports->lock);
    for (const struct port_forward *forward = ports->forwards; forward; forward = forward->next)
        count++;
    *ret = xcalloc(count + 1, sizeof(**ret));
    *ret_count = 0;
    for (const struct port_forward *forward = ports->forwards; forward; forward = forward->next) {
        struct port_info *info = &(*ret)[*ret_count];

        if (forward->is_over || (owner && strcmp(forward->owner, owner) != 0))
            continue;
        info->port = forward->port;
        info->connections = forward->connections;
        memcpy(info->owner, forward->owner, sizeof(info->owner));
        memcpy(info->address, forward->address, sizeof(info->address));
        (*ret_count)++;
    }
    lock_release(&ports->lock);
}
