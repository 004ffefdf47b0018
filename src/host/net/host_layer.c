// SPDX-License-Identifier: Apache-2.0
#include "host/net/host_layer.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "host/core/config.h"
#include "host/core/host_internal.h"
#include "host/llm/llm.h"
#include "host/net/net.h"
#include "host/net/upstream.h"

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
    if (host->llm && llm_configure(host->llm, config, &err) < 0)
        log_error("the models stay as they were: %s", err.msg);
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

void network_host_layer(struct host *host, struct net_layer *ret)
{
    lock_scope(&host->lock);

    net_layer_copy(host->net_config, ret);
}

bool network_has_host_rules(struct host *host)
{
    cleanup_with(net_layer_done) struct net_layer config = { 0 };

    network_host_layer(host, &config);
    return config.mode == NET_ALLOW;
}
