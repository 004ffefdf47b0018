// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "egress/agent.h"
#include "egress/egress_internal.h"
#include "egress/tls/trust.h"

enum { ACCEPTS_PER_TURN = 32 };

static struct egress_owner *owner_take(struct egress *egress, const char *name)
{
    struct egress_owner *owner = egress->owners;

    while (owner && strcmp(owner->name, name) != 0)
        owner = owner->next;
    if (!owner) {
        owner = xcalloc(1, sizeof(*owner) + strlen(name) + 1);
        memcpy(owner->name, name, strlen(name) + 1);
        owner->next = egress->owners;
        egress->owners = owner;
        egress->owner_count++;
    }
    owner->guests++;
    return owner;
}

static void owner_drop(struct egress *egress, struct egress_owner *owner)
{
    struct egress_owner **slot = &egress->owners;

    if (--owner->guests > 0)
        return;
    while (*slot != owner)
        slot = &(*slot)->next;
    *slot = owner->next;
    egress->owner_count--;
    free(owner);
}

struct guest *egress_guest_add(struct egress *egress, uint64_t number, const char *id,
                               const char *owner)
{
    struct guest *guest = xcalloc(1, sizeof(*guest));

    guest->egress = egress;
    guest->number = number;
    guest->id = xstrdup(id);
    guest->owner = owner_take(egress, owner);
    guest->listener.fd = guest->resolver.fd = -EBADF;
    guest->secrets = broker_secrets_read(NULL);
    guest->tokens = egress->bounds.connects_per_second;
    guest->query_tokens = egress->bounds.queries_per_second;
    guest->next = egress->guests;
    egress->guests = guest;
    return guest;
}

struct guest *egress_guest_find(struct egress *egress, uint64_t number)
{
    struct guest *guest = egress->guests;

    while (guest && guest->number != number)
        guest = guest->next;
    return guest;
}

static bool owner_has_room(const struct guest *guest)
{
    const struct egress *egress = guest->egress;

    return owner_may_use(egress, guest->owner->connections, egress->counters.open,
                         egress->connection_max);
}

static const char *guest_limit(struct guest *guest)
{
    const struct egress_bounds *bounds = &guest->egress->bounds;

    if (guest->connection_count >= bounds->connections) {
        report_limit(guest, BOUND_CONNECTIONS);
        return "the sandbox has too many connections";
    }
    if (bounds->bytes_out > 0 && guest->bytes_out >= bounds->bytes_out) {
        report_limit(guest, BOUND_BYTES_OUT);
        return "the sandbox has sent as many bytes as it may";
    }
    if (owner_has_room(guest))
        return NULL;
    report_limit(guest, BOUND_HOST);
    return "there are too many connections";
}

static void connection_refuse(struct guest *guest, int fd, const char *reason)
{
    const struct linger reset = { .l_onoff = 1 };

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    (void)fd_close(fd);
    guest->egress->counters.limited++;
    report_line(guest, &(struct egress_line){
                           .protocol = "tcp", .name = "", .rule = reason, .end = "limit" });
}

static void listener_wait(struct guest *guest)
{
    watch_set(guest->egress, &guest->listener, 0);
    guest->is_waiting = true;
}

static void listener_ready(struct watch *watch, uint32_t events)
{
    struct guest *guest =
        (struct guest *)(void *)((char *)watch - offsetof(struct guest, listener));

    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        const char *limit;
        int fd;

        if (guest->tokens == 0) { /* clients wait in the backlog */
            report_limit(guest, BOUND_CONNECTS);
            listener_wait(guest);
            return;
        }
        fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                listener_wait(guest); /* out of descriptors */
            return;
        }
        guest->tokens--;
        guest->egress->counters.connections++;
        limit = guest_limit(guest);
        if (limit)
            connection_refuse(guest, fd, limit);
        else
            connection_accept(guest, fd);
    }
}

void egress_guest_start(struct guest *guest, int listener_fd, int resolver_fd)
{
    guest->listener = (struct watch){ .fd = listener_fd, .guest = guest, .ready = listener_ready };
    guest->resolver = (struct watch){ .fd = resolver_fd, .guest = guest, .ready = resolver_ready };
    watch_set(guest->egress, &guest->listener, EPOLLIN);
    watch_set(guest->egress, &guest->resolver, EPOLLIN);
}

/* Where every public address is allowed, whatever it is called, no byte needs to be looked at. */
static bool policy_inspects(const struct net_policy *policy)
{
    if (net_policy_mode(policy) == NET_ALLOW)
        return true;
    for (size_t i = 0; i < policy->count; i++)
        if (policy->layers[i].deny.count > 0 || policy->layers[i].inspects)
            return true;
    return false;
}

static bool policy_denies_bytes(const struct net_policy *policy)
{
    for (size_t i = 0; i < policy->count; i++) {
        const struct net_rules *deny = &policy->layers[i].deny;

        for (size_t j = 0; j < deny->count; j++)
            if (!deny->items[j].is_range || deny->items[j].scheme != NET_ANY_SCHEME ||
                deny->items[j].method[0] || deny->items[j].path[0])
                return true;
    }
    return false;
}

static void guest_review_bytes(struct guest *guest)
{
    guest->inspects = policy_inspects(&guest->policy) || guest->secrets->count > 0;
}

void egress_guest_set_secrets(struct guest *guest, struct broker_secrets *secrets)
{
    broker_secrets_unref(guest->secrets);
    guest->secrets = secrets;
    guest_review_bytes(guest);
}

void egress_guest_set_bundle(struct guest *guest, const char *ca_bundle)
{
    if (strcmp(guest->ca_bundle ? guest->ca_bundle : "", ca_bundle ? ca_bundle : "") == 0)
        return;
    free(guest->ca_bundle);
    guest->ca_bundle = ca_bundle ? xstrdup(ca_bundle) : NULL;
    trust_free(TAKE_PTR(guest->trust));
    for (struct connection *each = guest->connections, *next; each; each = next) {
        next = each->next;
        if (each->session)
            connection_end(each, true, "cut by a change of the certificates");
    }
}

void egress_guest_set(struct guest *guest, struct net_policy *policy)
{
    net_policy_done(&guest->policy);
    guest->policy = *policy;
    *policy = (struct net_policy){ .count = 0 };
    guest->mode = net_policy_mode(&guest->policy);
    guest_review_bytes(guest);
    guest->denies_bytes = policy_denies_bytes(&guest->policy);
    (void)upstream_set(guest->egress, &guest->upstream, net_policy_proxy(&guest->policy));
    for (struct connection *each = guest->connections, *next; each; each = next) {
        next = each->next;
        connection_review(each);
        if (!each->is_dead)
            upstream_review(each);
    }
    grants_expire(guest, true);
    grants_reroute(guest);
}

void egress_guest_remove(struct guest *guest)
{
    struct egress *egress = guest->egress;
    struct guest **slot = &egress->guests;

    while (guest->connections)
        connection_end(guest->connections, true, "the sandbox has stopped");
    resolver_forget_guest(guest);
    watch_close(egress, &guest->listener);
    watch_close(egress, &guest->resolver);
    agent_close(guest);
    grants_free(guest);
    (void)upstream_set(egress, &guest->upstream, NULL);
    net_policy_done(&guest->policy);
    while (*slot != guest)
        slot = &(*slot)->next;
    *slot = guest->next;
    owner_drop(egress, guest->owner);
    guest->next = egress->dead_guests;
    egress->dead_guests = guest;
}

void guests_free_dead(struct egress *egress)
{
    while (egress->dead_guests) {
        struct guest *guest = egress->dead_guests;

        egress->dead_guests = guest->next;
        broker_secrets_unref(guest->secrets);
        free(guest->ca_bundle);
        trust_free(guest->trust);
        free(guest->agent);
        free(guest->id);
        free(guest->llm_token);
        free(guest);
    }
}

static void guest_tick(struct guest *guest, bool is_second)
{
    if (is_second) {
        guest->tokens = guest->egress->bounds.connects_per_second;
        guest->query_tokens = guest->egress->bounds.queries_per_second;
        guest->leaks = 0;
        report_dropped(guest);
        grants_expire(guest, false);
        resolver_resume(guest);
    }
    if (is_second || agent_is_waiting(guest))
        agent_tick(guest);
    if (guest->is_waiting && guest->tokens > 0) {
        guest->is_waiting = false;
        watch_set(guest->egress, &guest->listener, EPOLLIN);
    }
    for (struct connection *each = guest->connections, *next; each; each = next) {
        next = each->next;
        if (is_second || each->state == CONNECTION_PEEK || each->state == CONNECTION_LLM)
            connection_tick(each);
    }
}

void egress_guests_tick(struct egress *egress, bool is_second)
{
    for (struct guest *guest = egress->guests; guest; guest = guest->next)
        guest_tick(guest, is_second);
}
