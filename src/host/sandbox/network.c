// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/network.h"

#include <errno.h>
#include <ifaddrs.h>
#include <sched.h>
#include <stdatomic.h>
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
#include "host/net/upstream.h"
#include "host/observe/event_internal.h"
#include "host/owner/owner_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/sandbox/template_network.h"
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
    cleanup_json json_t *upstream = NULL;
    cleanup_with(net_layer_done) struct net_layer layer = { 0 };

    if (network_config_rules(config->net_allow, &layer, false, err) < 0)
        return err_wrap(err, "net.allow");
    if (network_config_rules(config->net_deny, &layer, true, err) < 0)
        return err_wrap(err, "net.deny");
    return net_upstream_read(config, &upstream, err);
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
    if (host->net && net_configure(host->net, config, &err) < 0)
        log_error("network: the proxy and the zones stay as they were: %s", err.msg);
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
    char runtime[CEILING_NAME_SIZE];
    struct ceilings ceilings;
    struct err ignored;

    host_get_ceilings(host, owner, &ceilings);
    if (ceilings_check(host, owner, mode, &ignored) < 0 ||
        ceilings_choose_runtime(&ceilings, owner, NULL, host->default_runtime->name, runtime,
                                &ignored) < 0)
        return false;
    return mode == NET_NONE || path_check(host, runtime, &ignored) == 0;
}

bool network_has_host_rules(struct host *host)
{
    cleanup_with(net_layer_done) struct net_layer config = { 0 };

    config_layer(host, &config);
    return config.mode == NET_ALLOW;
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

    if (own && own->mode == NET_NONE)
        own = NULL;
    if (own)
        r = ceilings_check(host, holder->owner, own->mode, err);
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
    bool is_given = false;
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
    for (size_t i = 0; r == 0 && i < own.count; i++) {
        bool is_own = own.layers[i].source == NET_FROM_SANDBOX;

        is_given = is_given || is_own;
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

/* Returns the layers that hold now. */
static char *sandbox_effective(struct sandbox *sandbox)
{
    const char *text;
    lock_scope(&sandbox->lock);

    text = sandbox->learning ? sandbox->learning : sandbox->info.network;
    return text ? xstrdup(text) : NULL;
}

static char *sandbox_recorded(struct sandbox *sandbox)
{
    lock_scope(&sandbox->lock);

    return sandbox->info.network ? xstrdup(sandbox->info.network) : NULL;
}

/* Takes a layer out of those that are recorded; false if there is none. */
static bool recorded_take(struct net_policy *recorded, enum net_source source,
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
    int r = recorded_read(recorded, &old, err);
    bool has_template = r == 0 && recorded_take(&old, NET_FROM_TEMPLATE, &template);

    return r < 0 ? r
                 : layers_record(host, holder, has_template ? &template : NULL, layer, ret_recorded,
                                 err);
}

int sandbox_network_layer(struct sandbox *sandbox, struct net_layer *ret, struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy own = { 0 };
    cleanup_free char *recorded = sandbox_recorded(sandbox);
    int r = recorded_read(recorded, &own, err);

    if (r < 0)
        return r;
    *ret = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_NONE };
    (void)recorded_take(&own, NET_FROM_SANDBOX, ret);
    return 0;
}

int sandbox_network_policy(struct sandbox *sandbox, struct net_policy *ret, struct err *err)
{
    cleanup_free char *recorded = sandbox_effective(sandbox);

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

static void user_renew(struct host *host, const struct net_user *user)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    struct err err = { 0 };
    int r = network_policy(host, user->owner, user->recorded, &policy, &err);

    if (r == 0)
        r = net_renew(host->net, user->id, &policy, &err);
    if (r < 0)
        log_warn("sandbox '%s' keeps its network policy: %s", user->id, err.msg);
}

/* Starts the network of a machine. A change of holt.conf or of a ceiling that did not find it yet
 * is made good. */
static int network_start(struct host *host, struct machine *machine, const struct net_user *user,
                         struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    unsigned changes = atomic_load(&host->net_changes);
    int r = network_policy(host, user->owner, user->recorded, &policy, err);

    if (r == 0)
        r = net_start(host->net, machine, user, &policy, err);
    if (r == 0 && atomic_load(&host->net_changes) != changes)
        user_renew(host, user);
    return r;
}

int sandbox_network_start(struct sandbox *sandbox, struct machine *machine, struct err *err)
{
    cleanup_free char *recorded = sandbox_effective(sandbox);
    const struct net_user user = { sandbox->info.id, sandbox->info.owner, recorded };

    return recorded ? network_start(sandbox->host, machine, &user, err) : 0;
}

int machine_network_start(struct machine *machine, const char *owner, const char *recorded,
                          struct err *err)
{
    const struct net_user user = { machine->id, owner, recorded };

    return recorded ? network_start(machine->host, machine, &user, err) : 0;
}

/* Gives a running machine the policy that is recorded. The caller runs an operation. */
static int network_renew(struct sandbox *sandbox, struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    cleanup_free char *recorded = sandbox_effective(sandbox);
    const struct net_user user = { sandbox->info.id, sandbox->info.owner,
                                   recorded ? recorded : "" };
    int r;

    if (!sandbox->machine)
        return 0;
    r = network_policy(sandbox->host, user.owner, recorded, &policy, err);
    return r < 0 ? r : net_set(sandbox->host->net, sandbox->machine, &user, &policy, err);
}

size_t sandbox_network_log(struct sandbox *sandbox, uint64_t after, uint64_t wait_ms,
                           struct net_log_line *ret, size_t max)
{
    return net_log(sandbox->host->net, sandbox->info.id, after, wait_ms, ret, max);
}

/* Gives a sandbox its network that has none yet: its policy had amounted to none. */
static void sandbox_apply(struct sandbox *sandbox)
{
    cleanup_free char *recorded = sandbox_effective(sandbox);
    enum sandbox_state state;
    struct err err = { 0 };
    int r;

    if (!recorded || sandbox_begin(sandbox, OPERATION_UPDATE, &state, &err) != 0)
        return; /* its next start uses the new policy, and so does one that is under way */
    r = network_renew(sandbox, &err);
    sandbox_finish(sandbox, state);
    if (r < 0)
        log_warn("sandbox '%s' keeps its network policy: %s", sandbox->info.id, err.msg);
}

void network_apply(struct host *host)
{
    struct sandbox **list;
    size_t count;

    atomic_fetch_add(&host->net_changes, 1);
    net_each_user(host->net, user_renew);
    list = host_list_sandboxes(host, &caller_root, &count);
    for (size_t i = 0; i < count; i++) {
        sandbox_apply(list[i]);
        sandbox_unref(list[i]);
    }
    free(list);
}

/* Records and applies a layer during an operation. */
static int network_write(struct sandbox *sandbox, const struct net_layer *layer, struct err *err)
{
    const struct sandbox_info *info = &sandbox->info;
    const struct network_holder holder = { info->owner, info->runtime, info->template };
    cleanup_free char *old = sandbox_recorded(sandbox), *recorded = NULL;
    int r = network_record_again(sandbox->host, &holder, old, layer, &recorded, err);

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

int sandbox_network_learn(struct sandbox *sandbox, struct err *err)
{
    const struct sandbox_info *info = &sandbox->info;
    const struct network_holder holder = { info->owner, info->runtime, info->template };
    cleanup_with(net_layer_done) struct net_layer layer = { 0 };
    cleanup_free char *recorded = NULL, *learning = NULL;
    enum sandbox_state state = SANDBOX_STOPPED;
    bool is_first;
    int r = sandbox_begin(sandbox, OPERATION_UPDATE, &state, err);

    if (r != 0)
        return r;
    recorded = sandbox_recorded(sandbox);
    r = sandbox_network_layer(sandbox, &layer, err);
    layer.mode = NET_OPEN;
    layer.inspects = true;
    if (r == 0)
        r = network_record_again(sandbox->host, &holder, recorded, &layer, &learning, err);
    lock_take(&sandbox->lock);
    is_first = !sandbox->learning;
    if (r == 0 && is_first)
        sandbox->learning = TAKE_PTR(learning);
    lock_release(&sandbox->lock);
    if (r == 0 && !is_first)
        r = err_set(err, ERR_BUSY, "the network of sandbox '%s' is already being learned",
                    info->id);
    else if (r == 0)
        r = network_renew(sandbox, err);
    sandbox_finish(sandbox, state);
    if (r < 0 && is_first)
        sandbox_network_learn_end(sandbox);
    return r;
}

void sandbox_network_learn_end(struct sandbox *sandbox)
{
    cleanup_free char *learning = NULL;
    enum sandbox_state state = SANDBOX_STOPPED;
    struct err err = { 0 };
    int r;

    lock_take(&sandbox->lock);
    learning = TAKE_PTR(sandbox->learning);
    lock_release(&sandbox->lock);
    r = learning ? sandbox_begin(sandbox, OPERATION_UPDATE, &state, &err) : -ECANCELED;
    if (r == 0) {
        r = network_renew(sandbox, &err);
        sandbox_finish(sandbox, state);
    }
    if (learning && r != 0) { /* another operation runs, or the sandbox ends */
        cleanup_free char *recorded = sandbox_recorded(sandbox);

        user_renew(sandbox->host,
                   &(struct net_user){ sandbox->info.id, sandbox->info.owner, recorded });
    }
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
