// SPDX-License-Identifier: Apache-2.0
#include "net/policy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "net/proxy.h"

static const char *const mode_names[] = {
    [NET_NONE] = "none", [NET_OPEN] = "open", [NET_ALLOW] = "allow", [NET_ANY] = "any"
};
static const char *const source_names[] = { [NET_FROM_CONFIG] = "holt.conf",
                                            [NET_FROM_OWNER] = "owner",
                                            [NET_FROM_TEMPLATE] = "template",
                                            [NET_FROM_SANDBOX] = "sandbox" };

const char *net_mode_name(enum net_mode mode)
{
    return mode_names[mode];
}

int net_mode_parse(const char *text, enum net_mode *ret, struct err *err)
{
    for (enum net_mode mode = NET_NONE; mode <= NET_ALLOW; mode++) {
        if (strcmp(text, mode_names[mode]) == 0) {
            *ret = mode;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "network mode '%.40s' is not none, open or allow", text);
}

const char *net_source_name(enum net_source source)
{
    return source_names[source];
}

static bool rules_have(const struct net_rules *rules, const char *text)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (strcmp(rules->items[i].text, text) == 0)
            return true;
    }
    return false;
}

static int rules_add(struct net_layer *layer, struct net_rules *rules, const char *text,
                     struct err *err)
{
    struct net_rule rule;
    int r = net_rule_parse(text, &rule, err);

    if (r < 0 || rules_have(rules, rule.text))
        return r;
    if (rules->count == NET_RULES_MAX)
        return err_set(err, ERR_EXHAUSTED, "a list has at most %d rules", NET_RULES_MAX);
    if (layer->bytes + strlen(rule.text) > NET_LAYER_BYTES_MAX)
        return err_set(err, ERR_EXHAUSTED, "the rules are longer than %d bytes together",
                       NET_LAYER_BYTES_MAX);
    rules->items = xreallocarray(rules->items, rules->count + 1, sizeof(*rules->items));
    rules->items[rules->count++] = rule;
    layer->bytes += strlen(rule.text);
    return 0;
}

int net_layer_allow(struct net_layer *layer, const char *rule, struct err *err)
{
    return rules_add(layer, &layer->allow, rule, err);
}

int net_layer_deny(struct net_layer *layer, const char *rule, struct err *err)
{
    return rules_add(layer, &layer->deny, rule, err);
}

static bool rules_remove(struct net_layer *layer, struct net_rules *rules, const char *text)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (strcmp(rules->items[i].text, text) != 0)
            continue;
        layer->bytes -= strlen(text);
        memmove(rules->items + i, rules->items + i + 1,
                (rules->count - i - 1) * sizeof(*rules->items));
        rules->count--;
        return true;
    }
    return false;
}

bool net_layer_remove(struct net_layer *layer, const char *rule)
{
    struct net_rule parsed;
    struct err ignored = { 0 };
    bool was_allowed, was_denied;

    if (net_rule_parse(rule, &parsed, &ignored) < 0)
        return false;
    was_allowed = rules_remove(layer, &layer->allow, parsed.text);
    was_denied = rules_remove(layer, &layer->deny, parsed.text);
    return was_allowed || was_denied;
}

static void rules_copy(const struct net_rules *rules, struct net_rules *ret)
{
    ret->count = rules->count;
    ret->items = NULL;
    if (rules->count == 0)
        return;
    ret->items = xreallocarray(NULL, rules->count, sizeof(*rules->items));
    memcpy(ret->items, rules->items, rules->count * sizeof(*rules->items));
}

void net_layer_copy(const struct net_layer *layer, struct net_layer *ret)
{
    *ret = *layer;
    rules_copy(&layer->allow, &ret->allow);
    rules_copy(&layer->deny, &ret->deny);
    ret->proxy = NULL;
    net_layer_set_proxy(ret, layer->proxy);
    ret->headers = json_incref(layer->headers);
    ret->ca_bundle = layer->ca_bundle ? xstrdup(layer->ca_bundle) : NULL;
}

void net_layer_set_proxy(struct net_layer *layer, const struct net_proxy *proxy)
{
    struct net_proxy *copy = NULL;

    if (proxy) {
        copy = xcalloc(1, sizeof(*copy));
        *copy = *proxy;
    }
    free(layer->proxy);
    layer->proxy = copy;
}

void net_layer_set_headers(struct net_layer *layer, json_t *headers)
{
    json_decref(layer->headers);
    layer->headers = json_incref(headers);
}

void net_layer_set_ca_bundle(struct net_layer *layer, const char *pem)
{
    free(layer->ca_bundle);
    layer->ca_bundle = pem ? xstrdup(pem) : NULL;
}

void net_layer_done(struct net_layer *layer)
{
    free(layer->allow.items);
    free(layer->deny.items);
    free(layer->proxy);
    json_decref(layer->headers);
    free(layer->ca_bundle);
    *layer = (struct net_layer){ 0 };
}

static json_t *rules_to_json(const struct net_rules *rules)
{
    json_t *list = json_array();

    for (size_t i = 0; i < rules->count; i++)
        (void)json_array_append_new(list, json_string(rules->items[i].text));
    return list;
}

json_t *net_layer_to_json(const struct net_layer *layer)
{
    json_t *json = json_pack("{s:s,s:s,s:o,s:o}", "from", net_source_name(layer->source), "mode",
                             net_mode_name(layer->mode), "allow", rules_to_json(&layer->allow),
                             "deny", rules_to_json(&layer->deny));

    if (layer->allow_wins)
        (void)json_object_set_new(json, "allowWins", json_true());
    if (layer->proxy) {
        cleanup_free char *url = net_proxy_format(layer->proxy);

        (void)json_object_set_new(json, "proxy", json_string(url));
    }
    if (layer->inspects)
        (void)json_object_set_new(json, "inspect", json_true());
    if (layer->models[0])
        (void)json_object_set_new(json, "models", json_string(layer->models));
    if (layer->headers)
        (void)json_object_set(json, "headers", layer->headers);
    if (layer->ca_bundle)
        (void)json_object_set_new(json, "caBundle", json_string(layer->ca_bundle));
    return json;
}

static int source_parse(const char *text, enum net_source *ret, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(source_names); i++) {
        if (strcmp(text, source_names[i]) == 0) {
            *ret = (enum net_source)i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "'%.40s' is not where a network policy comes from", text);
}

static int rules_from_json(const json_t *json, const char *field, struct net_layer *layer,
                           struct err *err)
{
    struct net_rules *rules = strcmp(field, "allow") == 0 ? &layer->allow : &layer->deny;
    const json_t *list = NULL;
    int r = json_get_array(json, field, &list, err);

    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));

        if (!text)
            return err_set(err, ERR_INVALID, "%s must be a list of rules", field);
        r = rules_add(layer, rules, text, err);
    }
    return r;
}

static int models_from_json(const json_t *json, struct net_layer *layer, struct err *err)
{
    const char *text = NULL;
    int r = json_get_text(json, "models", &text, err);

    if (r < 0 || !text)
        return r;
    if (strlen(text) >= sizeof(layer->models))
        return err_set(err, ERR_INVALID, "the list of models is too long");
    (void)snprintf(layer->models, sizeof(layer->models), "%s", text);
    return 0;
}

static int https_from_json(const json_t *json, struct net_layer *layer, struct err *err)
{
    const json_t *headers = NULL;
    const char *bundle = NULL;
    int r = json_get_array(json, "headers", &headers, err);

    if (r == 0)
        r = json_get_text(json, "caBundle", &bundle, err);
    if (r < 0)
        return r;
    if (bundle && strlen(bundle) > NET_CA_BUNDLE_MAX)
        return err_set(err, ERR_INVALID, "caBundle is longer than %d bytes", NET_CA_BUNDLE_MAX);
    net_layer_set_headers(layer, (json_t *)(uintptr_t)headers);
    net_layer_set_ca_bundle(layer, bundle);
    return 0;
}

static int proxy_from_json(const json_t *json, struct net_layer *layer, struct err *err)
{
    const char *text = NULL;
    struct net_proxy proxy;
    int r = json_get_text(json, "proxy", &text, err);

    if (r < 0 || !text)
        return r;
    r = net_proxy_parse(text, &proxy, err);
    if (r == 0)
        net_layer_set_proxy(layer, &proxy);
    return r;
}

int net_layer_from_json(const json_t *json, struct net_layer *ret, struct err *err)
{
    static const char *const fields[] = { "from",      "mode",     "allow",   "deny",
                                          "allowWins", "proxy",    "inspect", "models",
                                          "headers",   "caBundle", NULL };
    cleanup_with(net_layer_done) struct net_layer layer = { .source = NET_FROM_SANDBOX };
    const char *from = NULL, *mode = NULL;
    int r;

    if (!json_is_object(json))
        return err_set(err, ERR_INVALID, "a network policy must be an object");
    r = json_only_fields(json, fields, err);
    if (r == 0)
        r = json_get_text(json, "from", &from, err);
    if (r == 0)
        r = json_get_text(json, "mode", &mode, err);
    if (r == 0)
        r = json_get_bool(json, "allowWins", &layer.allow_wins, err);
    if (r == 0)
        r = json_get_bool(json, "inspect", &layer.inspects, err);
    if (r == 0 && from)
        r = source_parse(from, &layer.source, err);
    if (r == 0 && mode && layer.source == NET_FROM_CONFIG && strcmp(mode, mode_names[NET_ANY]) == 0)
        layer.mode = NET_ANY;
    else if (r == 0)
        r = net_mode_parse(mode ? mode : "", &layer.mode, err);
    if (r == 0)
        r = rules_from_json(json, "allow", &layer, err);
    if (r == 0)
        r = rules_from_json(json, "deny", &layer, err);
    if (r == 0)
        r = proxy_from_json(json, &layer, err);
    if (r == 0)
        r = models_from_json(json, &layer, err);
    if (r == 0)
        r = https_from_json(json, &layer, err);
    if (r < 0)
        return r;
    *ret = layer;
    layer = (struct net_layer){ 0 };
    return 0;
}

int net_policy_add(struct net_policy *policy, struct net_layer *layer, struct err *err)
{
    if (policy->count == NET_LAYERS_MAX)
        return err_set(err, ERR_EXHAUSTED, "a network policy has at most %d layers",
                       NET_LAYERS_MAX);
    policy->layers[policy->count++] = *layer;
    *layer = (struct net_layer){ 0 };
    return 0;
}

void net_policy_copy(const struct net_policy *policy, struct net_policy *ret)
{
    ret->count = policy->count;
    for (size_t i = 0; i < policy->count; i++)
        net_layer_copy(&policy->layers[i], &ret->layers[i]);
}

void net_policy_done(struct net_policy *policy)
{
    for (size_t i = 0; i < policy->count; i++)
        net_layer_done(&policy->layers[i]);
    policy->count = 0;
}

json_t *net_policy_to_json(const struct net_policy *policy)
{
    json_t *layers = json_array();

    for (size_t i = 0; i < policy->count; i++)
        (void)json_array_append_new(layers, net_layer_to_json(&policy->layers[i]));
    return json_pack("{s:o}", "layers", layers);
}

int net_policy_from_json(const json_t *json, struct net_policy *ret, struct err *err)
{
    static const char *const fields[] = { "layers", NULL };
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    const json_t *layers = NULL;
    int r;

    if (!json_is_object(json))
        return err_set(err, ERR_INVALID, "a network policy must be an object");
    r = json_only_fields(json, fields, err);
    if (r == 0)
        r = json_get_array(json, "layers", &layers, err);
    for (size_t i = 0; r == 0 && i < json_array_size(layers); i++) {
        struct net_layer layer;

        r = net_layer_from_json(json_array_get(layers, i), &layer, err);
        if (r == 0)
            r = net_policy_add(&policy, &layer, err);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    *ret = policy;
    policy.count = 0;
    return 0;
}

enum net_mode net_policy_mode(const struct net_policy *policy)
{
    enum net_mode mode = policy->count > 0 ? NET_OPEN : NET_NONE;

    for (size_t i = 0; i < policy->count; i++) {
        if (policy->layers[i].mode == NET_NONE)
            return NET_NONE;
        if (policy->layers[i].mode == NET_ALLOW)
            mode = NET_ALLOW;
    }
    return mode;
}

static bool is_model_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-._:/@";

    return *name && strlen(name) <= NET_MODEL_NAME_MAX && name[strspn(name, letters)] == '\0';
}

int net_layer_add_model(struct net_layer *layer, const char *name, struct err *err)
{
    size_t used = strlen(layer->models), len = strlen(name);

    if (!is_model_name(name))
        return err_set(err, ERR_INVALID,
                       "'%.128s' is no name of a model: letters, digits and -._:/@, at most %d",
                       name, NET_MODEL_NAME_MAX);
    if (net_models_have(layer->models, name))
        return 0;
    if (used + len + 2 > sizeof(layer->models))
        return err_set(err, ERR_EXHAUSTED, "the names of models are longer than %d bytes together",
                       NET_MODELS_SIZE - 2);
    (void)snprintf(layer->models + used, sizeof(layer->models) - used, "%s%s", used ? " " : "",
                   name);
    return 0;
}

bool net_models_have(const char *models, const char *name)
{
    size_t len;

    for (; *models; models += len + (models[len] == ' ')) {
        len = strcspn(models, " ");
        if ((len == 3 && strncmp(models, "all", 3) == 0) ||
            (len == strlen(name) && strncmp(models, name, len) == 0))
            return true;
    }
    return false;
}

const char *net_policy_models(const struct net_policy *policy)
{
    for (size_t i = 0; i < policy->count; i++)
        if (policy->layers[i].source == NET_FROM_SANDBOX)
            return policy->layers[i].models;
    return "";
}

const struct net_proxy *net_policy_proxy(const struct net_policy *policy)
{
    const struct net_proxy *proxy = NULL;

    for (size_t i = 0; i < policy->count; i++)
        if (policy->layers[i].proxy)
            proxy = policy->layers[i].proxy;
    return proxy;
}

void net_policy_each_range(const struct net_policy *policy, net_range_fn fn, void *data)
{
    for (size_t i = 0; i < policy->count; i++) {
        const struct net_rules *allow = &policy->layers[i].allow;

        for (size_t j = 0; j < allow->count; j++) {
            if (allow->items[j].is_range)
                fn(data, &allow->items[j].range);
        }
    }
}
