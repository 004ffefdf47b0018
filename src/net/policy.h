/* What a sandbox may reach. A policy is up to four layers, and all of them must allow a request.
 * Used by holtd, which checks and keeps policies, and by holt-net, which decides with them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"
#include "net/rule.h"

struct err;

enum net_mode {
    NET_NONE,  /* nothing */
    NET_OPEN,  /* public addresses, and what rules allow */
    NET_ALLOW, /* only what rules allow; nothing if there is none */
    NET_ANY,   /* of holt.conf only: public and private addresses, and what rules allow */
};

/* Where a layer comes from. Only holt.conf can allow what belongs to the host. */
enum net_source { NET_FROM_CONFIG, NET_FROM_OWNER, NET_FROM_TEMPLATE, NET_FROM_SANDBOX };

enum {
    NET_LAYERS_MAX = 4,
    NET_RULES_MAX = 1024,           /* of one list */
    NET_LAYER_BYTES_MAX = 24 << 10, /* of the texts of one layer's rules */
    NET_VERDICT_SIZE = NET_RULE_MAX + 100,
    NET_MODELS_SIZE = 1024,
    NET_CA_BUNDLE_MAX = 16 << 10,
    NET_MODEL_NAME_MAX = 128,
};

struct net_rules {
    struct net_rule *items;
    size_t count;
};

struct net_proxy;

struct net_layer {
    enum net_source source;
    enum net_mode mode;
    bool allow_wins; /* as in E2B's lists; else deny wins */
    bool inspects;   /* the first bytes are looked at even where no rule needs it, for the log */
    struct net_rules allow;
    struct net_rules deny;
    size_t bytes;
    struct net_proxy *proxy;      /* connections that are allowed go through it; NULL: none */
    json_t *headers;              /* set on requests, see host/secret/header.h; NULL: none */
    char *ca_bundle;              /* PEM: servers may have certificates of these; NULL: none */
    char models[NET_MODELS_SIZE]; /* that it may use, separated by blanks; "all"; "": none */
};

struct net_policy {
    size_t count;
    struct net_layer layers[NET_LAYERS_MAX];
};

enum net_protocol {
    NET_UNKNOWN, /* no byte was seen yet: allowed if one of the protocols would be */
    NET_TCP,     /* neither TLS nor HTTP */
    NET_TLS,     /* the name is that of the ClientHello */
    NET_HTTP,    /* plain; the name is that of the Host header */
    NET_HTTPS,   /* in TLS that Holt ends; without a method: allowed if some request would be */
    NET_DNS,     /* a query for the name; address and port are not used */
};

struct net_request {
    const char *name; /* NULL: none is known */
    struct net_address address;
    bool is_own_address; /* one of the host's own, which the caller knows */
    uint16_t port;
    enum net_protocol protocol;
    const char *method; /* of NET_HTTP and NET_HTTPS; NULL: not known yet */
    const char *path;   /* with the query or without */
};

struct net_verdict {
    bool is_allowed;
    enum net_source source;      /* the layer that decided */
    char text[NET_VERDICT_SIZE]; /* its rule or the reason: "allow *.example.com (sandbox)" */
};

/* Returns "none", "open", "allow", "any". */
const char *net_mode_name(enum net_mode mode);
/* Parses "none", "open" or "allow". Fails with ERR_INVALID. */
int net_mode_parse(const char *text, enum net_mode *ret, struct err *err);
/* Returns "holt.conf", "owner", "template", "sandbox". */
const char *net_source_name(enum net_source source);

/* Add a rule to a layer. Fail with ERR_INVALID for a rule that cannot be compiled, and with
 * ERR_EXHAUSTED beyond the limits; the layer is then unchanged. A rule that is there already is not
 * added twice. */
int net_layer_allow(struct net_layer *layer, const char *rule, struct err *err);
int net_layer_deny(struct net_layer *layer, const char *rule, struct err *err);

/* Removes a rule, which is found by its one spelling; false if there is none. */
bool net_layer_remove(struct net_layer *layer, const char *rule);

/* Sets the proxy, which is copied; NULL removes it. */
void net_layer_set_proxy(struct net_layer *layer, const struct net_proxy *proxy);

/* Sets the headers, to which the layer keeps a reference: they must not change; NULL removes them.
 */
void net_layer_set_headers(struct net_layer *layer, json_t *headers);

/* Sets the certificates of servers; NULL removes them. */
void net_layer_set_ca_bundle(struct net_layer *layer, const char *pem);

void net_layer_copy(const struct net_layer *layer, struct net_layer *ret);
void net_layer_done(struct net_layer *layer);

/* Writes a layer as {"from","mode","allow":[],"deny":[],"allowWins","proxy","inspect","models",
 * "headers","caBundle"}, and reads it back. The proxy is there with its login, so the result is for
 * the registry and holt-net only. Reading fails with ERR_INVALID for anything it does not know. */
json_t *net_layer_to_json(const struct net_layer *layer);
int net_layer_from_json(const json_t *json, struct net_layer *ret, struct err *err);

/* Takes a layer over into a policy; the layer is then empty. Fails with ERR_EXHAUSTED. */
int net_policy_add(struct net_policy *policy, struct net_layer *layer, struct err *err);
void net_policy_copy(const struct net_policy *policy, struct net_policy *ret);
void net_policy_done(struct net_policy *policy);

/* Write and read {"layers":[...]}. */
json_t *net_policy_to_json(const struct net_policy *policy);
int net_policy_from_json(const json_t *json, struct net_policy *ret, struct err *err);

/* Returns the mode that all layers together amount to; NET_NONE for a policy without layers. */
enum net_mode net_policy_mode(const struct net_policy *policy);

/* Decides a request. Everything that is not explicitly allowed is denied, also a name that is not
 * valid. The verdict says which rule of which layer decided. */
void net_policy_decide(const struct net_policy *policy, const struct net_request *request,
                       struct net_verdict *ret);

/* Returns whether any rule of a layer is about requests inside TLS. */
bool net_layer_reads_https(const struct net_layer *layer);

/* Returns whether a rule is about requests inside TLS to this name, which Holt must then end. */
bool net_policy_reads_https(const struct net_policy *policy, const char *name, uint16_t port);

/* Adds the name of a model to a layer; "all" stands for every one that its owner may use. Fails
 * with ERR_INVALID or ERR_EXHAUSTED. */
int net_layer_add_model(struct net_layer *layer, const char *name, struct err *err);

/* Returns the models of the sandbox's own layer; "": none. */
const char *net_policy_models(const struct net_policy *policy);

/* Returns whether a model is in such a list. */
bool net_models_have(const char *models, const char *name);

/* Returns the proxy of the layer nearest to the sandbox that has one; NULL: none. */
const struct net_proxy *net_policy_proxy(const struct net_policy *policy);

/* Decides whether the proxy of a sandbox may be dialed at an address. The layers above the sandbox
 * must allow it, and an address that is not public needs a rule for its range in holt.conf. */
void net_policy_decide_proxy(const struct net_policy *policy, const struct net_request *request,
                             struct net_verdict *ret);

/* Decides whether a name may be resolved, before anything is sent. Returns verdict->is_allowed. */
bool net_policy_allows_name(const struct net_policy *policy, const char *name,
                            struct net_verdict *ret);

/* Calls fn for each range that an allow rule of a layer names, for routes that are there without a
 * name. A range may come more than once; whether it is reachable is decided per connection. */
typedef void (*net_range_fn)(void *data, const struct net_prefix *range);
void net_policy_each_range(const struct net_policy *policy, net_range_fn fn, void *data);
