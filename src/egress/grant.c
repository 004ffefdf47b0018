// SPDX-License-Identifier: Apache-2.0
/* The addresses that were given out to a sandbox, and the names that they stand for. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "egress/control.h"
#include "egress/egress_internal.h"
#include "kernel/route.h"

enum {
    GRANT_SECONDS_MIN = 60, /* clients keep an address longer than its TTL */
    NAMES_MAX = 16,         /* of one address */
    MS_PER_SECOND = 1000,
};

static size_t address_chain(const struct net_address *address)
{
    uint32_t hash = 2166136261U; /* FNV-1a */

    for (size_t i = 0; i < sizeof(address->bytes); i++)
        hash = (hash ^ address->bytes[i]) * 16777619U;
    return hash % GRANT_CHAINS;
}

struct grant *grant_find(struct guest *guest, const struct net_address *address)
{
    struct grant *grant = guest->grants[address_chain(address)];

    while (grant && !net_address_equal(&grant->address, address))
        grant = grant->next;
    return grant;
}

bool grant_has_name(const struct grant *grant, const char *name, uint64_t now_ms)
{
    for (const struct grant_name *each = grant ? grant->names : NULL; each; each = each->next)
        if (each->until_ms >= now_ms && strcmp(each->name, name) == 0)
            return true;
    return false;
}

/* Puts the name in front, and drops the oldest one when there are too many. */
static void name_add(struct grant *grant, const char *name, uint64_t until_ms)
{
    struct grant_name **slot = &grant->names, *found = NULL;
    unsigned count = 0;

    while (*slot && strcmp((*slot)->name, name) != 0) {
        count++;
        if (count == NAMES_MAX) {
            free((*slot)->next);
            (*slot)->next = NULL;
        }
        slot = &(*slot)->next;
    }
    found = *slot;
    if (found) {
        *slot = found->next;
    } else {
        found = xcalloc(1, sizeof(*found) + strlen(name) + 1);
        memcpy(found->name, name, strlen(name) + 1);
    }
    if (until_ms > found->until_ms)
        found->until_ms = until_ms;
    found->next = grant->names;
    grant->names = found;
}

struct grant *grant_add(struct guest *guest, const struct net_address *address, const char *name,
                        uint32_t ttl)
{
    uint64_t seconds = ttl > GRANT_SECONDS_MIN ? ttl : GRANT_SECONDS_MIN;
    struct grant *grant = grant_find(guest, address);

    if (!grant) {
        size_t chain = address_chain(address);

        if (guest->grant_count >= GRANTS_MAX)
            return NULL;
        grant = xcalloc(1, sizeof(*grant));
        grant->address = *address;
        grant->next = guest->grants[chain];
        guest->grants[chain] = grant;
        guest->grant_count++;
    }
    name_add(grant, name, guest->egress->now_ms + seconds * MS_PER_SECOND);
    return grant;
}

struct range_search {
    const struct net_address *address;
    unsigned bits; /* that the range has at least */
    bool is_found;
};

static void range_look(void *data, const struct net_prefix *range)
{
    struct range_search *search = data;

    search->is_found =
        search->is_found || (range->bits >= search->bits && net_prefix_has(range, search->address));
}

static bool policy_has_range(const struct net_policy *policy, const struct net_address *address,
                             unsigned bits)
{
    struct range_search search = { .address = address, .bits = bits };

    net_policy_each_range(policy, range_look, &search);
    return search.is_found;
}

bool policy_names_special(const struct net_policy *policy, const struct net_address *address)
{
    return policy_has_range(policy, address, net_address_special_bits(address));
}

bool grant_needs_route(const struct guest *guest, const struct net_address *address)
{
    return guest->mode == NET_ALLOW && !policy_has_range(&guest->policy, address, 0);
}

static void addresses_send(struct guest *guest, const char *what, json_t **addresses)
{
    if (json_array_size(*addresses) > 0)
        control_send(guest->egress, json_pack("{s:s, s:I, s:I, s:O}", "do", what, "machine",
                                              (json_int_t)guest->number, "ticket", (json_int_t)0,
                                              "addresses", *addresses));
    json_decref(*addresses);
    *addresses = json_array();
}

static void addresses_add(struct guest *guest, const char *what, json_t **addresses,
                          const struct net_address *address)
{
    char text[NET_PREFIX_TEXT_SIZE];

    address_to_text(address, text);
    (void)json_array_append_new(*addresses, json_string(text));
    if (json_array_size(*addresses) >= CONTROL_ADDRESSES_MAX)
        addresses_send(guest, what, addresses);
}

static void names_expire(struct guest *guest, struct grant *grant, bool has_changed)
{
    struct net_verdict verdict;

    for (struct grant_name **slot = &grant->names; *slot;) {
        struct grant_name *name = *slot;

        if (name->until_ms >= guest->egress->now_ms &&
            !(has_changed && !net_policy_allows_name(&guest->policy, name->name, &verdict))) {
            slot = &name->next;
            continue;
        }
        *slot = name->next;
        free(name);
    }
}

void grants_expire(struct guest *guest, bool has_changed)
{
    json_t *revoked = json_array();

    for (size_t i = 0; i < GRANT_CHAINS; i++) {
        for (struct grant **slot = &guest->grants[i]; *slot;) {
            struct grant *grant = *slot;

            names_expire(guest, grant, has_changed);
            if (grant->names || grant->users > 0) {
                slot = &grant->next;
                continue;
            }
            if (grant->is_routed)
                addresses_add(guest, "revoke", &revoked, &grant->address);
            *slot = grant->next;
            guest->grant_count--;
            free(grant);
        }
    }
    addresses_send(guest, "revoke", &revoked);
    json_decref(revoked);
}

void grants_reroute(struct guest *guest)
{
    json_t *granted = json_array(), *revoked = json_array();

    for (size_t i = 0; i < GRANT_CHAINS; i++) {
        for (struct grant *grant = guest->grants[i]; grant; grant = grant->next) {
            bool is_needed = grant_needs_route(guest, &grant->address);

            if (is_needed && !grant->is_routed)
                addresses_add(guest, "grant", &granted, &grant->address);
            /* A route of the new policy may be for the same address: holtd adds it afterwards. */
            if (!is_needed && grant->is_routed)
                addresses_add(guest, "revoke", &revoked, &grant->address);
            grant->is_routed = grant->is_ready = is_needed;
        }
    }
    addresses_send(guest, "grant", &granted);
    addresses_send(guest, "revoke", &revoked);
    json_decref(granted);
    json_decref(revoked);
}

void grants_free(struct guest *guest)
{
    for (size_t i = 0; i < GRANT_CHAINS; i++) {
        while (guest->grants[i]) {
            struct grant *grant = guest->grants[i];

            guest->grants[i] = grant->next;
            while (grant->names) {
                struct grant_name *name = grant->names;

                grant->names = name->next;
                free(name);
            }
            free(grant);
        }
    }
    guest->grant_count = 0;
}

size_t grants_of_name(const struct guest *guest, const char *name, struct net_address *list,
                      size_t count, size_t max)
{
    for (size_t i = 0; i < GRANT_CHAINS; i++) {
        for (const struct grant *grant = guest->grants[i]; grant && count < max;
             grant = grant->next) {
            bool is_new = grant_has_name(grant, name, guest->egress->now_ms);

            for (size_t j = 0; is_new && j < count; j++)
                is_new = !net_address_equal(&list[j], &grant->address);
            if (is_new)
                list[count++] = grant->address;
        }
    }
    return count;
}

void address_to_socket(const struct net_address *address, uint16_t port,
                       struct sockaddr_storage *ret, socklen_t *ret_len)
{
    memset(ret, 0, sizeof(*ret));
    if (address->family == AF_INET) {
        struct sockaddr_in *in = (struct sockaddr_in *)ret;

        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, address->bytes, sizeof(in->sin_addr));
        *ret_len = sizeof(*in);
    } else {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        memcpy(&in6->sin6_addr, address->bytes, sizeof(in6->sin6_addr));
        *ret_len = sizeof(*in6);
    }
}

void address_to_text(const struct net_address *address, char ret[NET_PREFIX_TEXT_SIZE])
{
    ret[0] = '\0';
    (void)inet_ntop(address->family, address->bytes, ret, NET_PREFIX_TEXT_SIZE);
}

bool address_is_own(const struct egress *egress, const struct net_address *address)
{
    struct in6_addr v6 = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

    if (address->family == AF_INET)
        memcpy(v6.s6_addr + 12, address->bytes, 4);
    else
        memcpy(v6.s6_addr, address->bytes, sizeof(v6.s6_addr));
    return route_leads_here(egress->route_fd, &v6) != 0; /* also after an error: fails closed */
}

bool address_is_special(const struct egress *egress, const struct net_address *address,
                        const char **ret_reason)
{
    if (net_address_class(address, ret_reason) != NET_PUBLIC)
        return true;
    *ret_reason = "address of this host";
    return address_is_own(egress, address);
}
