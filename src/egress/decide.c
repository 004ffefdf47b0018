// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "egress/egress_internal.h"

static bool request_decide(struct guest *guest, struct net_request request, const char *name,
                           struct net_verdict *ret)
{
    request.name = name;
    net_policy_decide(&guest->policy, &request, ret);
    return ret->is_allowed;
}

/* Bytes that carry no name count for every name that the address was given out for. */
static bool names_decide(struct guest *guest, const struct net_request *request,
                         struct net_verdict *ret)
{
    const struct grant *grant = grant_find(guest, &request->address);

    for (const struct grant_name *name = grant ? grant->names : NULL; name; name = name->next)
        if (request_decide(guest, *request, name->name, ret))
            return true;
    return false;
}

/* A name that the client sends is allowed only together with an address that was given out for it:
 * otherwise a rule for a name would allow every address. In mode open every public address is
 * allowed without a name. */
static bool name_decide(struct guest *guest, const struct net_request *request,
                        const struct asked *asked, struct net_verdict *ret)
{
    const char *text = asked->name;
    char name[NET_NAME_SIZE];
    struct net_address literal;
    const char *reason;

    if (net_address_parse(text, &literal) == 0) { /* as in "Host: 192.168.1.1" */
        if (net_address_equal(&literal, &request->address))
            return request_decide(guest, *request, NULL, ret);
        (void)snprintf(ret->text, sizeof(ret->text), "the request names another address");
        ret->is_allowed = false;
        return false;
    }
    reason = net_name_normalize(text, strlen(text), name);
    if (reason) {
        (void)snprintf(ret->text, sizeof(ret->text), "%s (built in)", reason);
        ret->is_allowed = false;
        return false;
    }
    if (!request_decide(guest, *request, name, ret) || guest->mode != NET_ALLOW ||
        (asked->granted_name && strcmp(name, asked->granted_name) == 0) ||
        grant_has_name(grant_find(guest, &request->address), name, guest->egress->now_ms))
        return ret->is_allowed;
    if (request_decide(guest, *request, NULL, ret))
        return true;
    (void)snprintf(ret->text, sizeof(ret->text),
                   "the address was not given out for the name by the resolver (built in)");
    return false;
}

bool guest_decide(struct guest *guest, const struct net_address *address, uint16_t port,
                  const struct asked *asked, struct net_verdict *ret)
{
    const struct net_request request = {
        .address = *address,
        .is_own_address = address_is_own(guest->egress, address),
        .port = port,
        .protocol = asked->protocol,
        .method = asked->method,
        .path = asked->path,
    };
    struct net_verdict other;

    if (asked->name)
        return name_decide(guest, &request, asked, ret);
    if (request_decide(guest, request, NULL, ret))
        return true;
    if (asked->is_nameless || (asked->protocol != NET_TCP && asked->protocol != NET_UNKNOWN))
        return false;
    if (!names_decide(guest, &request, &other))
        return false;
    *ret = other;
    return true;
}
