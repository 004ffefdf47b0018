// SPDX-License-Identifier: Apache-2.0
/* The proxies of the host and of sandboxes, and the addresses of their names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "egress/egress_internal.h"
#include "egress/llm/llm.h"

enum {
    ASK_MS = 1500, /* one name server */
    KNOWN_MIN_MS = 5000,
    KNOWN_MAX_MS = 300000,
    MS_PER_SECOND = 1000,
};

/* Writes the name in wire form; it is normalized, so its labels are short enough. */
static void question_set(struct upstream *upstream, uint16_t type)
{
    struct dns_query *question = &upstream->question;
    const char *name = upstream->proxy.host;

    *question = (struct dns_query){ .type = type, .wants_recursion = true };
    (void)snprintf(question->name, sizeof(question->name), "%s", name);
    while (*name) {
        size_t len = strcspn(name, ".");

        question->wire[question->wire_len++] = (uint8_t)len;
        memcpy(question->wire + question->wire_len, name, len);
        question->wire_len += len;
        name += len + (name[len] == '.');
    }
    question->wire[question->wire_len++] = 0;
    upstream->tries = 0;
}

/* Asks the next name server. Returns false when there is none left. */
static bool question_send(struct upstream *upstream)
{
    struct egress *egress = upstream->egress;
    int fd;

    watch_close(egress, &upstream->watch);
    fd = name_server_ask(egress, &upstream->question, &upstream->tries, &upstream->id);
    if (fd < 0)
        return false;
    upstream->watch.fd = fd;
    upstream->deadline_ms = egress->now_ms + ASK_MS;
    watch_set(egress, &upstream->watch, EPOLLIN);
    return true;
}

static bool route_has(const struct route *route, const struct upstream *upstream)
{
    for (size_t i = 0; i < route->hop_count; i++)
        if (route->hops[i] == upstream)
            return true;
    return false;
}

/* The connections that have waited go on; without an address they fail. */
static void lookup_end(struct upstream *upstream, uint64_t known_ms)
{
    struct egress *egress = upstream->egress;

    watch_close(egress, &upstream->watch);
    upstream->is_asking = false;
    egress->lookups--;
    upstream->until_ms = egress->now_ms + known_ms;
    for (struct guest *guest = egress->guests; guest; guest = guest->next) {
        for (struct connection *each = guest->connections, *next; each; each = next) {
            next = each->next;
            if (each->route.is_waiting && route_has(&each->route, upstream)) {
                each->route.is_waiting = false;
                connection_dial_next(each);
            }
        }
    }
}

/* A name without IPv4 addresses may have IPv6 ones. */
static void lookup_next(struct upstream *upstream)
{
    if (upstream->question.type == DNS_A && upstream->egress->has_ipv6) {
        question_set(upstream, DNS_AAAA);
        if (question_send(upstream))
            return;
    }
    upstream->address_count = 0;
    lookup_end(upstream, KNOWN_MIN_MS);
}

static void lookup_answered(struct upstream *upstream, const struct dns_reply *reply)
{
    uint64_t known_ms = KNOWN_MAX_MS;

    upstream->address_count = 0;
    for (size_t i = 0; i < reply->count && upstream->address_count < UPSTREAM_ADDRESSES_MAX; i++) {
        const struct dns_record *record = &reply->records[i];
        uint64_t ttl_ms = (uint64_t)record->ttl * MS_PER_SECOND;

        if (record->type != DNS_A && record->type != DNS_AAAA)
            continue;
        upstream->addresses[upstream->address_count++] = record->address;
        if (ttl_ms < known_ms)
            known_ms = ttl_ms < KNOWN_MIN_MS ? KNOWN_MIN_MS : ttl_ms;
    }
    if (upstream->address_count > 0)
        lookup_end(upstream, known_ms);
    else
        lookup_next(upstream);
}

static void lookup_ready(struct watch *watch, uint32_t events)
{
    struct upstream *upstream = (struct upstream *)watch;
    cleanup_with(dns_reply_done) struct dns_reply reply = { .count = 0 };
    uint8_t data[DNS_UDP_MAX];
    ssize_t n = recv(watch->fd, data, sizeof(data), MSG_DONTWAIT);

    (void)events;
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            upstream->deadline_ms = 0; /* refused: the next server at the next tick */
        return;
    }
    if (dns_reply_parse(data, (size_t)n, &upstream->question, upstream->id, &reply) < 0)
        return; /* forged or malformed: the true one may still come */
    if (reply.code == DNS_FAILED)
        upstream->deadline_ms = 0;
    else
        lookup_answered(upstream, &reply);
}

void upstream_tick(struct upstream *upstream)
{
    if (!upstream || !upstream->is_asking || upstream->egress->now_ms < upstream->deadline_ms)
        return;
    if (!question_send(upstream))
        lookup_next(upstream);
}

void upstreams_tick(struct egress *egress)
{
    if (egress->lookups == 0)
        return;
    upstream_tick(egress->upstream);
    for (struct guest *guest = egress->guests; guest; guest = guest->next)
        upstream_tick(guest->upstream);
    llm_table_tick(egress->llm);
}

bool upstream_is_known(struct upstream *upstream)
{
    struct egress *egress = upstream->egress;

    if (upstream->proxy.address.family != AF_UNSPEC)
        return true;
    if (upstream->is_asking)
        return false;
    if (egress->now_ms < upstream->until_ms)
        return true;
    question_set(upstream, DNS_A);
    if (!question_send(upstream)) {
        upstream->address_count = 0;
        upstream->until_ms = egress->now_ms + KNOWN_MIN_MS;
        return true;
    }
    upstream->is_asking = true;
    egress->lookups++;
    return false;
}

/* --- proxies --- */

static struct upstream *upstream_new(struct egress *egress, const struct net_proxy *proxy)
{
    struct upstream *upstream = xcalloc(1, sizeof(*upstream));

    upstream->egress = egress;
    upstream->watch = (struct watch){ .fd = -EBADF, .ready = lookup_ready };
    upstream->proxy = *proxy;
    if (proxy->address.family != AF_UNSPEC) {
        upstream->addresses[0] = proxy->address;
        upstream->address_count = 1;
    }
    return upstream;
}

bool upstream_set(struct egress *egress, struct upstream **slot, const struct net_proxy *proxy)
{
    struct upstream *old = *slot;

    if (net_proxy_equal(old ? &old->proxy : NULL, proxy))
        return false;
    *slot = proxy ? upstream_new(egress, proxy) : NULL;
    if (old) {
        watch_close(egress, &old->watch);
        egress->lookups -= old->is_asking;
        old->is_asking = false;
        old->next_dead = egress->dead_upstreams;
        egress->dead_upstreams = old;
    }
    return true;
}

/* Events of them may still have been queued in this turn. */
void upstreams_free_dead(struct egress *egress)
{
    while (egress->dead_upstreams) {
        struct upstream *upstream = egress->dead_upstreams;

        egress->dead_upstreams = upstream->next_dead;
        free(upstream);
    }
}
