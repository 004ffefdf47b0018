// SPDX-License-Identifier: Apache-2.0
/* Connections through proxies. The sandbox's own proxy is dialed through that of the host, if there
 * are both. The address that a proxy is dialed at is the one that was checked. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "egress/egress_internal.h"
#include "egress/proxy.h"

enum {
    CONNECT_MS = 10000, /* to one address of a proxy */
    TALK_MS = 15000,    /* until all proxies have answered */
    TAKE_BYTES = 2048,
};

/* Whether a destination is dialed without the proxy of the host. */
static bool is_direct(const struct egress *egress, const char *name,
                      const struct net_address *address, uint16_t port)
{
    const struct net_request request = {
        .name = name && *name ? name : NULL, .address = *address, .port = port, .protocol = NET_TCP
    };

    for (size_t i = 0; i < egress->direct.count; i++)
        if (net_rule_denies(&egress->direct.items[i], &request))
            return true;
    return false;
}

/* The proxy of a sandbox, by its name; its address is looked at once it is known. */
static bool own_is_direct(const struct egress *egress, const struct upstream *own)
{
    struct net_address none = own->proxy.address;
    const char *name = none.family == AF_UNSPEC ? own->proxy.host : NULL;

    if (none.family == AF_UNSPEC && own->address_count > 0)
        none = own->addresses[0];
    return is_direct(egress, name, &none, own->proxy.port);
}

static void route_fill(const struct connection *connection, const struct net_address *address,
                       struct route *ret)
{
    const struct egress *egress = connection->guest->egress;
    struct upstream *own = connection->guest->upstream, *host = egress->upstream;

    ret->hop_count = ret->hop_next = ret->address_next = 0;
    if (host && !(own ? own_is_direct(egress, own)
                      : is_direct(egress, connection->name, address, connection->port)))
        ret->hops[ret->hop_count++] = host;
    if (own)
        ret->hops[ret->hop_count++] = own;
}

bool upstream_choose(struct connection *connection, const struct net_address *address)
{
    route_fill(connection, address, &connection->route);
    return connection->route.hop_count > 0;
}

void upstream_review(struct connection *connection)
{
    struct route now = { .hop_count = 0 };

    if (connection->state != CONNECTION_DIAL && connection->state != CONNECTION_RELAY)
        return;
    if (connection->session && connection->server.watch.fd < 0)
        return; /* the next dial goes the new way */
    route_fill(connection, &connection->destination, &now);
    if (now.hop_count == connection->route.hop_count &&
        memcmp(now.hops, connection->route.hops, now.hop_count * sizeof(*now.hops)) == 0)
        return;
    connection_end(connection, true, "cut by a change of the proxy");
}

void upstream_forget(struct connection *connection)
{
    free(connection->route.talk);
    connection->route.talk = NULL;
    connection->route.is_waiting = false;
}

static void connection_fail(struct connection *connection, const char *reason)
{
    char how[PROXY_REASON_SIZE + 8];

    connection->guest->egress->counters.failed_dials++;
    (void)snprintf(how, sizeof(how), "proxy: %s", reason);
    connection_end(connection, true, how);
}

/* Returns whether the sandbox may use its proxy at this address. */
static bool own_is_allowed(const struct guest *guest, const struct net_proxy *proxy,
                           const struct net_address *address, struct net_verdict *ret)
{
    const struct net_request request = {
        .name = proxy->address.family == AF_UNSPEC ? proxy->host : NULL,
        .address = *address,
        .is_own_address = address_is_own(guest->egress, address),
        .port = proxy->port,
        .protocol = NET_TCP,
    };

    net_policy_decide_proxy(&guest->policy, &request, ret);
    return ret->is_allowed;
}

static void own_deny(struct connection *connection, const struct net_address *address,
                     const struct net_verdict *verdict)
{
    char text[NET_PREFIX_TEXT_SIZE];

    address_to_text(address, text);
    connection->guest->egress->counters.denied++;
    connection->is_allowed = false;
    (void)snprintf(connection->rule, sizeof(connection->rule), "proxy %s: %.*s", text,
                   (int)(sizeof(connection->rule) - sizeof(text) - 16), verdict->text);
    connection_end(connection, true, "denied");
}

/* Finds the next address of the sandbox's proxy that may be dialed. Returns false when there is
 * none; the connection has then ended if all of them were refused. */
static bool own_address_next(struct connection *connection, const struct upstream *own)
{
    struct route *route = &connection->route;
    const struct net_address *refused = NULL;
    struct net_verdict verdict = { .is_allowed = false };

    while (route->address_next < own->address_count) {
        const struct net_address *address = &own->addresses[route->address_next++];

        if (own_is_allowed(connection->guest, &own->proxy, address, &verdict)) {
            route->own_address = *address;
            return true;
        }
        refused = address;
        connection->dial_errno = EACCES;
    }
    if (refused)
        own_deny(connection, refused, &verdict);
    return false;
}

static bool socket_dial(struct connection *connection, const struct net_address *address,
                        uint16_t port)
{
    struct egress *egress = connection->guest->egress;
    struct sockaddr_storage to;
    socklen_t len;
    int fd = socket(address->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const struct linger reset = { .l_onoff = 1 };

    address_to_socket(address, port, &to, &len);
    if (fd < 0) {
        connection->dial_errno = errno;
        return false;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    if (connect(fd, (const struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS) {
        connection->dial_errno = errno;
        (void)fd_close(fd);
        return false;
    }
    connection->server.watch.fd = fd;
    connection->deadline_ms = egress->now_ms + CONNECT_MS;
    watch_set(egress, &connection->server.watch, EPOLLOUT);
    return true;
}

/* Waits for the names of all proxies of the route. Returns whether they are known. */
static bool route_is_known(struct connection *connection)
{
    struct route *route = &connection->route;
    bool is_known = true;

    for (size_t i = 0; i < route->hop_count; i++)
        is_known = upstream_is_known(route->hops[i]) && is_known;
    return is_known;
}

/* Dials the proxy of the sandbox itself. */
static bool own_dial(struct connection *connection, const struct upstream *own)
{
    while (own_address_next(connection, own))
        if (socket_dial(connection, &connection->route.own_address, own->proxy.port))
            return true;
    return connection->is_dead;
}

/* Dials the proxy of the host; what it then dials is the first address of the sandbox's proxy that
 * is allowed, if there is one. */
static bool host_dial(struct connection *connection, const struct upstream *host,
                      const struct upstream *own)
{
    struct route *route = &connection->route;

    if (own && route->address_next == 0) {
        if (!own_address_next(connection, own))
            return connection->is_dead;
        route->address_next = 0;
    }
    while (route->address_next < host->address_count)
        if (socket_dial(connection, &host->addresses[route->address_next++], host->proxy.port))
            return true;
    return false;
}

bool upstream_dial(struct connection *connection)
{
    struct egress *egress = connection->guest->egress;
    struct route *route = &connection->route;
    const struct upstream *own = connection->guest->upstream;

    watch_close(egress, &connection->server.watch);
    upstream_forget(connection);
    if (route->address_next == 0 && !route_is_known(connection)) {
        connection->candidate_next--; /* it is dialed when they are */
        route->is_waiting = true;
        connection->deadline_ms = egress->now_ms + CONNECT_MS;
        return true;
    }
    for (size_t i = 0; i < route->hop_count; i++) {
        if (route->hops[i]->address_count == 0) {
            connection_fail(connection, "its name does not resolve");
            return true;
        }
    }
    return own && route->hops[0] == own ? own_dial(connection, own)
                                        : host_dial(connection, route->hops[0], own);
}

void upstream_late(struct connection *connection)
{
    if (connection->route.talk || connection->route.is_waiting) {
        connection_fail(connection, "no answer in time");
        return;
    }
    connection->dial_errno = ETIMEDOUT;
    upstream_refused(connection);
}

void upstream_refused(struct connection *connection)
{
    if (!upstream_dial(connection))
        connection_fail(connection, strerror(connection->dial_errno));
}

/* --- the talk --- */

/* Returns the address and port that a hop is asked for. */
static const struct net_address *hop_target(const struct connection *connection, uint16_t *ret_port)
{
    const struct route *route = &connection->route;
    bool is_last = route->hop_next + 1 == route->hop_count;

    *ret_port = is_last ? connection->port : route->hops[route->hop_next + 1]->proxy.port;
    return is_last ? &connection->destination : &route->own_address;
}

static void talk_start(struct connection *connection)
{
    struct route *route = &connection->route;
    uint16_t port;
    const struct net_address *target = hop_target(connection, &port);

    if (!route->talk) {
        route->talk = xcalloc(1, sizeof(*route->talk));
        connection->deadline_ms = connection->guest->egress->now_ms + TALK_MS;
    }
    proxy_talk_start(route->talk, &route->hops[route->hop_next]->proxy, target, port);
}

/* Returns 1 when all is sent, 0 when the socket is full, -errno. */
static int talk_send(struct connection *connection)
{
    struct proxy_talk *talk = connection->route.talk;

    while (talk->out_sent < talk->out_len) {
        ssize_t n = send(connection->server.watch.fd, talk->out + talk->out_sent,
                         talk->out_len - talk->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        talk->out_sent += (size_t)n;
    }
    return 1;
}

/* Takes what the proxy has sent, and leaves what is for the client. Returns 1 when there was
 * something, 0 if not, -EPIPE at the end of the stream, -errno. */
static int talk_receive(struct connection *connection)
{
    char data[TAKE_BYTES];
    int fd = connection->server.watch.fd;
    ssize_t n = recv(fd, data, sizeof(data), MSG_PEEK | MSG_DONTWAIT);
    size_t used;

    if (n == 0)
        return -EPIPE;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    used = proxy_talk_take(connection->route.talk, data, (size_t)n);
    if (used > 0 && recv(fd, data, used, MSG_DONTWAIT) < 0)
        return -errno;
    return 1;
}

static void talk_failed(struct connection *connection, const char *reason)
{
    struct proxy_talk *talk = connection->route.talk;
    char text[PROXY_REASON_SIZE];

    (void)snprintf(text, sizeof(text), "%s", reason);
    if (talk->blames_target && connection->route.hop_next + 1 == connection->route.hop_count &&
        connection->candidate_next < connection->candidate_count) {
        upstream_forget(connection);
        connection_dial_next(connection);
        return;
    }
    connection_fail(connection, text);
}

/* Returns whether there is more to do at once. */
static bool talk_step(struct connection *connection)
{
    struct route *route = &connection->route;
    int r = talk_send(connection);

    if (r > 0)
        r = talk_receive(connection);
    if (r < 0) {
        talk_failed(connection, r == -EPIPE ? "it has closed the connection" : strerror(-r));
        return false;
    }
    if (route->talk->state == PROXY_FAILED) {
        talk_failed(connection, route->talk->reason);
        return false;
    }
    if (route->talk->state == PROXY_READY) {
        if (++route->hop_next < route->hop_count) {
            talk_start(connection);
            return true;
        }
        upstream_forget(connection);
        connection_relay(connection);
        return false;
    }
    if (r > 0)
        return true;
    watch_set(connection->guest->egress, &connection->server.watch,
              EPOLLIN | (route->talk->out_sent < route->talk->out_len ? EPOLLOUT : 0U));
    return false;
}

void upstream_ready(struct connection *connection)
{
    if (!connection->route.talk)
        talk_start(connection);
    while (talk_step(connection))
        ;
}
