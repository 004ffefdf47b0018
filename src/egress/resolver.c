// SPDX-License-Identifier: Apache-2.0
/* The resolver of sandboxes. A name that the policy does not allow is answered here and never sent
 * anywhere. Replies of the host's name servers are checked, and the addresses in them are made
 * reachable before the sandbox learns of them. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "egress/control.h"
#include "egress/egress_internal.h"

enum {
    DATAGRAMS_PER_TURN = 32,
    QUERIES_MAX = 1024, /* under way, of all sandboxes */
    GUEST_QUERIES_MAX = 64,
    TCP_QUERIES_MAX = 16, /* of one connection */
    TRIES_MAX = 4,
    TRY_MS = 1500,
    STREAM_MS = 3000,
    GRANT_MS = 2000,
    TCP_IDLE_MS = 10000,
};

/* Where a query came from. */
struct asker {
    struct guest *guest;
    struct connection *connection; /* NULL: a datagram */
    struct sockaddr_storage address;
    socklen_t address_len;
};

/* A query that waits for a name server, or for the routes of what that answered. */
struct query {
    struct watch watch; /* first */
    struct query *next;
    struct asker asker;
    struct dns_query question;
    struct dns_reply reply;
    bool waits_for_grant;
    uint16_t id;
    uint64_t ticket;
    unsigned tries;
    uint64_t deadline_ms;
    bool is_stream;    /* the server is asked over TCP, because its reply was cut */
    struct buf stream; /* what it has sent: a length and the reply */
};

static const struct dns_reason no_reason = { .code = DNS_NO_REASON };

/* Returns whether the buffer has a whole message, or one that is too long. */
static bool tcp_has_message(const struct buf *in)
{
    size_t len = in->len < 2 ? 0 : (size_t)(uint8_t)in->data[0] << 8 | (uint8_t)in->data[1];

    return in->len >= 2 && (len > DNS_UDP_MAX || in->len >= 2 + len);
}

static void tcp_watch(struct connection *connection)
{
    bool reads = !connection->client.is_eof && connection->guest->query_tokens > 0 &&
                 connection->dns_pending < TCP_QUERIES_MAX && connection->out.len < DNS_MESSAGE_MAX;

    watch_set(connection->guest->egress, &connection->client.watch,
              (reads ? EPOLLIN : 0U) | (connection->out.len > 0 ? EPOLLOUT : 0U));
}

/* Ends a connection that has nothing more to do. */
static void tcp_settle(struct connection *connection)
{
    if (connection->client.is_eof && connection->out.len == 0 && connection->dns_pending == 0 &&
        !tcp_has_message(&connection->in))
        connection_end(connection, false, NULL);
    else
        tcp_watch(connection);
}

/* Sends what waits. */
static void tcp_send(struct connection *connection)
{
    struct buf *out = &connection->out;
    ssize_t n = 0;

    if (out->len > 0)
        n = send(connection->client.watch.fd, out->data, out->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        connection_end(connection, true, NULL);
        return;
    }
    if (n > 0)
        buf_consume(out, (size_t)n);
    tcp_settle(connection);
}

static void asker_answer(const struct asker *asker, const struct dns_query *question,
                         const struct dns_reply *reply, const struct dns_reason *reason)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
    size_t max = asker->connection ? DNS_MESSAGE_MAX : question->udp_max;
    uint8_t len[2];

    if (dns_reply_write(question, reply, reason, max, &out) < 0)
        return;
    if (!asker->connection) {
        (void)sendto(asker->guest->resolver.fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT,
                     (const struct sockaddr *)&asker->address, asker->address_len);
        return;
    }
    len[0] = (uint8_t)(out.len >> 8);
    len[1] = (uint8_t)out.len;
    /* A length without its message would make the rest of the stream unreadable. */
    if (buf_reserve(&asker->connection->out, sizeof(len) + out.len) < 0) {
        connection_end(asker->connection, true, NULL);
        return;
    }
    (void)buf_add(&asker->connection->out, len, sizeof(len));
    (void)buf_add(&asker->connection->out, out.data, out.len);
    tcp_send(asker->connection);
}

static void asker_refuse(const struct asker *asker, const struct dns_query *question,
                         enum dns_code code, enum dns_extended extended, const char *text)
{
    const struct dns_reply reply = { .code = code };
    const struct dns_reason reason = { .code = extended, .text = text };

    asker_answer(asker, question, &reply, &reason);
}

static void query_free(struct query *query)
{
    struct egress *egress = query->asker.guest->egress;
    struct query **slot = &egress->queries;

    while (*slot != query)
        slot = &(*slot)->next;
    *slot = query->next;
    watch_close(egress, &query->watch);
    query->asker.guest->query_count--;
    query->asker.guest->owner->queries--;
    if (query->asker.connection)
        query->asker.connection->dns_pending--;
    egress->query_count--;
    buf_done(&query->stream);
    dns_reply_done(&query->reply);
    query->next = NULL;
}

/* The memory goes at the end of the turn, because events of it may still be queued. */
static struct query *dead_queries;

static void query_end(struct query *query)
{
    query_free(query);
    query->next = dead_queries;
    dead_queries = query;
}

static void dead_free(void)
{
    while (dead_queries) {
        struct query *query = dead_queries;

        dead_queries = query->next;
        free(query);
    }
}

static void tcp_advance(struct connection *connection);

/* Ends the query with an answer. The connection may be gone afterwards. */
static void query_finish(struct query *query, const struct dns_reason *reason)
{
    struct dns_reply reply = query->reply;
    struct asker asker = query->asker;

    query->reply = (struct dns_reply){ .count = 0 };
    query_end(query);
    asker_answer(&asker, &query->question, &reply, reason);
    dns_reply_done(&reply);
    if (asker.connection) /* there is room for the next one in its buffer */
        tcp_advance(asker.connection);
}

static void query_fail(struct query *query, const char *text)
{
    const struct dns_reason reason = { .code = DNS_UNREACHABLE, .text = text };

    dns_reply_done(&query->reply);
    query->reply.code = DNS_FAILED;
    query_finish(query, &reason);
}

/* --- the replies of name servers --- */

static void refusal_report(struct guest *guest, const char *name, const char *rule,
                           const struct net_address *address)
{
    guest->egress->counters.denied++;
    report_line(guest, &(struct egress_line){ .protocol = "dns",
                                              .name = name,
                                              .rule = rule,
                                              .end = "denied",
                                              .address = address,
                                              .port = address ? 0 : 53 });
}

/* A public name may lead to an address that is not public, to reach it from where the daemon is. */
static bool address_may_be_given(struct guest *guest, const struct net_address *address,
                                 const char **ret_reason)
{
    if (net_address_class(address, ret_reason) == NET_PUBLIC) {
        if (!address_is_own(guest->egress, address))
            return true;
        *ret_reason = "address of this host";
    }
    return policy_names_special(&guest->policy, address);
}

/* Removes addresses that the sandbox must not get. Returns whether any was removed. */
static bool reply_filter(struct query *query)
{
    struct guest *guest = query->asker.guest;
    struct dns_reply *reply = &query->reply;
    bool is_filtered = false;

    for (size_t i = 0; i < reply->count;) {
        const struct dns_record *record = &reply->records[i];
        bool is_address = record->type == DNS_A || record->type == DNS_AAAA;
        const char *reason = "";
        char text[160];

        if (!is_address || address_may_be_given(guest, &record->address, &reason)) {
            i++;
            continue;
        }
        (void)snprintf(text, sizeof(text), "the name leads to a %s (built in)", reason);
        refusal_report(guest, query->question.name, text, &record->address);
        dns_reply_remove(reply, i);
        is_filtered = true;
    }
    return is_filtered;
}

/* Notes the addresses of the reply. Returns how many need a route first, in *ret_addresses, or
 * -ENOSPC. */
static int reply_grant(struct query *query, json_t *addresses)
{
    struct guest *guest = query->asker.guest;

    for (size_t i = 0; i < query->reply.count; i++) {
        const struct dns_record *record = &query->reply.records[i];
        char text[NET_PREFIX_TEXT_SIZE];
        struct grant *grant;

        if (record->type != DNS_A && record->type != DNS_AAAA)
            continue;
        grant = grant_add(guest, &record->address, query->question.name, record->ttl);
        if (!grant)
            return -ENOSPC;
        if (grant->is_ready || !grant_needs_route(guest, &record->address) ||
            json_array_size(addresses) >= CONTROL_ADDRESSES_MAX)
            continue;
        grant->is_routed = true;
        address_to_text(&record->address, text);
        (void)json_array_append_new(addresses, json_string(text));
    }
    return (int)json_array_size(addresses);
}

static void reply_accept(struct query *query)
{
    static const struct dns_reason filtered = { DNS_BLOCKED,
                                                "the name leads to addresses that are refused" };
    struct guest *guest = query->asker.guest;
    json_t *addresses = json_array();
    bool is_filtered = reply_filter(query);
    int r = reply_grant(query, addresses);

    watch_close(guest->egress, &query->watch);
    if (r < 0) {
        query_fail(query, "the sandbox has too many addresses");
    } else if (r > 0) {
        query->waits_for_grant = true;
        query->deadline_ms = guest->egress->now_ms + GRANT_MS;
        control_send(guest->egress, json_pack("{s:s, s:I, s:I, s:O}", "do", "grant", "machine",
                                              (json_int_t)guest->number, "ticket",
                                              (json_int_t)query->ticket, "addresses", addresses));
    } else {
        query_finish(query, is_filtered ? &filtered : &no_reason);
    }
    json_decref(addresses);
}

void resolver_granted(struct egress *egress, uint64_t ticket, bool is_ok)
{
    struct query *query = egress->queries;

    while (query && query->ticket != ticket)
        query = query->next;
    if (!query || !query->waits_for_grant)
        return;
    for (size_t i = 0; is_ok && i < query->reply.count; i++) {
        const struct dns_record *record = &query->reply.records[i];
        bool is_address = record->type == DNS_A || record->type == DNS_AAAA;
        struct grant *grant = is_address ? grant_find(query->asker.guest, &record->address) : NULL;

        if (grant)
            grant->is_ready = grant->is_routed;
    }
    if (is_ok)
        query_finish(query, &no_reason);
    else
        query_fail(query, "no route could be added");
}

/* Asks the server that has answered again, over TCP. */
static bool stream_start(struct query *query)
{
    struct egress *egress = query->asker.guest->egress;
    struct sockaddr_storage server = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof(server);
    int fd;

    if (getpeername(query->watch.fd, (struct sockaddr *)&server, &len) < 0)
        return false;
    fd = socket(server.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    if (connect(fd, (const struct sockaddr *)&server, len) < 0 && errno != EINPROGRESS) {
        (void)fd_close(fd);
        return false;
    }
    watch_close(egress, &query->watch);
    query->watch.fd = fd;
    query->is_stream = true;
    query->stream = (struct buf)BUF_INIT(2 + DNS_MESSAGE_MAX);
    query->deadline_ms = egress->now_ms + STREAM_MS;
    watch_set(egress, &query->watch, EPOLLOUT);
    return true;
}

/* Sends the query once there is a connection. Its few bytes always fit. */
static bool stream_send(struct query *query)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(2 + DNS_UDP_MAX);
    const uint8_t no_length[2] = { 0 };

    if (buf_add(&out, no_length, sizeof(no_length)) < 0 ||
        dns_query_write(&query->question, query->id, &out) < 0)
        return false;
    out.data[0] = (char)((out.len - 2) >> 8);
    out.data[1] = (char)(out.len - 2);
    watch_set(query->asker.guest->egress, &query->watch, EPOLLIN);
    return send(query->watch.fd, out.data, out.len, MSG_NOSIGNAL) == (ssize_t)out.len;
}

/* Reads the reply. Returns 1 when it is whole, 0 if more is needed, or -errno. */
static int stream_read(struct query *query)
{
    struct buf *in = &query->stream;
    size_t want = 2 + DNS_MESSAGE_MAX, len;
    ssize_t n;

    if (buf_reserve(in, want - in->len) < 0)
        return -ENOMEM;
    n = recv(query->watch.fd, in->data + in->len, want - in->len, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    in->len += (size_t)n;
    len = in->len < 2 ? want : (size_t)(uint8_t)in->data[0] << 8 | (uint8_t)in->data[1];
    if (in->len < 2 + len)
        return n == 0 ? -EBADMSG : 0;
    dns_reply_done(&query->reply);
    if (dns_reply_parse(in->data + 2, len, &query->question, query->id, &query->reply) < 0)
        return -EBADMSG;
    return query->reply.is_cut ? -EBADMSG : 1;
}

static void stream_ready(struct query *query)
{
    int r;

    if (query->watch.events & EPOLLOUT)
        r = stream_send(query) ? 0 : -EPIPE;
    else
        r = stream_read(query);
    if (r > 0)
        reply_accept(query);
    else if (r < 0)
        query_fail(query, "the name server does not send its long reply");
}

static void server_ready(struct watch *watch, uint32_t events)
{
    struct query *query = (struct query *)watch;
    uint8_t data[DNS_UDP_MAX];
    ssize_t n;

    (void)events;
    if (query->is_stream) {
        stream_ready(query);
        return;
    }
    n = recv(watch->fd, data, sizeof(data), MSG_DONTWAIT);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            query->deadline_ms = 0; /* refused: the next server at the next tick */
        return;
    }
    dns_reply_done(&query->reply);
    if (dns_reply_parse(data, (size_t)n, &query->question, query->id, &query->reply) < 0)
        return; /* forged or malformed: the true one may still come */
    if (query->reply.code == DNS_FAILED && query->tries < TRIES_MAX)
        query->deadline_ms = 0;
    else if (!query->reply.is_cut || !query->asker.connection)
        reply_accept(query); /* cut, it tells the sandbox to ask again over TCP */
    else if (!stream_start(query))
        query_fail(query, "the reply of the name server is too long");
}

/* --- asking --- */

/* A socket of its own for each try, so that its port and id cannot be guessed. */
static bool query_send(struct query *query)
{
    struct egress *egress = query->asker.guest->egress;
    cleanup_with(buf_done) struct buf out = BUF_INIT(DNS_UDP_MAX);
    size_t count;
    const struct sockaddr_storage *servers = resolver_servers(egress, query->question.name, &count);

    watch_close(egress, &query->watch);
    query->is_stream = false;
    buf_done(&query->stream);
    while (query->tries < TRIES_MAX && count > 0) {
        const struct sockaddr_storage *server = &servers[query->tries++ % count];
        socklen_t len =
            server->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        int fd = socket(server->ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (fd < 0)
            continue;
        query->id = (uint16_t)random_u64();
        buf_clear(&out);
        if (connect(fd, (const struct sockaddr *)server, len) < 0 ||
            dns_query_write(&query->question, query->id, &out) < 0 ||
            send(fd, out.data, out.len, MSG_NOSIGNAL) < 0) {
            (void)fd_close(fd);
            continue;
        }
        query->watch.fd = fd;
        query->deadline_ms = egress->now_ms + TRY_MS;
        watch_set(egress, &query->watch, EPOLLIN);
        return true;
    }
    return false;
}

static void query_start(const struct asker *asker, const struct dns_query *question)
{
    struct guest *guest = asker->guest;
    struct egress *egress = guest->egress;
    struct query *query;

    if (guest->query_count >= GUEST_QUERIES_MAX ||
        !owner_may_use(egress, guest->owner->queries, egress->query_count, QUERIES_MAX)) {
        egress->counters.limited++;
        asker_refuse(asker, question, DNS_FAILED, DNS_UNREACHABLE, "too many queries at once");
        return;
    }
    query = xcalloc(1, sizeof(*query));
    query->watch = (struct watch){ .fd = -EBADF, .ready = server_ready };
    query->asker = *asker;
    query->question = *question;
    query->ticket = ++egress->last_ticket;
    query->next = egress->queries;
    egress->queries = query;
    egress->query_count++;
    guest->query_count++;
    guest->owner->queries++;
    if (asker->connection)
        asker->connection->dns_pending++;
    if (!query_send(query))
        query_fail(query, "no name server of the host can be reached");
}

/* A name for an address tells of the host's own network unless the address is public. */
static bool reverse_is_public(const char *name)
{
    static const char zone[] = ".in-addr.arpa";
    size_t len = strlen(name), zone_len = sizeof(zone) - 1;
    struct net_address backwards, address = { .family = AF_INET };
    char text[INET_ADDRSTRLEN];
    const char *reason;

    if (len <= zone_len || len - zone_len >= sizeof(text) ||
        strcmp(name + len - zone_len, zone) != 0)
        return false;
    memcpy(text, name, len - zone_len);
    text[len - zone_len] = '\0';
    if (net_address_parse(text, &backwards) < 0)
        return false;
    for (size_t i = 0; i < 4; i++)
        address.bytes[i] = backwards.bytes[3 - i];
    return net_address_class(&address, &reason) == NET_PUBLIC;
}

/* Answers what needs no name server: HTTPS and SVCB have no data, so that clients use the addresses
 * that were checked and send their names in the clear; AAAA has none where they lead nowhere. */
static bool query_answer_here(const struct asker *asker, const struct dns_query *question)
{
    const struct dns_reply empty = { .code = DNS_OK };

    if (question->type == DNS_HTTPS || question->type == DNS_SVCB ||
        (question->type == DNS_AAAA && !asker->guest->egress->has_ipv6)) {
        asker_answer(asker, question, &empty, &no_reason);
        return true;
    }
    if (!dns_type_is_known(question->type)) {
        asker_refuse(asker, question, DNS_OK, DNS_BLOCKED, "queries of this type are refused");
        return true;
    }
    if (question->type == DNS_PTR && !reverse_is_public(question->name)) {
        asker_refuse(asker, question, DNS_NO_NAME, DNS_BLOCKED, "not a public address");
        return true;
    }
    return false;
}

static void query_handle(const struct asker *asker, const void *data, size_t len)
{
    struct guest *guest = asker->guest;
    struct net_verdict verdict;
    struct dns_query question;
    int r = dns_query_parse(data, len, &question);

    guest->query_tokens -= guest->query_tokens > 0;
    if (r == -EBADMSG)
        return;
    guest->egress->counters.queries++;
    guest->is_active = true;
    if (r < 0) {
        refusal_report(guest, question.name, "the name has bytes that names cannot have (built in)",
                       NULL);
        asker_refuse(asker, &question, DNS_NO_NAME, DNS_BLOCKED, "not a host name");
        return;
    }
    if (!net_policy_allows_name(&guest->policy, question.name, &verdict)) {
        refusal_report(guest, question.name, verdict.text, NULL);
        asker_refuse(asker, &question, DNS_NO_NAME, DNS_BLOCKED, verdict.text);
        return;
    }
    if (!query_answer_here(asker, &question))
        query_start(asker, &question);
}

/* --- sandboxes --- */

void resolver_ready(struct watch *watch, uint32_t events)
{
    struct guest *guest =
        (struct guest *)(void *)((char *)watch - offsetof(struct guest, resolver));

    (void)events;
    for (int i = 0; i < DATAGRAMS_PER_TURN; i++) {
        struct asker asker = { .guest = guest, .address_len = sizeof(asker.address) };
        uint8_t data[DNS_UDP_MAX];
        ssize_t n;

        if (guest->query_tokens == 0) { /* clients wait, and ask again when that takes long */
            report_limit(guest, BOUND_QUERIES);
            watch_set(guest->egress, watch, 0);
            guest->is_resolver_waiting = true;
            return;
        }
        n = recvfrom(watch->fd, data, sizeof(data), MSG_DONTWAIT, (struct sockaddr *)&asker.address,
                     &asker.address_len);
        if (n < 0)
            return;
        query_handle(&asker, data, (size_t)n);
    }
}

/* Handles the whole messages in the buffer, each with its length in front. */
static void tcp_handle(struct connection *connection)
{
    const struct asker asker = { .guest = connection->guest, .connection = connection };
    struct buf *in = &connection->in;

    while (!connection->is_dead && tcp_has_message(in) && connection->guest->query_tokens > 0 &&
           connection->dns_pending < TCP_QUERIES_MAX && connection->out.len < DNS_MESSAGE_MAX) {
        size_t len = (size_t)(uint8_t)in->data[0] << 8 | (uint8_t)in->data[1];

        if (len > DNS_UDP_MAX) {
            connection_end(connection, true, NULL);
            return;
        }
        query_handle(&asker, in->data + 2, len);
        if (!connection->is_dead)
            buf_consume(in, 2 + len);
    }
}

/* Sends and handles until neither makes room for more of the other. A query that is answered at
 * once comes back here while its message is still in the buffer. */
static void tcp_advance(struct connection *connection)
{
    size_t before;

    if (connection->is_dead || connection->is_handled)
        return;
    connection->is_handled = true;
    do {
        tcp_send(connection);
        before = connection->in.len;
        tcp_handle(connection);
    } while (!connection->is_dead && connection->in.len != before);
    connection->is_handled = false;
    if (!connection->is_dead)
        tcp_settle(connection);
}

void resolver_tcp_ready(struct connection *connection)
{
    const size_t in_max = 2 + DNS_UDP_MAX; /* a whole message fits */
    struct buf *in = &connection->in;
    ssize_t n = 0;

    if (!connection->client.is_eof && in->len < in_max) {
        if (buf_reserve(in, in_max - in->len) < 0) {
            connection_end(connection, true, NULL);
            return;
        }
        n = recv(connection->client.watch.fd, in->data + in->len, in_max - in->len, MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            connection_end(connection, true, NULL);
            return;
        }
        connection->client.is_eof = n == 0;
    }
    if (n > 0) {
        in->len += (size_t)n;
        connection->deadline_ms = connection->guest->egress->now_ms + TCP_IDLE_MS;
    }
    tcp_advance(connection);
}

void resolver_resume(struct guest *guest)
{
    if (guest->is_resolver_waiting) {
        guest->is_resolver_waiting = false;
        watch_set(guest->egress, &guest->resolver, EPOLLIN);
    }
    for (struct connection *each = guest->connections, *next; each; each = next) {
        next = each->next;
        if (each->state == CONNECTION_DNS)
            tcp_advance(each);
    }
}

static struct query *query_find_due(const struct egress *egress)
{
    struct query *query = egress->queries;

    while (query && egress->now_ms < query->deadline_ms)
        query = query->next;
    return query;
}

void resolver_tick(struct egress *egress)
{
    struct query *query;

    /* An answer may end a connection, and with it other queries. */
    while ((query = query_find_due(egress))) {
        if (query->waits_for_grant)
            query_fail(query, "no route could be added in time");
        else if (!query_send(query))
            query_fail(query, "no name server of the host answers");
    }
    dead_free();
}

void resolver_forget_guest(struct guest *guest)
{
    for (struct query *query = guest->egress->queries, *next; query; query = next) {
        next = query->next;
        if (query->asker.guest == guest)
            query_end(query);
    }
}

void resolver_forget_connection(struct connection *connection)
{
    for (struct query *query = connection->guest->egress->queries, *next; query; query = next) {
        next = query->next;
        if (query->asker.connection == connection)
            query_end(query);
    }
}
