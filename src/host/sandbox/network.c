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
#include "base/log.h"
#include "base/xalloc.h"
#include "host/core/config.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/net/net.h"
#include "host/observe/event_internal.h"
#include "host/owner/owner_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "net/policy.h"
#include "runtime/runtime.h"

/* A word of capitals is the method of the rule that the next word has. */
static bool is_method(const char *word)
{
    return word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';
}

int network_config_rules(const char *text, struct net_layer *layer, bool is_deny, struct err *err)
{
    cleanup_with(net_layer_done) struct net_layer checked = { 0 };
    cleanup_free char *copy = xstrdup(text);
    char *rest = NULL;
    int r = 0;

    if (!layer)
        layer = &checked;
    for (char *word = strtok_r(copy, " \t", &rest); r == 0 && word;
         word = strtok_r(NULL, " \t", &rest)) {
        cleanup_free char *rule = NULL;

        if (is_method(word)) {
            const char *target = strtok_r(NULL, " \t", &rest);

            if (!target)
                return err_set(err, ERR_INVALID, "no URL follows the method '%.40s'", word);
            rule = xasprintf("%s %s", word, target);
        }
        r = is_deny ? net_layer_deny(layer, rule ? rule : word, err)
                    : net_layer_allow(layer, rule ? rule : word, err);
    }
    return r;
}

int network_config_check(const struct config *config, struct err *err)
{
    cleanup_with(net_layer_done) struct net_layer layer = { 0 };

    if (network_config_rules(config->net_allow, &layer, false, err) < 0)
        return err_wrap(err, "net.allow");
    if (network_config_rules(config->net_deny, &layer, true, err) < 0)
        return err_wrap(err, "net.deny");
    return 0;
}

void network_configure(struct host *host, const struct config *config)
{
    struct net_layer *layer = xcalloc(1, sizeof(*layer)), *old;
    struct err err = { 0 };
    int r = 0;

    layer->source = NET_FROM_CONFIG;
    if (strcmp(config->net_mode, net_mode_name(NET_ANY)) == 0)
        layer->mode = NET_ANY;
    else
        r = net_mode_parse(config->net_mode, &layer->mode, &err);
    if (r == 0)
        r = network_config_rules(config->net_allow, layer, false, &err);
    if (r == 0)
        r = network_config_rules(config->net_deny, layer, true, &err);
    if (r < 0) { /* all of it was checked before; a part of the rules could allow too much */
        log_error("network: sandboxes have no network: %s", err.msg);
        layer->mode = NET_NONE;
    }
    lock_take(&host->lock);
    old = host->net_config;
    host->net_config = layer;
    host->has_net_default = strcmp(config->net_default, "open") == 0;
    lock_release(&host->lock);
    if (old)
        net_layer_done(old);
    free(old);
}

void network_free(struct host *host)
{
    if (host->net_config)
        net_layer_done(host->net_config);
    free(host->net_config);
    host->net_config = NULL;
}

/* Copies the layer of holt.conf. */
static void config_layer(struct host *host, struct net_layer *ret)
{
    lock_scope(&host->lock);

    net_layer_copy(host->net_config, ret);
}

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

    config_layer(host, &config);
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
    struct err ignored;

    return ceilings_check(host, owner, mode, &ignored) == 0 &&
           (mode == NET_NONE || path_check(host, host->default_runtime->name, &ignored) == 0);
}

static char *layer_text(const struct net_layer *layer)
{
    cleanup_with(net_policy_done) struct net_policy policy = { .count = 1 };
    cleanup_json json_t *json = NULL;
    char *text;

    net_layer_copy(layer, &policy.layers[0]);
    policy.layers[0].source = NET_FROM_SANDBOX;
    json = net_policy_to_json(&policy);
    text = json_dumps(json, JSON_COMPACT);
    if (!text)
        abort();
    return text;
}

/* The layer of a sandbox that sets none: open, if the daemon is configured so and the ceilings
 * allow it. */
static bool default_layer(struct host *host, const char *owner, const char *runtime,
                          struct net_layer *ret)
{
    bool is_open;
    struct err ignored;

    lock_take(&host->lock);
    is_open = host->has_net_default;
    lock_release(&host->lock);
    *ret = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_OPEN };
    return is_open && ceilings_check(host, owner, NET_OPEN, &ignored) == 0 &&
           path_check(host, runtime, &ignored) == 0;
}

int network_record(struct host *host, const char *owner, const char *runtime,
                   const struct net_layer *layer, char **ret_recorded, struct err *err)
{
    struct net_layer own;
    int r;

    *ret_recorded = NULL;
    if (!layer && !default_layer(host, owner, runtime, &own))
        return 0;
    if (!layer)
        layer = &own;
    if (layer->mode == NET_NONE)
        return 0;
    r = ceilings_check(host, owner, layer->mode, err);
    if (r == 0)
        r = path_check(host, runtime, err);
    if (r == 0)
        *ret_recorded = layer_text(layer);
    return r;
}

static int recorded_read(const char *recorded, struct net_policy *ret, struct err *err)
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
    struct net_layer layer;
    int r = recorded_read(recorded, &own, err);

    if (r < 0)
        return r;
    config_layer(host, &layer);
    r = net_policy_add(&policy, &layer, err);
    if (r == 0 && owner_mode(host, owner, &ceiling)) {
        /* The ceiling "allow" asks for rules, and has none of its own. */
        layer = (struct net_layer){ .source = NET_FROM_OWNER,
                                    .mode = ceiling == NET_NONE ? NET_NONE : NET_OPEN };
        r = net_policy_add(&policy, &layer, err);
    }
    if (r == 0 && own.count == 0) {
        layer = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_NONE };
        r = net_policy_add(&policy, &layer, err);
    }
    for (size_t i = 0; r == 0 && i < own.count; i++) {
        /* A ceiling may have been lowered since. */
        if (ceiling == NET_ALLOW && own.layers[i].mode == NET_OPEN)
            own.layers[i].mode = NET_ALLOW;
        r = net_policy_add(&policy, &own.layers[i], err);
    }
    if (r < 0)
        return r;
    *ret = policy;
    policy.count = 0;
    return 0;
}

const char *network_mode_name(struct host *host, const char *owner, const char *recorded)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    struct err ignored;

    if (!recorded || network_policy(host, owner, recorded, &policy, &ignored) < 0)
        return net_mode_name(NET_NONE);
    return net_mode_name(net_policy_mode(&policy));
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

static char *sandbox_recorded(struct sandbox *sandbox)
{
    lock_scope(&sandbox->lock);

    return sandbox->info.network ? xstrdup(sandbox->info.network) : NULL;
}

int sandbox_network_layer(struct sandbox *sandbox, struct net_layer *ret, struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy own = { 0 };
    cleanup_free char *recorded = sandbox_recorded(sandbox);
    int r = recorded_read(recorded, &own, err);

    if (r < 0)
        return r;
    *ret = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_NONE };
    for (size_t i = 0; i < own.count; i++) {
        if (own.layers[i].source == NET_FROM_SANDBOX) {
            *ret = own.layers[i];
            own.layers[i] = (struct net_layer){ 0 };
        }
    }
    return 0;
}

int sandbox_network_policy(struct sandbox *sandbox, struct net_policy *ret, struct err *err)
{
    cleanup_free char *recorded = sandbox_recorded(sandbox);

    return network_policy(sandbox->host, sandbox->info.owner, recorded, ret, err);
}

/* Records a layer (NULL: none) that was checked. */
static int network_replace(struct sandbox *sandbox, char **recorded, struct err *err)
{
    static const char none[] = "{\"layers\":[]}";
    char *old;
    int r = registry_put_network(sandbox->host->registry, sandbox->info.id,
                                 *recorded ? *recorded : none, err);

    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    old = sandbox->info.network;
    sandbox->info.network = TAKE_PTR(*recorded);
    lock_release(&sandbox->lock);
    free(old);
    return 0;
}

int sandbox_network_start(struct sandbox *sandbox, struct machine *machine, struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    const struct sandbox_info *info = &sandbox->info;
    int r;

    if (!info->network)
        return 0;
    r = sandbox_network_policy(sandbox, &policy, err);
    return r < 0 ? r : net_start(sandbox->host->net, machine, info->id, info->owner, &policy, err);
}

int machine_network_start(struct machine *machine, const char *owner, const char *recorded,
                          struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    int r;

    if (!recorded)
        return 0;
    r = network_policy(machine->host, owner, recorded, &policy, err);
    return r < 0 ? r : net_start(machine->host->net, machine, machine->id, owner, &policy, err);
}

/* Gives a running machine the policy that is recorded. The caller runs an operation. */
static int network_renew(struct sandbox *sandbox, struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    int r;

    if (!sandbox->machine)
        return 0;
    r = sandbox_network_policy(sandbox, &policy, err);
    return r < 0 ? r
                 : net_set(sandbox->host->net, sandbox->machine, sandbox->info.id,
                           sandbox->info.owner, &policy, err);
}

size_t sandbox_network_log(struct sandbox *sandbox, uint64_t after, uint64_t wait_ms,
                           struct net_log_line *ret, size_t max)
{
    return net_log(sandbox->host->net, sandbox->info.id, after, wait_ms, ret, max);
}

void network_apply(struct host *host)
{
    size_t count;
    struct sandbox **list = host_list_sandboxes(host, &caller_root, &count);

    for (size_t i = 0; i < count; i++) {
        enum sandbox_state state;
        struct err err = { 0 };
        cleanup_free char *recorded = sandbox_recorded(list[i]);
        int r = recorded ? sandbox_begin(list[i], OPERATION_UPDATE, &state, &err) : 0;

        if (r == 0 && recorded) {
            r = network_renew(list[i], &err);
            sandbox_finish(list[i], state);
        }
        if (r < 0)
            log_warn("sandbox '%s' keeps its network policy: %s", list[i]->info.id, err.msg);
        sandbox_unref(list[i]);
    }
    free(list);
}

/* Records and applies a layer during an operation. */
static int network_write(struct sandbox *sandbox, const struct net_layer *layer, struct err *err)
{
    cleanup_free char *recorded = NULL;
    int r = network_record(sandbox->host, sandbox->info.owner, sandbox->info.runtime, layer,
                           &recorded, err);

    if (r == 0)
        r = network_replace(sandbox, &recorded, err);
    if (r == 0)
        r = network_renew(sandbox, err);
    if (r == 0)
        sandbox_event(sandbox, EVENT_SANDBOX_UPDATED,
                      json_pack("{s:s, s:s}", "name", sandbox->info.name, "network",
                                net_mode_name(layer->mode)));
    return r;
}

int sandbox_network_set(struct sandbox *sandbox, const struct net_layer *layer, struct err *err)
{
    enum sandbox_state state = SANDBOX_STOPPED;
    int r = sandbox_begin(sandbox, OPERATION_UPDATE, &state, err);

    if (r != 0)
        return r;
    r = network_write(sandbox, layer, err);
    sandbox_finish(sandbox, state);
    return r;
}

int sandbox_network_change(struct sandbox *sandbox, network_change *change, const void *data,
                           struct err *err)
{
    cleanup_with(net_layer_done) struct net_layer layer = { 0 };
    enum sandbox_state state = SANDBOX_STOPPED;
    int r = sandbox_begin(sandbox, OPERATION_UPDATE, &state, err);

    if (r != 0)
        return r;
    r = sandbox_network_layer(sandbox, &layer, err);
    if (r == 0)
        r = change(data, &layer, err);
    if (r == 0)
        r = network_write(sandbox, &layer, err);
    sandbox_finish(sandbox, state);
    return r;
}
