// SPDX-License-Identifier: Apache-2.0
/* The resolver of sandboxes. A name that the policy does not allow is answered here and never sent
 * anywhere. */
#include "egress/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "egress/egress_internal.h"

#define LLM_NAME "llm.holt"

enum { DATAGRAMS_PER_TURN = 32, LLM_TTL = 300 };

void asker_answer(const struct asker *asker, const struct dns_query *question,
                  const struct dns_reply *reply, const struct dns_reason *reason)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
    size_t max = asker->connection ? DNS_MESSAGE_MAX : question->udp_max;

    if (dns_reply_write(question, reply, reason, max, &out) < 0)
        return;
    if (asker->connection)
        resolver_tcp_send(asker->connection, &out);
    else
        (void)sendto(asker->guest->resolver.fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT,
                     (const struct sockaddr *)&asker->address, asker->address_len);
}

void asker_refuse(const struct asker *asker, const struct dns_query *question, enum dns_code code,
                  enum dns_extended extended, const char *text)
{
    const struct dns_reply reply = { .code = code };
    const struct dns_reason reason = { .code = extended, .text = text };

    asker_answer(asker, question, &reply, &reason);
}

void refusal_report(struct guest *guest, const char *name, const char *rule,
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
    static const struct dns_reason no_reason = { .code = DNS_NO_REASON };
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

/* llm.holt has one address, which is in every sandbox with models. */
static void llm_answer(const struct asker *asker, const struct dns_query *question)
{
    static const struct dns_reason no_reason = { .code = DNS_NO_REASON };
    struct dns_record record = { .type = DNS_A,
                                 .ttl = LLM_TTL,
                                 .address = asker->guest->llm_address,
                                 .owner_len = question->wire_len };
    const struct dns_reply reply = { .code = DNS_OK,
                                     .count = question->type == DNS_A,
                                     .records = &record };

    memcpy(record.owner, question->wire, question->wire_len);
    asker_answer(asker, question, &reply, &no_reason);
}

void asker_handle(const struct asker *asker, const void *data, size_t len)
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
    if (net_policy_models(&guest->policy)[0] && strcmp(question.name, LLM_NAME) == 0) {
        llm_answer(asker, &question);
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
        asker_handle(&asker, data, (size_t)n);
    }
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
            resolver_tcp_advance(each);
    }
}
