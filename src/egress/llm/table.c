// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/xalloc.h"
#include "egress/egress_internal.h"
#include "egress/llm/llm.h"
#include "egress/secret/needle.h"
#include "egress/tls/trust.h"

static int provider_read(struct llm_table *table, json_t *json, struct llm_provider *ret)
{
    const char *name, *kind, *host, *prefix, *key, *owner, *authorities = NULL;
    struct net_proxy target = { .kind = NET_PROXY_HTTP };
    int port, is_tls;

    if (json_unpack(json, "{s:s, s:s, s:s, s:i, s:b, s:s, s:s, s:s, s?:s}", "name", &name, "kind",
                    &kind, "host", &host, "port", &port, "tls", &is_tls, "prefix", &prefix, "key",
                    &key, "owner", &owner, "authorities", &authorities) < 0)
        return -EPROTO;
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    (void)snprintf(ret->owner, sizeof(ret->owner), "%s", owner);
    (void)snprintf(ret->prefix, sizeof(ret->prefix), "%s", prefix);
    (void)snprintf(ret->key, sizeof(ret->key), "%s", key);
    (void)snprintf(target.host, sizeof(target.host), "%s", host);
    if (strlen(key) >= LLM_KEY_MIN) {
        ret->needles = needles_new();
        needles_add(ret->needles, key, strlen(key), 0);
        needles_ready(ret->needles);
    }
    ret->kind = strcmp(kind, "anthropic") == 0 ? PROVIDER_ANTHROPIC : PROVIDER_OPENAI;
    ret->is_tls = is_tls;
    target.port = (uint16_t)port;
    if (net_address_parse(host, &target.address) < 0)
        target.address = (struct net_address){ .family = AF_UNSPEC };
    if (strcmp(host, "localhost") == 0) /* name servers do not know it */
        (void)net_address_parse("127.0.0.1", &target.address);
    (void)upstream_set(table->egress, &ret->upstream, &target);
    if (is_tls)
        ret->trust = trust_new(authorities ? -ENOENT : table->egress->trust_fd, authorities);
    return 0;
}

static int model_read(const struct llm_table *table, json_t *json, struct llm_model *ret)
{
    const char *name, *upstream;
    json_int_t provider, max_output;

    if (json_unpack(json, "{s:s, s:s, s:I, s:I}", "name", &name, "upstream", &upstream, "provider",
                    &provider, "maxOutput", &max_output) < 0 ||
        provider < 0 || (size_t)provider >= table->provider_count)
        return -EPROTO;
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    (void)snprintf(ret->upstream, sizeof(ret->upstream), "%s", upstream);
    ret->provider = (size_t)provider;
    ret->max_output = (uint64_t)max_output;
    return 0;
}

int llm_table_read(struct egress *egress, const json_t *json)
{
    const json_t *providers = json_object_get(json, "providers");
    const json_t *models = json_object_get(json, "models");
    struct llm_table *table = xcalloc(1, sizeof(*table));
    int r = 0;

    table->egress = egress;
    table->users = 1;
    table->providers = xcalloc(json_array_size(providers) + 1, sizeof(*table->providers));
    table->models = xcalloc(json_array_size(models) + 1, sizeof(*table->models));
    for (size_t i = 0; r == 0 && i < json_array_size(providers); i++)
        r = provider_read(table, json_array_get(providers, i),
                          &table->providers[table->provider_count++]);
    for (size_t i = 0; r == 0 && i < json_array_size(models); i++)
        r = model_read(table, json_array_get(models, i), &table->models[table->model_count++]);
    llm_table_unref(egress->llm);
    egress->llm = table;
    return r;
}

struct llm_table *llm_table_ref(struct llm_table *table)
{
    table->users++;
    return table;
}

void llm_table_unref(struct llm_table *table)
{
    if (!table || --table->users > 0)
        return;
    for (size_t i = 0; i < table->provider_count; i++) {
        (void)upstream_set(table->egress, &table->providers[i].upstream, NULL);
        trust_free(table->providers[i].trust);
        needles_free(table->providers[i].needles);
        explicit_bzero(table->providers[i].key, sizeof(table->providers[i].key));
    }
    free(table->providers);
    free(table->models);
    free(table);
}

void llm_table_tick(struct llm_table *table)
{
    for (size_t i = 0; table && i < table->provider_count; i++)
        upstream_tick(table->providers[i].upstream);
}
