// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/secret.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "host/core/host_internal.h"
#include "host/sandbox/info.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox.h"
#include "host/secret/grant.h"
#include "host/secret/header.h"
#include "host/secret/secret.h"
#include "net/policy.h"
#include "net/target.h"

static bool host_is_reached(const struct net_policy *policy, const struct secret_host *host)
{
    struct net_verdict verdict = { .is_allowed = false };
    char text[NET_NAME_SIZE + sizeof("https://:65535")];
    struct net_target target;
    struct err ignored;

    if (host->name[0] == '*')
        return true;
    (void)snprintf(text, sizeof(text), "https://%s:%u", host->name, host->port);
    if (net_target_parse(text, "", &target, &ignored) == 0)
        net_target_decide(policy, &target, &verdict);
    return verdict.is_allowed;
}

static int use_check(const struct net_policy *policy, const struct secret_info *info,
                     struct err *err)
{
    const struct secret_host *first = &info->use.hosts[0];

    if (info->use.place == SECRET_IN_AGENT) {
        if (net_policy_mode(policy) != NET_NONE)
            return 0;
        (void)err_set(err, ERR_INVALID, "key '%s' needs a network", info->name);
        return err_remedy(err, "a key does not widen it: add --allow ssh://HOST");
    }
    for (size_t i = 0; i < info->use.host_count; i++)
        if (host_is_reached(policy, &info->use.hosts[i]))
            return 0;
    (void)err_set(err, ERR_INVALID, "the network of the sandbox reaches no host of secret '%s'",
                  info->name);
    return err_remedy(err, "a secret does not widen it: add --allow https://%s:%u", first->name,
                      first->port);
}

static bool policy_reads_https(const struct net_policy *policy)
{
    for (size_t i = 0; i < policy->count; i++)
        if (net_layer_reads_https(&policy->layers[i]))
            return true;
    return false;
}

int sandbox_secrets_fill(struct host *host, const struct sandbox_spec *spec,
                         struct sandbox_info *info, struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    struct secret_grants grants;
    struct secret_info secret;
    int r = secret_grants_make(host, spec->caller, spec->secrets, spec->secret_count,
                               &info->secrets, err);

    if (r < 0 || (!info->secrets && !info->network))
        return r;
    r = network_policy(host, info->owner, info->network, &policy, err);
    if (r == 0 && !info->secrets &&
        (policy_reads_https(&policy) || secret_headers_are_set(info->network)))
        info->secrets = secret_grants_empty();
    secret_grants_read(info->secrets, &grants);
    for (size_t i = 0; r == 0 && i < grants.count; i++) {
        r = secrets_get(host->secrets, grants.items[i].secret, &secret, err);
        if (r == 0)
            r = use_check(&policy, &secret, err);
    }
    return r;
}
