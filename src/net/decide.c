// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "net/policy.h"

/* A request with everything that layers look at. */
struct decision {
    struct net_request request; /* its name is normalized */
    enum net_class class;
    const char *reason; /* of the class */
    unsigned bits;      /* that the range of a rule must have at least */
};

__attribute__((format(printf, 4, 5))) static void verdict_set(struct net_verdict *ret,
                                                              bool is_allowed,
                                                              enum net_source source,
                                                              const char *format, ...)
{
    va_list args;

    ret->is_allowed = is_allowed;
    ret->source = source;
    va_start(args, format);
    (void)vsnprintf(ret->text, sizeof(ret->text), format, args);
    va_end(args);
}

static const struct net_rule *deny_find(const struct net_rules *rules,
                                        const struct decision *decision)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (net_rule_denies(&rules->items[i], &decision->request))
            return &rules->items[i];
    }
    return NULL;
}

/* A name says nothing about which address it leads to, so only a rule for a range allows an address
 * that is not public. A range that is wider than the special one ("0.0.0.0/0") means the internet,
 * not the network that the host is in. */
static const struct net_rule *allow_find(const struct net_rules *rules,
                                         const struct decision *decision, unsigned bits)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct net_rule *rule = &rules->items[i];

        if (decision->class != NET_PUBLIC && !(rule->is_range && rule->range.bits >= bits))
            continue;
        if (net_rule_allows(rule, &decision->request))
            return rule;
    }
    return NULL;
}

static bool layer_decide(const struct net_layer *layer, const struct decision *decision,
                         struct net_verdict *ret)
{
    const char *from = net_source_name(layer->source);
    bool is_public = decision->class == NET_PUBLIC;
    const struct net_rule *denied = deny_find(&layer->deny, decision);
    const struct net_rule *allowed = allow_find(&layer->allow, decision, decision->bits);

    if (layer->mode == NET_NONE)
        verdict_set(ret, false, layer->source, "mode none (%s)", from);
    else if (denied && !(layer->allow_wins && allowed))
        verdict_set(ret, false, layer->source, "deny %s (%s)", denied->text, from);
    else if (allowed)
        verdict_set(ret, true, layer->source, "allow %s (%s)", allowed->text, from);
    else if (layer->mode == NET_ANY && decision->class <= NET_PRIVATE)
        verdict_set(ret, true, layer->source, "mode any (%s)", from);
    else if (!is_public)
        verdict_set(ret, false, layer->source, "%s without a rule for its range (%s)",
                    decision->reason, from);
    else if (layer->mode == NET_OPEN)
        verdict_set(ret, true, layer->source, "mode open (%s)", from);
    else
        verdict_set(ret, false, layer->source, "no rule allows this (%s)", from);
    return ret->is_allowed;
}

static bool has_config_rule(const struct net_policy *policy, const struct decision *decision,
                            unsigned bits)
{
    for (size_t i = 0; i < policy->count; i++) {
        if (policy->layers[i].source == NET_FROM_CONFIG &&
            allow_find(&policy->layers[i].allow, decision, bits))
            return true;
    }
    return false;
}

/* Classifies the address; false if nothing can allow it. */
static bool class_check(const struct net_policy *policy, struct decision *decision,
                        struct net_verdict *ret)
{
    const struct net_address *address = &decision->request.address;
    unsigned bits;

    decision->class = net_address_class(address, &decision->reason);
    bits = decision->bits = net_address_special_bits(address);
    if (decision->class != NET_NEVER && decision->request.is_own_address) {
        /* Who allows the network that the host is in does not mean the host and Holt's API. */
        if (decision->class != NET_HOST)
            bits = address->family == AF_INET ? 32 : 128;
        decision->class = NET_HOST;
        decision->reason = "address of this host";
    }
    if (decision->class == NET_NEVER) {
        verdict_set(ret, false, NET_FROM_CONFIG, "%s (built in)", decision->reason);
        return false;
    }
    if (decision->class == NET_HOST && !has_config_rule(policy, decision, bits)) {
        verdict_set(ret, false, NET_FROM_CONFIG, "%s, which needs a rule in holt.conf",
                    decision->reason);
        return false;
    }
    return true;
}

void net_policy_decide(const struct net_policy *policy, const struct net_request *request,
                       struct net_verdict *ret)
{
    struct decision decision = { .request = *request };
    char name[NET_NAME_SIZE];

    if (request->protocol == NET_DNS) {
        (void)net_policy_allows_name(policy, request->name ? request->name : "", ret);
        return;
    }
    verdict_set(ret, false, NET_FROM_SANDBOX, "no network");
    if (request->name) {
        const char *reason = net_name_normalize(request->name, strlen(request->name), name);

        if (reason) {
            verdict_set(ret, false, NET_FROM_CONFIG, "%s (built in)", reason);
            return;
        }
        decision.request.name = name;
    }
    if (policy->count == 0 || !class_check(policy, &decision, ret))
        return;
    for (size_t i = 0; i < policy->count; i++) {
        if (!layer_decide(&policy->layers[i], &decision, ret))
            return;
    }
}

static bool rules_read_https(const struct net_rules *rules, const char *name, uint16_t port)
{
    for (size_t i = 0; i < rules->count; i++)
        if (net_rule_reads_https(&rules->items[i], name, port))
            return true;
    return false;
}

bool net_layer_reads_https(const struct net_layer *layer)
{
    for (size_t i = 0; i < layer->allow.count; i++)
        if (net_rule_is_inside_tls(&layer->allow.items[i]))
            return true;
    for (size_t i = 0; i < layer->deny.count; i++)
        if (net_rule_is_inside_tls(&layer->deny.items[i]))
            return true;
    return false;
}

bool net_policy_reads_https(const struct net_policy *policy, const char *name, uint16_t port)
{
    for (size_t i = 0; i < policy->count; i++)
        if (rules_read_https(&policy->layers[i].allow, name, port) ||
            rules_read_https(&policy->layers[i].deny, name, port))
            return true;
    return false;
}

void net_policy_decide_proxy(const struct net_policy *policy, const struct net_request *request,
                             struct net_verdict *ret)
{
    struct decision decision = { .request = *request };

    verdict_set(ret, false, NET_FROM_CONFIG, "no network");
    if (policy->count == 0 || !class_check(policy, &decision, ret))
        return;
    if (decision.class != NET_PUBLIC && !has_config_rule(policy, &decision, decision.bits)) {
        verdict_set(ret, false, NET_FROM_CONFIG, "%s, which needs a rule in holt.conf",
                    decision.reason);
        return;
    }
    verdict_set(ret, true, NET_FROM_SANDBOX, "proxy (sandbox)");
    for (size_t i = 0; i < policy->count; i++) {
        if (policy->layers[i].source != NET_FROM_SANDBOX &&
            !layer_decide(&policy->layers[i], &decision, ret))
            return;
    }
}

/* Whether a list denies all addresses of both families on all ports. */
static bool denies_everything(const struct net_rules *deny)
{
    bool v4 = false, v6 = false;

    for (size_t i = 0; deny->items && i < deny->count; i++) {
        const struct net_rule *rule = &deny->items[i];

        if (!rule->is_range || rule->range.bits > 0 || rule->port_count > 0 ||
            rule->scheme != NET_ANY_SCHEME)
            continue;
        v4 = v4 || rule->range.address.family == AF_INET;
        v6 = v6 || rule->range.address.family == AF_INET6;
    }
    return v4 && v6;
}

static const struct net_rule *name_find(const struct net_rules *rules, const char *name,
                                        bool (*matches)(const struct net_rule *, const char *))
{
    for (size_t i = 0; i < rules->count; i++) {
        if (matches(&rules->items[i], name))
            return &rules->items[i];
    }
    return NULL;
}

static bool layer_allows_name(const struct net_layer *layer, const char *name,
                              struct net_verdict *ret)
{
    const char *from = net_source_name(layer->source);
    const struct net_rule *denied = name_find(&layer->deny, name, net_rule_denies_name);
    const struct net_rule *allowed = name_find(&layer->allow, name, net_rule_allows_name);

    if (layer->mode == NET_NONE)
        verdict_set(ret, false, layer->source, "mode none (%s)", from);
    else if (denied && !(layer->allow_wins && allowed))
        verdict_set(ret, false, layer->source, "deny %s (%s)", denied->text, from);
    else if (denies_everything(&layer->deny) && !(layer->allow_wins && allowed))
        verdict_set(ret, false, layer->source, "all addresses are denied (%s)", from);
    else if (allowed)
        verdict_set(ret, true, layer->source, "allow %s (%s)", allowed->text, from);
    else if (layer->mode == NET_OPEN || layer->mode == NET_ANY)
        verdict_set(ret, true, layer->source, "mode %s (%s)", net_mode_name(layer->mode), from);
    else
        verdict_set(ret, false, layer->source, "no rule allows this name (%s)", from);
    return ret->is_allowed;
}

bool net_policy_allows_name(const struct net_policy *policy, const char *name,
                            struct net_verdict *ret)
{
    char normalized[NET_NAME_SIZE];
    const char *reason = net_name_normalize(name, strlen(name), normalized);

    verdict_set(ret, false, NET_FROM_SANDBOX, "no network");
    if (reason) {
        verdict_set(ret, false, NET_FROM_CONFIG, "%s (built in)", reason);
        return false;
    }
    for (size_t i = 0; i < policy->count; i++) {
        if (!layer_allows_name(&policy->layers[i], normalized, ret))
            return false;
    }
    return ret->is_allowed;
}
