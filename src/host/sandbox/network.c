// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/network.h"

#include <ifaddrs.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/core/host_internal.h"
#include "host/llm/llm.h"
#include "host/machine/runtime_choice.h"
#include "host/net/host_layer.h"
#include "host/owner/owner_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/sandbox/template_network.h"
#include "net/policy.h"
#include "runtime/runtime.h"

/* Returns whether the owner has a ceiling, and its mode. */
static bool owner_mode(struct host *host, const char *owner, enum net_mode *ret)
{
    struct ceilings ceilings;
    struct err ignored;

    host_get_ceilings(host, owner, &ceilings);
    return ceilings.is_set[CEILING_NETWORK] && net_mode_parse(ceilings.network, ret, &ignored) == 0;
}

/* Sandboxes can have a policy only where something enforces it. The daemon enters the network
 * namespace of the process that it starts, which must be the one of the sandbox. */
static int path_check(struct host *host, const char *runtime, struct err *err)
{
    const struct runtime_ops *ops;
    int r = runtime_find(runtime, &ops, err);

    if (r < 0)
        return r;
    if (!(ops->namespaces & CLONE_NEWNET)) {
        (void)err_set(err, ERR_UNSUPPORTED, "sandboxes of runtime '%s' cannot have a network",
                      runtime);
        return err_remedy(err, "use --net none, or runtime 'native'");
    }
    return net_check(host->net, err);
}

/* Returns whether a mode exceeds a ceiling: none is the narrowest, then allow, then open. */
static bool mode_exceeds(enum net_mode mode, enum net_mode ceiling)
{
    static const int widths[] = { [NET_NONE] = 0, [NET_ALLOW] = 1, [NET_OPEN] = 2, [NET_ANY] = 3 };

    return widths[mode] > widths[ceiling];
}

static int ceilings_check(struct host *host, const char *owner, enum net_mode mode, struct err *err)
{
    cleanup_with(net_layer_done) struct net_layer config = { 0 };
    enum net_mode ceiling = NET_ANY;

    network_host_layer(host, &config);
    if (mode_exceeds(mode, config.mode)) {
        (void)err_set(err, ERR_DENIED, "network mode %s is above net.mode = %s of this host",
                      net_mode_name(mode), net_mode_name(config.mode));
        return err_remedy(err, "use --net %s", net_mode_name(config.mode));
    }
    if (owner_mode(host, owner, &ceiling) && mode_exceeds(mode, ceiling)) {
        (void)err_refuse(err, CAUSE_CEILING_REACHED,
                         "network mode %s is above the ceiling of owner '%s', %s",
                         net_mode_name(mode), owner, net_mode_name(ceiling));
        return err_remedy(err, "use --net %s", net_mode_name(ceiling));
    }
    return 0;
}

bool network_may_have(struct host *host, const char *owner, enum net_mode mode)
{
    const struct runtime_holder holder = { .owner = owner };
    const struct runtime_ops *ops;
    struct err ignored;

    if (ceilings_check(host, owner, mode, &ignored) < 0 ||
        host_choose_runtime(host, &holder, NULL, &ops, &ignored) < 0)
        return false;
    return mode == NET_NONE || path_check(host, ops->name, &ignored) == 0;
}

/* Writes the layers that are recorded: that of the template and the sandbox's own; each may be
 * NULL.
 */
static char *layers_text(const struct net_layer *template, const struct net_layer *own)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    cleanup_json json_t *json = NULL;
    char *text;

    if (template)
        net_layer_copy(template, &policy.layers[policy.count++]);
    if (own) {
        net_layer_copy(own, &policy.layers[policy.count]);
        policy.layers[policy.count++].source = NET_FROM_SANDBOX;
    }
    json = net_policy_to_json(&policy);
    text = json_dumps(json, JSON_COMPACT);
    if (!text)
        abort();
    return text;
}

/* Returns the layer of a sandbox that sets none: that of its template, else open if the daemon is
 * configured so; NULL where the ceilings or the runtime do not allow it. */
static const struct net_layer *default_layer(struct host *host, const struct network_holder *holder,
                                             const struct net_layer *template)
{
    static const struct net_layer open = { .source = NET_FROM_SANDBOX, .mode = NET_OPEN };
    const struct net_layer *layer = NULL;
    struct err ignored;

    lock_take(&host->lock);
    if (host->has_net_default)
        layer = &open;
    lock_release(&host->lock);
    if (template && template_network_is_default(host, holder->template, holder->owner))
        layer = template;
    if (layer && layer->mode != NET_NONE &&
        (ceilings_check(host, holder->owner, layer->mode, &ignored) < 0 ||
         path_check(host, holder->runtime, &ignored) < 0))
        layer = NULL;
    return layer;
}

/* Checks the sandbox's own layer, and computes what to record with it. */
static int layers_record(struct host *host, const struct network_holder *holder,
                         const struct net_layer *template, const struct net_layer *own,
                         char **ret_recorded, struct err *err)
{
    int r = 0;

    if (own && own->mode == NET_NONE && !own->models[0])
        own = NULL;
    if (own)
        r = ceilings_check(host, holder->owner, own->mode, err);
    if (own && r == 0)
        r = llm_check(host->llm, holder->owner, own->models, err);
    if (own && r == 0)
        r = path_check(host, holder->runtime, err);
    if (r == 0)
        *ret_recorded = template || own ? layers_text(template, own) : NULL;
    return r;
}

int network_record(struct host *host, const struct network_holder *holder,
                   const struct net_layer *layer, char **ret_recorded, struct err *err)
{
    cleanup_with(net_layer_done) struct net_layer template = { 0 };
    bool has_template = false;
    int r = template_network_read(host, holder->template, &template, &has_template, err);

    *ret_recorded = NULL;
    if (r < 0)
        return r;
    if (!layer)
        layer = default_layer(host, holder, has_template ? &template : NULL);
    return layers_record(host, holder, has_template ? &template : NULL, layer, ret_recorded, err);
}

int network_recorded_read(const char *recorded, struct net_policy *ret, struct err *err)
{
    cleanup_json json_t *json = NULL;
    int r;

    if (!recorded)
        return 0;
    r = json_parse_object(recorded, strlen(recorded), &json, err);
    return r < 0 ? r : net_policy_from_json(json, ret, err);
}

int network_policy(struct host *host, const char *owner, const char *recorded,
                   struct net_policy *ret, struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy own = { 0 }, policy = { 0 };
    enum net_mode ceiling = NET_ANY;
    bool is_given = false;
    struct net_layer layer;
    int r = network_recorded_read(recorded, &own, err);

    if (r < 0)
        return r;
    network_host_layer(host, &layer);
    r = net_policy_add(&policy, &layer, err);
    if (r == 0 && owner_mode(host, owner, &ceiling)) {
        /* The ceiling "allow" asks for rules, and has none of its own. */
        layer = (struct net_layer){ .source = NET_FROM_OWNER,
                                    .mode = ceiling == NET_NONE ? NET_NONE : NET_OPEN };
        r = net_policy_add(&policy, &layer, err);
    }
    for (size_t i = 0; r == 0 && i < own.count; i++) {
        bool is_own = own.layers[i].source == NET_FROM_SANDBOX;

        is_given = is_given || is_own;
        net_layer_set_headers(&own.layers[i], NULL);
        net_layer_set_ca_bundle(&own.layers[i], NULL);
        /* A ceiling may have been lowered since. */
        if (is_own && ceiling == NET_ALLOW && own.layers[i].mode == NET_OPEN)
            own.layers[i].mode = NET_ALLOW;
        r = net_policy_add(&policy, &own.layers[i], err);
    }
    if (r == 0 && !is_given) {
        layer = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_NONE };
        r = net_policy_add(&policy, &layer, err);
    }
    if (r < 0)
        return r;
    *ret = policy;
    policy.count = 0;
    return 0;
}

enum net_mode network_default_mode(struct host *host, const struct caller *caller,
                                   const char *template)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    char stored[sizeof(((struct sandbox_info *)NULL)->template)];
    const struct network_holder holder = { caller->owner, host->default_runtime->name, stored };
    cleanup_free char *recorded = NULL;
    struct err ignored;
    int r = host_choose_template(host, caller, template, stored, &ignored);

    if (r == 0)
        r = network_record(host, &holder, NULL, &recorded, &ignored);
    if (r == 0)
        r = network_policy(host, caller->owner, recorded, &policy, &ignored);
    return r == 0 ? net_policy_mode(&policy) : NET_NONE;
}

const char *network_mode_name(struct host *host, const char *owner, const char *recorded)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    struct err ignored;

    if (!recorded || network_policy(host, owner, recorded, &policy, &ignored) < 0)
        return net_mode_name(NET_NONE);
    return net_mode_name(net_policy_mode(&policy));
}

bool network_recorded_take(struct net_policy *recorded, enum net_source source,
                           struct net_layer *ret)
{
    for (size_t i = 0; i < recorded->count; i++) {
        if (recorded->layers[i].source != source)
            continue;
        *ret = recorded->layers[i];
        recorded->layers[i] = (struct net_layer){ 0 };
        return true;
    }
    return false;
}

int network_record_again(struct host *host, const struct network_holder *holder,
                         const char *recorded, const struct net_layer *layer, char **ret_recorded,
                         struct err *err)
{
    cleanup_with(net_layer_done) struct net_layer template = { 0 };
    cleanup_with(net_policy_done) struct net_policy old = { 0 };
    int r = network_recorded_read(recorded, &old, err);
    bool has_template = r == 0 && network_recorded_take(&old, NET_FROM_TEMPLATE, &template);

    return r < 0 ? r
                 : layers_record(host, holder, has_template ? &template : NULL, layer, ret_recorded,
                                 err);
}

bool network_is_own_address(const struct net_address *address)
{
    struct ifaddrs *list = NULL;
    bool is_own = false;

    if (getifaddrs(&list) < 0)
        return true; /* fails closed */
    for (const struct ifaddrs *each = list; each && !is_own; each = each->ifa_next) {
        struct net_address own = { .family = AF_UNSPEC };

        if (each->ifa_addr)
            own = net_address_of(each->ifa_addr);
        is_own = own.family != AF_UNSPEC && net_address_equal(&own, address);
    }
    freeifaddrs(list);
    return is_own;
}
