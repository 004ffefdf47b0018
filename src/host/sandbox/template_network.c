// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/template_network.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/core/host_internal.h"
#include "host/registry/registry.h"
#include "store/template/settings.h"
#include "store/template/template.h"

#define FIELD "network"

int template_network_read(struct host *host, const char *store_name, struct net_layer *ret,
                          bool *ret_has, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    int r = template_settings_read(host->store, store_name, &settings, err);

    *ret = (struct net_layer){ .source = NET_FROM_TEMPLATE };
    *ret_has = r == 0 && settings.network;
    if (!*ret_has)
        return r;
    r = net_layer_from_json(settings.network, ret, err);
    if (r == 0)
        ret->source = NET_FROM_TEMPLATE;
    return r < 0 ? err_wrap(err, "the network of template '%.64s'", store_name) : 0;
}

int template_network_write(struct host *host, const char *store_name, const struct net_layer *layer,
                           struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings old = { .object = NULL },
                                                                  new = { .object = NULL };
    cleanup_json json_t *object = NULL;
    int r = template_settings_read(host->store, store_name, &old, err);

    if (r < 0)
        return r;
    object = json_deep_copy(old.object);
    if (layer)
        (void)json_object_set_new(object, FIELD, net_layer_to_json(layer));
    else
        (void)json_object_del(object, FIELD);
    r = template_settings_parse(object, &new, err);
    return r == 0 ? template_settings_write(host->store, store_name, &new, err) : r;
}

bool template_network_is_default(struct host *host, const char *store_name, const char *owner)
{
    struct template_record record;
    struct err ignored;

    if (strncmp(store_name, TEMPLATE_MADE_PREFIX, strlen(TEMPLATE_MADE_PREFIX)) != 0)
        return true; /* root's */
    return registry_get_template(host->registry, store_name, &record, &ignored) == 1 &&
           strcmp(record.owner, owner) == 0;
}
