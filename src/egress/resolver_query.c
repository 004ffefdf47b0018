// SPDX-License-Identifier: Apache-2.0
/* The queries of sandboxes that name servers are asked. Replies are checked, and the addresses in
 * them are made reachable before the sandbox learns of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "egress/control.h"
#include "egress/egress_internal.h"
#include "egress/resolver.h"

enum {
    QUERIES_MAX = 1024, /* under way, of all sandboxes */
    GUEST_QUERIES_MAX = 64,
    TRY_MS = 1500,
    STREAM_MS = 3000,
    GRANT_MS = 2000,
};

_Static_assert((int)CONTROL_ADDRESSES_MAX >= (int)DNS_RECORDS_MAX, "a reply is one grant");

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
        resolver_tcp_advance(asker.connection);
}

static void query_fail(struct query *query, const char *text)
{
    const struct dns_reason reason = { .code = DNS_UNREACHABLE, .text = text };

    dns_reply_done(&query->reply);
    query->reply.code = DNS_FAILED;
    query_finish(query, &reason);
}

/* --- the replies of name servers --- */

/* A public name may lead to an address that is not public, to reach it from where the daemon is. */
static bool address_may_be_given(struct guest *guest, const struct net_address *address,
                                 const char **ret_reason)
{
    return !address_is_special(guest->egress, address, ret_reason) ||
           policy_names_special(&guest->policy, address);
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
        if (grant->is_ready || !grant_needs_route(guest, &record->address))
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
    if (query->reply.code == DNS_FAILED && query->tries < NAME_SERVER_TRIES_MAX)
        query->deadline_ms = 0;
    else if (!query->reply.is_cut || !query->asker.connection)
        reply_accept(query); /* cut, it tells the sandbox to ask again over TCP */
    else if (!stream_start(query))
        query_fail(query, "the reply of the name server is too long");
}

/* --- asking --- */

static bool query_send(struct query *query)
{
    struct egress *egress = query->asker.guest->egress;
    int fd;

    watch_close(egress, &query->watch);
    query->is_stream = false;
    buf_done(&query->stream);
    fd = name_server_ask(egress, &query->question, &query->tries, &query->id);
    if (fd < 0)
        return false;
    query->watch.fd = fd;
    query->deadline_ms = egress->now_ms + TRY_MS;
    watch_set(egress, &query->watch, EPOLLIN);
    return true;
}

void query_start(const struct asker *asker, const struct dns_query *question)
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
    query->watch = (struct watch){ .fd = -EBADF, .guest = guest, .ready = server_ready };
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
