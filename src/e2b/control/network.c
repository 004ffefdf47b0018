// SPDX-License-Identifier: Apache-2.0
#include "e2b/control/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "e2b/control/network_rules.h"
#include "e2b/core/e2b.h"
#include "host/sandbox/network.h"
#include "host/secret/header.h"
#include "net/policy.h"
#include "net/proxy.h"

#define EVERYTHING "0.0.0.0/0"

enum { RULES_MAX = 1000 };

/* Clients use either spelling; what is stored has the first one. */
static const struct spelling {
    const char *name, *other;
} spellings[] = {
    { "allowOut", "allow_out" },
    { "denyOut", "deny_out" },
    { "allowPublicTraffic", "allow_public_traffic" },
    { "maskRequestHost", "mask_request_host" },
    { "httpsPorts", "https_ports" },
    { "egressProxy", "egress_proxy" },
    { "caBundle", "ca_bundle" },
};

/* Returns a field under either spelling; NULL: absent or null. */
static const json_t *network_field(const json_t *network, const char *name)
{
    const json_t *value = json_field(network, name);

    for (size_t i = 0; !value && i < ARRAY_SIZE(spellings); i++)
        if (strcmp(spellings[i].name, name) == 0)
            value = json_field(network, spellings[i].other);
    return value;
}

/* "10.0.0.1" or "10.0.0.0/8", of either family. */
static bool is_range(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char address[INET6_ADDRSTRLEN];
    size_t len = strcspn(text, "/");
    uint64_t bits = 0;
    bool is_v4;

    if (len >= sizeof(address))
        return false;
    (void)snprintf(address, sizeof(address), "%.*s", (int)len, text);
    is_v4 = inet_pton(AF_INET, address, bytes) == 1;
    if (!is_v4 && inet_pton(AF_INET6, address, bytes) != 1)
        return false;
    return text[len] == '\0' ||
           (parse_u64(text + len + 1, &bits) == 0 && bits <= (is_v4 ? 32U : 128U));
}

static bool has_everything(const json_t *list)
{
    size_t index;
    json_t *value;

    json_array_foreach((json_t *)(uintptr_t)list, index, value) {
        if (strcmp(json_string_value(value), EVERYTHING) == 0)
            return true;
    }
    return false;
}

/* A list of texts, each a range or, where that is allowed, a name. */
static int list_check(const json_t *list, const char *field, bool may_name, struct err *err)
{
    size_t index;
    json_t *value;

    if (json_array_size(list) > RULES_MAX)
        return err_set(err, ERR_INVALID, "network.%s has more than %d entries", field, RULES_MAX);
    json_array_foreach((json_t *)(uintptr_t)list, index, value) {
        const char *text = json_string_value(value);

        if (!text)
            return err_set(err, ERR_INVALID, "network.%s must be a list of texts", field);
        if (is_range(text))
            continue;
        if (strcmp(field, "denyOut") == 0)
            return err_set(err, ERR_INVALID, "invalid denied CIDR %.100s", text);
        if (!may_name)
            return err_set(err, ERR_INVALID,
                           "when specifying allowed domains in allow out, you must include "
                           "'" EVERYTHING "' in deny out to block all other traffic");
    }
    return 0;
}

/* Reads {"address","username","password"} or a URL. Returns whether there is a proxy in *ret. */
static int proxy_read(const json_t *value, struct net_proxy *ret, bool *ret_is_there,
                      struct err *err)
{
    const char *address = json_string_value(value), *user = NULL, *password = NULL;
    int r = 0;

    *ret_is_there = value != NULL;
    if (!value)
        return 0;
    if (!address) {
        r = json_is_object(value) ? json_get_text(value, "address", &address, err)
                                  : err_set(err, ERR_INVALID, "egressProxy must be an object");
        if (r == 0)
            r = json_get_text(value, "username", &user, err);
        if (r == 0)
            r = json_get_text(value, "password", &password, err);
    }
    if (r == 0 && !address)
        r = err_set(err, ERR_INVALID, "egressProxy needs an address");
    if (r == 0)
        r = net_proxy_parse_address(address, ret, err);
    if (r == 0 && (user || password))
        r = net_proxy_login(ret, user ? user : "", password ? password : "", err);
    return r < 0 ? err_wrap(err, "network.egressProxy") : 0;
}

/* Reads a list under either spelling. */
static int list_read(const json_t *network, const char *name, const json_t **ret, struct err *err)
{
    *ret = network_field(network, name);
    if (!*ret || json_is_array(*ret))
        return 0;
    return err_set(err, ERR_INVALID, "network.%s must be a list", name);
}

/* Certificates that servers may have, as PEM. */
static int bundle_check(const json_t *network, struct err *err)
{
    const json_t *value = network_field(network, "caBundle");

    if (!value)
        return 0;
    if (!json_is_string(value))
        return err_set(err, ERR_INVALID, "network.caBundle must be a text");
    return secret_ca_bundle_check(json_string_value(value), err);
}

int e2b_network_check(const json_t *network, struct err *err)
{
    const json_t *allow = NULL, *deny = NULL, *ignored = NULL;
    const char *mask = NULL;
    struct net_proxy proxy;
    bool is_public, has_proxy;
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++)
        if (json_object_get(network, spellings[i].name) &&
            json_object_get(network, spellings[i].other))
            return err_set(err, ERR_INVALID, "network has both %s and %s", spellings[i].name,
                           spellings[i].other);
    r = list_read(network, "denyOut", &deny, err);
    if (r == 0)
        r = list_read(network, "allowOut", &allow, err);
    if (r == 0)
        r = json_get_bool(network, "allowPublicTraffic", &is_public, err);
    if (r == 0)
        r = json_get_text(network, "maskRequestHost", &mask, err);
    if (r == 0)
        r = json_get_object(network, "rules", &ignored, err);
    if (r == 0)
        r = list_check(deny, "denyOut", false, err);
    if (r == 0)
        r = list_check(allow, "allowOut", has_everything(deny), err);
    if (r == 0)
        r = bundle_check(network, err);
    return r == 0 ? proxy_read(network_field(network, "egressProxy"), &proxy, &has_proxy, err) : r;
}

int e2b_network_internet(const json_t *body, bool *ret, struct err *err)
{
    bool by_name = true, by_other = true;
    int r = json_get_bool(body, "allowInternetAccess", &by_name, err);

    if (r == 0)
        r = json_get_bool(body, "allow_internet_access", &by_other, err);
    *ret = by_name && by_other;
    return r;
}

/* Adds an entry of a list; E2B ignores the bits of a range behind its prefix. */
static int entry_add(struct net_layer *layer, const char *text, bool is_deny, struct err *err)
{
    char range[NET_PREFIX_TEXT_SIZE], rule[NET_PREFIX_TEXT_SIZE + 2];
    struct net_prefix prefix;

    if (is_range(text) && net_prefix_parse(text, &prefix) != -EINVAL) {
        net_prefix_format(&prefix, range);
        (void)snprintf(rule, sizeof(rule), strchr(range, ':') ? "[%s]" : "%s", range);
        text = rule;
    }
    return is_deny ? net_layer_deny(layer, text, err) : net_layer_allow(layer, text, err);
}

static int list_add(struct net_layer *layer, const json_t *list, bool is_deny, struct err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        r = entry_add(layer, json_string_value(json_array_get(list, i)), is_deny, err);
    return r;
}

/* What is done to requests inside TLS. */
static int https_fill(const struct e2b_request *request, const char *owner, const json_t *network,
                      struct net_layer *layer, struct err *err)
{
    const char *bundle = json_string_value(network_field(network, "caBundle"));
    int r = e2b_rules_fill(request, owner, json_field(network, "rules"), layer, err);

    if (r == 0)
        net_layer_set_ca_bundle(layer, bundle);
    return r;
}

int e2b_network_layer(const struct e2b_request *request, const char *owner, const json_t *network,
                      bool wants_internet, struct net_layer *ret, struct err *err)
{
    struct host *host = request->host;
    cleanup_with(net_layer_done) struct net_layer layer = { .source = NET_FROM_SANDBOX,
                                                            .allow_wins = true };
    const json_t *allow = network_field(network, "allowOut");
    const json_t *deny = network_field(network, "denyOut");
    bool is_closed = !wants_internet || has_everything(deny), has_proxy = false;
    struct net_proxy proxy;
    int r = list_add(&layer, allow, false, err);

    if (r == 0)
        r = proxy_read(network_field(network, "egressProxy"), &proxy, &has_proxy, err);
    /* All that is denied is what mode allow leaves out; it also leaves out the names. */
    if (r == 0 && !is_closed)
        r = list_add(&layer, deny, true, err);
    if (r == 0)
        r = https_fill(request, owner, network, &layer, err);
    if (r < 0)
        return r;
    layer.mode = is_closed ? NET_ALLOW : NET_OPEN;
    if (layer.mode == NET_OPEN && !network_may_have(host, owner, NET_OPEN))
        layer.mode = NET_ALLOW;
    if (layer.mode == NET_ALLOW &&
        (layer.allow.count == 0 || !network_may_have(host, owner, NET_ALLOW)))
        layer.mode = NET_NONE;
    if (has_proxy && layer.mode != NET_NONE)
        net_layer_set_proxy(&layer, &proxy);
    *ret = layer;
    layer = (struct net_layer){ 0 };
    return 0;
}

/* Returns what is shown of a proxy: its address, and the user name if that was given apart. */
static json_t *proxy_shown(const json_t *value)
{
    json_t *shown = json_object(), *user = json_field(value, "username");
    char url[NET_PROXY_SHOW_SIZE];
    struct net_proxy proxy = { .port = 0 };
    struct err ignored;
    bool is_there;

    if (proxy_read(value, &proxy, &is_there, &ignored) < 0 || !is_there)
        return shown;
    net_proxy_show(&proxy, url);
    (void)json_object_set_new(
        shown, "address",
        json_string(proxy.kind == NET_PROXY_SOCKS5 ? strstr(url, "://") + 3 : url));
    if (user)
        (void)json_object_set(shown, "username", user);
    return shown;
}

json_t *e2b_network_copy(const json_t *network)
{
    json_t *copy = network ? json_deep_copy(network) : json_object();
    json_t *proxy;

    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
        json_t *value = json_object_get(copy, spellings[i].other);

        if (!value)
            continue;
        (void)json_object_set(copy, spellings[i].name, value);
        (void)json_object_del(copy, spellings[i].other);
    }
    (void)json_object_del(copy, "caBundle");
    if (json_field(copy, "rules"))
        (void)json_object_set_new(copy, "rules", e2b_rules_shown(json_field(copy, "rules")));
    proxy = json_field(copy, "egressProxy");
    if (proxy)
        (void)json_object_set_new(copy, "egressProxy", proxy_shown(proxy));
    return copy;
}
