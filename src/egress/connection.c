// SPDX-License-Identifier: Apache-2.0
/* The life of one connection of a sandbox: accepted, decided, dialed, ended. */
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
#include "egress/hello.h"
#include "egress/http/session.h"
#include "egress/llm/llm.h"

enum {
    SILENCE_MS = 300,       /* after which the server may be the one that speaks first */
    FIRST_BYTES_MS = 10000, /* for a complete ClientHello or head */
    DIAL_MS = 10000,        /* for one address */
    FAREWELL_MS = 2000,
    IN_MAX = 64 * 1024,
    DNS_PORT = 53,
    MS_PER_SECOND = 1000,
};

static const char *const protocol_names[] = {
    [NET_UNKNOWN] = "tcp", [NET_TCP] = "tcp", [NET_TLS] = "tls",
    [NET_HTTP] = "http",   [NET_DNS] = "dns", [NET_HTTPS] = "https",
};

static void state_set(struct connection *connection, enum connection_state state)
{
    struct egress *egress = connection->guest->egress;

    egress->peeking -= connection->state == CONNECTION_PEEK;
    egress->peeking += state == CONNECTION_PEEK;
    connection->state = state;
}

static void flow_done(struct guest *guest, struct flow *flow)
{
    if (flow->pipe)
        pipe_discard(guest, TAKE_PTR(flow->pipe));
}

static void connection_report(struct connection *connection, const char *how)
{
    struct guest *guest = connection->guest;
    const char *ignored;

    report_line(guest, &(struct egress_line){
                           .protocol = protocol_names[connection->protocol],
                           .name = connection->name,
                           .rule = connection->rule,
                           .end = how,
                           .address = &connection->destination,
                           .port = connection->port,
                           .is_allowed = connection->is_allowed,
                           .is_special = connection->is_allowed &&
                                         address_is_special(guest->egress, &connection->destination,
                                                            &ignored),
                           .bytes_out = connection->up.total,
                           .bytes_in = connection->down.total,
                           .duration_ms = guest->egress->now_ms - connection->began_ms,
                       });
}

/* A socket that is closed is reset unless close_orderly was called: also when this process is
 * killed, both ends learn that bytes may be missing. */
static void close_by_reset(int fd)
{
    const struct linger reset = { .l_onoff = 1 };

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

static void close_orderly(int fd)
{
    const struct linger orderly = { .l_onoff = 0 };

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &orderly, sizeof(orderly));
}

void connection_end(struct connection *connection, bool is_reset, const char *how)
{
    struct guest *guest = connection->guest;
    struct egress *egress = guest->egress;

    if (connection->is_dead)
        return;
    connection->is_dead = true;
    state_set(connection, CONNECTION_RELAY); /* no longer counted as peeking */
    if (!is_reset) {
        close_orderly(connection->client.watch.fd);
        close_orderly(connection->server.watch.fd);
    }
    watch_close(egress, &connection->client.watch);
    watch_close(egress, &connection->server.watch);
    flow_done(guest, &connection->up);
    flow_done(guest, &connection->down);
    llm_forget(connection);
    if (connection->dns_pending > 0)
        resolver_forget_connection(connection);
    if (connection->session)
        session_leave(connection->session);
    upstream_forget(connection);
    if (connection->grant)
        connection->grant->users--;
    connection->grant = NULL;
    if (how)
        connection_report(connection, how);
    *connection->slot = connection->next;
    if (connection->next)
        connection->next->slot = connection->slot;
    guest->connection_count--;
    guest->owner->connections--;
    egress->counters.open--;
    connection->next_dead = egress->dead;
    egress->dead = connection;
}

void connections_free_dead(struct egress *egress)
{
    while (egress->dead) {
        struct connection *connection = egress->dead;

        egress->dead = connection->next_dead;
        session_free(connection->session);
        buf_done(&connection->in);
        buf_done(&connection->out);
        free(connection->path);
        llm_free(connection);
        free(connection);
    }
}

static void connection_deny(struct connection *connection, const struct net_verdict *verdict)
{
    connection->guest->egress->counters.denied++;
    connection->is_allowed = false;
    (void)snprintf(connection->rule, sizeof(connection->rule), "%s", verdict->text);
    connection_end(connection, true, "denied");
}

/* --- dialing --- */

static void dial_failed(struct connection *connection)
{
    char how[64];

    connection->guest->egress->counters.failed_dials++;
    (void)snprintf(how, sizeof(how), "%s: %s", connection->route.hop_count > 0 ? "proxy" : "dial",
                   strerror(connection->dial_errno));
    connection_end(connection, true, how);
}

/* What the connection was last allowed as. A head that is not complete was not decided yet; the
 * connection was then dialed because the client was silent, as any bytes. */
static struct asked connection_asked(const struct connection *connection)
{
    bool is_http = connection->protocol == NET_HTTP || connection->protocol == NET_HTTPS;

    return (struct asked){ .name = connection->name[0] ? connection->name : NULL,
                           .protocol = connection->protocol == NET_HTTP && !connection->path
                                           ? NET_TCP
                                           : connection->protocol,
                           .method = is_http && connection->path ? connection->method : NULL,
                           .path = is_http ? connection->path : NULL };
}

/* The other addresses of a name are decided anew: a rule may be for some addresses alone. */
static bool candidate_is_allowed(struct connection *connection, const struct net_address *address)
{
    struct net_verdict verdict;
    const struct asked asked = connection_asked(connection);

    return net_address_equal(address, &connection->destination) ||
           guest_decide(connection->guest, address, connection->port, &asked, &verdict);
}

/* Starts a connection to the next address. Returns false when there is none left. */
static bool dial_next(struct connection *connection)
{
    struct egress *egress = connection->guest->egress;

    watch_close(egress, &connection->server.watch);
    while (connection->candidate_next < connection->candidate_count) {
        const struct net_address *address = &connection->candidates[connection->candidate_next++];
        struct sockaddr_storage to;
        socklen_t len;
        int fd;

        if (!candidate_is_allowed(connection, address))
            continue;
        if (upstream_choose(connection, address)) {
            connection->destination = *address;
            return upstream_dial(connection);
        }
        fd = socket(address->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            connection->dial_errno = errno;
            continue;
        }
        close_by_reset(fd);
        address_to_socket(address, connection->port, &to, &len);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        if (connect(fd, (const struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS) {
            connection->dial_errno = errno;
            (void)fd_close(fd);
            continue;
        }
        /* What follows is decided for the server that gets it. */
        connection->destination = *address;
        connection->server.watch.fd = fd;
        connection->deadline_ms = egress->now_ms + DIAL_MS;
        watch_set(egress, &connection->server.watch, EPOLLOUT);
        return true;
    }
    return false;
}

void connection_dial_next(struct connection *connection)
{
    if (!dial_next(connection))
        dial_failed(connection);
}

void connection_dial(struct connection *connection)
{
    struct guest *guest = connection->guest;

    connection->candidates[0] = connection->destination;
    connection->candidate_count = 1;
    if (connection->name[0])
        connection->candidate_count =
            grants_of_name(guest, connection->name, connection->candidates, 1, CANDIDATES_MAX);
    connection->candidate_next = 0;
    if (connection->grant) /* of a dial before */
        connection->grant->users--;
    connection->grant = grant_find(guest, &connection->destination);
    if (connection->grant)
        connection->grant->users++;
    connection->dial_errno = EACCES;
    state_set(connection, CONNECTION_DIAL);
    watch_set(guest->egress, &connection->client.watch, EPOLLRDHUP);
    connection_dial_next(connection);
}

void connection_relay(struct connection *connection)
{
    state_set(connection, CONNECTION_RELAY);
    connection->deadline_ms = 0;
    relay_start(connection);
}

static void dial_ready(struct connection *connection)
{
    bool is_proxied = connection->route.hop_count > 0;
    int error = 0;
    socklen_t len = sizeof(error);

    if (connection->route.talk) {
        upstream_ready(connection);
        return;
    }
    (void)getsockopt(connection->server.watch.fd, SOL_SOCKET, SO_ERROR, &error, &len);
    connection->dial_errno = error;
    if (error == 0)
        is_proxied ? upstream_ready(connection) : connection_relay(connection);
    else
        is_proxied ? upstream_refused(connection) : connection_dial_next(connection);
}

/* --- the client's first bytes --- */

static void peek_ready(struct connection *connection)
{
    struct buf *in = &connection->in;
    ssize_t n;

    if (buf_reserve(in, IN_MAX - in->len) < 0) {
        connection_end(connection, true, "out of memory");
        return;
    }
    n = recv(connection->client.watch.fd, in->data + in->len, IN_MAX - in->len, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        connection_end(connection, n < 0, "closed before the first bytes");
        return;
    }
    in->len += (size_t)n;
    connection->was_silent = false;
    if (connection_inspect(connection) <= 0)
        return;
    if (connection->session) {
        state_set(connection, CONNECTION_RELAY);
        session_pump(connection);
    } else {
        connection_dial(connection);
    }
}

/* The reply was sent; what else the client sends is read and dropped, because closing with unread
 * bytes would reset the connection and could destroy the reply. */
static void farewell_ready(struct connection *connection)
{
    char dropped[4096];
    ssize_t n = recv(connection->client.watch.fd, dropped, sizeof(dropped), 0);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        connection_end(connection, n < 0, "denied");
}

static void client_ready(struct watch *watch, uint32_t events)
{
    struct connection *connection = ((struct side *)watch)->connection;

    switch (connection->state) {
    case CONNECTION_PEEK:
        peek_ready(connection);
        break;
    case CONNECTION_DIAL:
        if (events & (EPOLLERR | EPOLLHUP))
            connection_end(connection, true, "closed by the sandbox");
        else /* half-closed: it may still read */
            watch_set(connection->guest->egress, watch, 0);
        break;
    case CONNECTION_RELAY:
        if (connection->session)
            session_ready(connection, true, events);
        else
            relay_pump(connection);
        break;
    case CONNECTION_DNS:
        resolver_tcp_ready(connection);
        break;
    case CONNECTION_FAREWELL:
        farewell_ready(connection);
        break;
    case CONNECTION_LLM:
        llm_client_ready(connection, events);
        break;
    }
}

static void server_ready(struct watch *watch, uint32_t events)
{
    struct connection *connection = ((struct side *)watch)->connection;

    if (connection->state == CONNECTION_DIAL)
        dial_ready(connection);
    else if (connection->state == CONNECTION_RELAY && connection->session)
        session_ready(connection, false, events);
    else if (connection->state == CONNECTION_RELAY)
        relay_pump(connection);
    else if (connection->state == CONNECTION_LLM)
        llm_server_ready(connection);
}

/* --- accepting --- */

static struct connection *connection_new(struct guest *guest, int fd)
{
    struct connection *connection = xcalloc(1, sizeof(*connection));

    connection->guest = guest;
    connection->client =
        (struct side){ .watch = { .fd = fd, .guest = guest, .ready = client_ready },
                       .connection = connection };
    connection->server =
        (struct side){ .watch = { .fd = -EBADF, .guest = guest, .ready = server_ready },
                       .connection = connection };
    connection->in = (struct buf)BUF_INIT(IN_MAX);
    connection->out = (struct buf)BUF_INIT((size_t)DNS_MESSAGE_MAX * 2);
    connection->began_ms = connection->active_ms = guest->egress->now_ms;
    connection->state = CONNECTION_RELAY;
    connection->next = guest->connections;
    connection->slot = &guest->connections;
    if (guest->connections)
        guest->connections->slot = &connection->next;
    guest->connections = connection;
    guest->connection_count++;
    guest->owner->connections++;
    guest->egress->counters.open++;
    return connection;
}

void connection_guess_name(struct connection *connection)
{
    const struct grant *grant = grant_find(connection->guest, &connection->destination);

    if (!grant || !grant->names)
        return;
    (void)snprintf(connection->name, sizeof(connection->name), "%s", grant->names->name);
    memcpy(connection->granted_name, connection->name, sizeof(connection->granted_name));
}

/* Decides without looking at bytes: allows at once where none are needed, and refuses at once what
 * no bytes could make allowed. Returns whether there is a decision. */
static bool connection_decide_early(struct connection *connection)
{
    const struct asked asked = { .protocol = connection->guest->inspects ? NET_UNKNOWN : NET_TCP };
    struct net_verdict verdict;

    if (!guest_decide(connection->guest, &connection->destination, connection->port, &asked,
                      &verdict)) {
        connection_guess_name(connection);
        connection_deny(connection, &verdict);
        return true;
    }
    if (connection->guest->inspects)
        return false;
    connection->is_decided = connection->is_raw = connection->is_allowed = true;
    connection->protocol = NET_TCP;
    (void)snprintf(connection->rule, sizeof(connection->rule), "%s", verdict.text);
    connection_guess_name(connection);
    connection_dial(connection);
    return true;
}

void connection_accept(struct guest *guest, int fd)
{
    struct connection *connection = connection_new(guest, fd);
    struct sockaddr_in6 local = { 0 }, own = { 0 }; /* the listener serves both families */
    socklen_t len = sizeof(local), own_len = sizeof(own);
    struct net_address own_address;

    if (getsockname(fd, (struct sockaddr *)&local, &len) < 0 ||
        getsockname(guest->listener.fd, (struct sockaddr *)&own, &own_len) < 0) {
        connection_end(connection, true, NULL);
        return;
    }
    connection->destination = net_address_of((const struct sockaddr *)&local);
    connection->port = ntohs(local.sin6_port);
    close_by_reset(fd);
    own_address = net_address_of((const struct sockaddr *)&own);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    connection->deadline_ms = guest->egress->now_ms + FIRST_BYTES_MS;
    if (net_address_equal(&connection->destination, &own_address)) {
        if (connection->port != DNS_PORT) {
            (void)snprintf(connection->rule, sizeof(connection->rule),
                           "the address of the resolver (built in)");
            guest->egress->counters.denied++;
            connection_end(connection, true, "denied");
            return;
        }
        connection->protocol = NET_DNS;
        state_set(connection, CONNECTION_DNS);
        watch_set(guest->egress, &connection->client.watch, EPOLLIN);
        return;
    }
    if (net_policy_models(&guest->policy)[0] && connection->port == LLM_PORT &&
        net_address_equal(&connection->destination, &guest->llm_address)) {
        state_set(connection, CONNECTION_LLM);
        llm_accept(connection);
        return;
    }
    if (connection_decide_early(connection))
        return;
    state_set(connection, CONNECTION_PEEK);
    watch_set(guest->egress, &connection->client.watch, EPOLLIN);
}

/* --- time --- */

/* Some protocols begin with the server. Where the policy allows any bytes, such a connection is
 * dialed; the client's first bytes are looked at all the same when they come. A first word alone
 * could become an HTTP request for another name, so it waits, unless the address is allowed
 * whatever its name is. */
static void silence_end(struct connection *connection)
{
    size_t len = connection->in.len;
    const struct asked asked = { .protocol = NET_TCP, .is_nameless = len > 0 };
    struct net_verdict verdict;

    if ((len > 0 && (hello_is_tls(connection->in.data, len) ||
                     http_head_is_http(connection->in.data, len) != 0)) ||
        !guest_decide(connection->guest, &connection->destination, connection->port, &asked,
                      &verdict))
        return;
    (void)snprintf(connection->rule, sizeof(connection->rule), "%s", verdict.text);
    connection->protocol = NET_TCP;
    connection->is_allowed = true;
    connection->is_decided = connection->is_raw = len > 0;
    connection->cleared = len;
    connection_guess_name(connection);
    connection_dial(connection);
}

void connection_tick(struct connection *connection)
{
    const struct egress *egress = connection->guest->egress;
    uint64_t now_ms = egress->now_ms;

    if (connection->state == CONNECTION_LLM) {
        llm_tick(connection);
        return;
    }
    if (connection->deadline_ms > 0 && now_ms >= connection->deadline_ms) {
        if (connection->state == CONNECTION_DIAL && connection->route.hop_count > 0) {
            upstream_late(connection);
        } else if (connection->state == CONNECTION_DIAL) {
            connection->dial_errno = ETIMEDOUT;
            connection_dial_next(connection);
        } else {
            connection_end(connection, connection->state != CONNECTION_FAREWELL,
                           connection->state == CONNECTION_DNS        ? NULL
                           : connection->state == CONNECTION_FAREWELL ? "denied"
                                                                      : "no complete first bytes");
        }
        return;
    }
    if (connection->state == CONNECTION_PEEK && !connection->was_silent &&
        now_ms >= connection->began_ms + SILENCE_MS) {
        connection->was_silent = true; /* once for what is there: a sandbox can hold many of them */
        silence_end(connection);
        return;
    }
    if (connection->state != CONNECTION_RELAY)
        return;
    if (now_ms - connection->active_ms >= (uint64_t)egress->bounds.idle_seconds * MS_PER_SECOND)
        connection_end(connection, true, "idle for too long");
    else if (now_ms - connection->began_ms >=
             (uint64_t)egress->bounds.total_seconds * MS_PER_SECOND)
        connection_end(connection, true, "open for too long");
}

void connection_review(struct connection *connection)
{
    struct asked asked = connection_asked(connection);
    struct net_verdict verdict;

    if (connection->state == CONNECTION_LLM && !llm_is_granted(connection)) {
        connection_end(connection, true, "cut by a change of the policy");
        return;
    }
    connection->was_silent = false;
    asked.granted_name = connection->granted_name;
    if (connection->state != CONNECTION_DIAL && connection->state != CONNECTION_RELAY)
        return;
    if (guest_decide(connection->guest, &connection->destination, connection->port, &asked,
                     &verdict)) {
        if (connection->protocol != NET_TLS ||
            !session_is_needed(connection->guest, connection->name, connection->port))
            return;
        (void)snprintf(verdict.text, sizeof(verdict.text),
                       "what Holt does inside TLS to this host needs a new connection");
    }
    connection->is_allowed = false;
    (void)snprintf(connection->rule, sizeof(connection->rule), "%s", verdict.text);
    connection->guest->egress->counters.denied++;
    connection_end(connection, true, "cut by a change of the policy");
}
