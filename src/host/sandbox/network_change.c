// SPDX-License-Identifier: Apache-2.0
/* Starts the networks of sandboxes, changes them while they run, and learns what they need. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/net/net.h"
#include "host/observe/event_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox_internal.h"
#include "net/policy.h"

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

int sandbox_network_layer(struct sandbox *sandbox, struct net_layer *ret, struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy own = { 0 };
    cleanup_free char *recorded = sandbox_recorded(sandbox);
    int r = network_recorded_read(recorded, &own, err);

    if (r < 0)
        return r;
    *ret = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_NONE };
    (void)network_recorded_take(&own, NET_FROM_SANDBOX, ret);
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

/* Begins to start the network of a machine. Takes the recorded text, NULL: no network. */
static int network_begin(struct host *host, struct machine *machine, char *recorded,
                         struct network_start *ret, struct err *err)
{
    int r;

    ret->recorded = recorded;
    ret->user.recorded = recorded;
    if (!recorded)
        return 0;
    r = machine_wait_booted(machine, err); /* routes need a loopback device that is up */
    if (r < 0)
        return r;
    ret->changes = atomic_load(&host->net_changes);
    r = network_policy(host, ret->user.owner, recorded, &ret->policy, err);
    return r < 0
               ? r
               : net_start_begin(host->net, machine, &ret->user, &ret->policy, &ret->pending, err);
}

/* A change of holt.conf or of a ceiling that did not find the network yet is made good. */
static int network_end(struct host *host, struct network_start *start, struct err *err)
{
    bool is_started = start->pending != NULL;
    int r = net_start_end(TAKE_PTR(start->pending), err);

    if (r == 0 && is_started && atomic_load(&host->net_changes) != start->changes)
        user_renew(host, &start->user);
    net_policy_done(&start->policy);
    free(start->recorded);
    return r;
}

int sandbox_network_begin(struct sandbox *sandbox, struct machine *machine,
                          struct network_start *ret, struct err *err)
{
    *ret = (struct network_start){ .user = { .id = sandbox->info.id,
                                             .owner = sandbox->info.owner,
                                             .grants = sandbox->info.secrets } };
    return network_begin(sandbox->host, machine, sandbox_effective(sandbox), ret, err);
}

int sandbox_network_end(struct sandbox *sandbox, struct network_start *start, struct err *err)
{
    return network_end(sandbox->host, start, err);
}

int sandbox_network_start(struct sandbox *sandbox, struct machine *machine, struct err *err)
{
    struct network_start start;
    struct err ignored;
    int r = sandbox_network_begin(sandbox, machine, &start, err);
    int ended = sandbox_network_end(sandbox, &start, r < 0 ? &ignored : err);

    return r < 0 ? r : ended;
}

int machine_network_start(struct machine *machine, const char *owner, const char *recorded,
                          struct err *err)
{
    struct network_start start = { .user = { .id = machine->id, .owner = owner } };
    struct err ignored;
    int r = network_begin(machine->host, machine, recorded ? xstrdup(recorded) : NULL, &start, err);
    int ended = network_end(machine->host, &start, r < 0 ? &ignored : err);

    return r < 0 ? r : ended;
}

/* Gives a running machine the policy that is recorded. The caller runs an operation. */
static int network_renew(struct sandbox *sandbox, struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    cleanup_free char *recorded = sandbox_effective(sandbox);
    const struct net_user user = { sandbox->info.id, sandbox->info.owner, recorded ? recorded : "",
                                   sandbox->info.secrets };
    int r;

    if (!sandbox->machine)
        return 0;
    r = network_policy(sandbox->host, user.owner, recorded, &policy, err);
    if (r == 0)
        r = net_set(sandbox->host->net, sandbox->machine, &user, &policy, err);
    if (r == 0 && sandbox->second)
        r = net_set(sandbox->host->net, sandbox->second, &user, &policy, err);
    return r;
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

    if (r == 0 && !info->secrets && (layer->headers || net_layer_reads_https(layer))) {
        (void)err_set(err, ERR_INVALID,
                      "sandbox '%s' trusts no certificates of this host, which a rule on requests "
                      "inside https needs",
                      info->id);
        r = err_remedy(err, "create a sandbox with such a rule, or with a secret");
    }
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

        user_renew(sandbox->host, &(struct net_user){ sandbox->info.id, sandbox->info.owner,
                                                      recorded, sandbox->info.secrets });
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
