// SPDX-License-Identifier: Apache-2.0
/* Policies: layers, the ranges that need more than a name, and a comparison with a model. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "check.h"
#include "net/policy.h"

static struct net_verdict verdict;

static struct net_address address(const char *text)
{
    struct net_address ret;

    CHECK(net_address_parse(text, &ret) == 0, "(%s)", text);
    return ret;
}

/* Adds a layer; the rules are separated by blanks, denied ones begin with '!'. */
static void add(struct net_policy *policy, enum net_source source, enum net_mode mode,
                const char *rules)
{
    struct net_layer layer = { .source = source, .mode = mode };
    char copy[1000], *rest = NULL;
    struct err err = { 0 };

    (void)snprintf(copy, sizeof(copy), "%s", rules);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        int r = *word == '!' ? net_layer_deny(&layer, word + 1, &err)
                             : net_layer_allow(&layer, word, &err);

        CHECK(r == 0, "%s", err.msg);
    }
    CHECK(net_policy_add(policy, &layer, &err) == 0, "%s", err.msg);
}

static bool reaches(const struct net_policy *policy, const char *name, const char *to,
                    uint16_t port)
{
    net_policy_decide(policy,
                      &(struct net_request){ .name = name,
                                             .address = address(to),
                                             .port = port,
                                             .protocol = name ? NET_TLS : NET_TCP },
                      &verdict);
    return verdict.is_allowed;
}

static void nothing_is_allowed_without_a_layer_or_a_rule(void)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };

    CHECK(!reaches(&policy, "a.test", "1.1.1.1", 443));
    CHECK(!net_policy_allows_name(&policy, "a.test", &verdict));
    CHECK(net_policy_mode(&policy) == NET_NONE);
    add(&policy, NET_FROM_SANDBOX, NET_ALLOW, "");
    CHECK(!reaches(&policy, "a.test", "1.1.1.1", 443));
    CHECK(!net_policy_allows_name(&policy, "a.test", &verdict));
    CHECK_TEXT(verdict.text, "no rule allows this name (sandbox)");
    CHECK(net_policy_mode(&policy) == NET_ALLOW);
}

static void a_verdict_names_the_rule(void)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };

    add(&policy, NET_FROM_OWNER, NET_OPEN, "!bad.test");
    add(&policy, NET_FROM_SANDBOX, NET_ALLOW, "*.test");
    CHECK(reaches(&policy, "a.test", "1.1.1.1", 443));
    CHECK_TEXT(verdict.text, "allow *.test (sandbox)");
    CHECK(!reaches(&policy, "BAD.test.", "1.1.1.1", 443));
    CHECK_TEXT(verdict.text, "deny bad.test (owner)");
    CHECK(!reaches(&policy, "a.other", "1.1.1.1", 443));
    CHECK_TEXT(verdict.text, "no rule allows this (sandbox)");
    CHECK(!net_policy_allows_name(&policy, "bad.test", &verdict));
    CHECK(net_policy_allows_name(&policy, "x.y.test", &verdict));
}

static void a_name_never_leads_to_an_address_that_is_not_public(void)
{
    static const char *const addresses[] = {
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "169.254.1.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "100.100.100.200",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:a00:1::",
        "2002:7f00:1::1",
        "192.0.2.53",
        "198.18.0.1",
        "240.0.0.1",
        "2001:db8::1",
        "64:ff9b:1::1",
        "2001::1",
        "fec0::1",
        "::7f00:1",
    };
    cleanup_with(net_policy_done) struct net_policy open = { 0 }, allow = { 0 };

    add(&open, NET_FROM_CONFIG, NET_ANY, "");
    add(&open, NET_FROM_SANDBOX, NET_OPEN, "a.test * *.test tcp://a.test:443");
    add(&allow, NET_FROM_CONFIG, NET_ANY, "a.test");
    add(&allow, NET_FROM_SANDBOX, NET_ALLOW, "a.test * tcp://a.test:443");
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        CHECK(!reaches(&open, "a.test", addresses[i], 443), "(%s)", addresses[i]);
        CHECK(!reaches(&open, NULL, addresses[i], 443), "(%s)", addresses[i]);
        CHECK(!reaches(&allow, "a.test", addresses[i], 443), "(%s)", addresses[i]);
    }
    CHECK(reaches(&open, "a.test", "1.1.1.1", 443) && reaches(&open, NULL, "2606:4700::1", 9));
    CHECK(reaches(&allow, "a.test", "2606:4700::1", 443));
}

static void a_range_allows_private_addresses_where_every_layer_has_it(void)
{
    cleanup_with(net_policy_done) struct net_policy one = { 0 }, two = { 0 }, both = { 0 };

    add(&one, NET_FROM_CONFIG, NET_ANY, "");
    add(&one, NET_FROM_SANDBOX, NET_OPEN, "10.0.0.0/8:5432");
    CHECK(reaches(&one, NULL, "10.1.1.1", 5432) && reaches(&one, "db.test", "10.1.1.1", 5432));
    CHECK(!reaches(&one, NULL, "10.1.1.1", 80));
    add(&two, NET_FROM_OWNER, NET_OPEN, "");
    add(&two, NET_FROM_SANDBOX, NET_OPEN, "10.0.0.0/8");
    CHECK(!reaches(&two, NULL, "10.1.1.1", 80));
    CHECK_TEXT(verdict.text, "private address without a rule for its range (owner)");
    add(&both, NET_FROM_OWNER, NET_OPEN, "10.1.0.0/16");
    add(&both, NET_FROM_SANDBOX, NET_ALLOW, "10.0.0.0/8");
    CHECK(reaches(&both, NULL, "10.1.1.1", 80) && !reaches(&both, NULL, "10.2.1.1", 80));
}

static void a_wide_range_means_the_internet(void)
{
    static const char *const addresses[] = { "10.1.1.1", "192.168.1.4",     "100.64.0.1",
                                             "fd00::1",  "2002:a01:101::1", "64:ff9b::10.1.1.1" };
    cleanup_with(net_policy_done) struct net_policy wide = { 0 }, narrow = { 0 };

    add(&wide, NET_FROM_CONFIG, NET_ANY, "");
    add(&wide, NET_FROM_SANDBOX, NET_ALLOW,
        "0.0.0.0/0 [::/0] 8.0.0.0/5 192.0.0.0/8 [fc00::/6] [2002::/16] [64:ff9b::/96]");
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
        CHECK(!reaches(&wide, NULL, addresses[i], 443), "(%s)", addresses[i]);
    CHECK(reaches(&wide, NULL, "8.8.8.8", 443) && reaches(&wide, NULL, "2606:4700::1", 443));
    CHECK(reaches(&wide, NULL, "2002:808:808::1", 443));
    add(&narrow, NET_FROM_CONFIG, NET_ANY, "");
    add(&narrow, NET_FROM_SANDBOX, NET_ALLOW,
        "10.0.0.0/8 192.168.0.0/16 100.64.0.0/10 [fc00::/7] [2002:a00::/24] [64:ff9b::a00:0/104]");
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
        CHECK(reaches(&narrow, NULL, addresses[i], 443), "(%s)", addresses[i]);
}

static void a_range_of_holt_conf_does_not_allow_the_host_itself(void)
{
    cleanup_with(net_policy_done) struct net_policy range = { 0 }, exact = { 0 };
    struct net_request own = { .port = 7070, .is_own_address = true };

    own.address = address("192.168.1.4");
    add(&range, NET_FROM_CONFIG, NET_ALLOW, "192.168.0.0/16");
    add(&range, NET_FROM_SANDBOX, NET_ALLOW, "192.168.0.0/16");
    net_policy_decide(&range, &own, &verdict);
    CHECK(!verdict.is_allowed);
    CHECK(reaches(&range, NULL, "192.168.1.5", 7070));
    add(&exact, NET_FROM_CONFIG, NET_ALLOW, "192.168.1.4:7070");
    add(&exact, NET_FROM_SANDBOX, NET_ALLOW, "192.168.0.0/16");
    net_policy_decide(&exact, &own, &verdict);
    CHECK(verdict.is_allowed);
}

static void only_holt_conf_allows_what_belongs_to_the_host(void)
{
    cleanup_with(net_policy_done) struct net_policy below = { 0 }, with = { 0 };
    struct net_request own = { .address = { 0 }, .port = 7070, .is_own_address = true };

    own.address = address("8.8.8.8");
    add(&below, NET_FROM_CONFIG, NET_ANY, "");
    add(&below, NET_FROM_OWNER, NET_OPEN, "169.254.169.254 127.0.0.0/8 0.0.0.0/0");
    add(&below, NET_FROM_TEMPLATE, NET_OPEN, "169.254.169.254 127.0.0.0/8 0.0.0.0/0");
    add(&below, NET_FROM_SANDBOX, NET_OPEN, "169.254.169.254 127.0.0.0/8 0.0.0.0/0");
    CHECK(!reaches(&below, NULL, "169.254.169.254", 80));
    CHECK_TEXT(verdict.text, "metadata service, which needs a rule in holt.conf");
    CHECK(!reaches(&below, NULL, "127.0.0.1", 7070));
    net_policy_decide(&below, &own, &verdict);
    CHECK(!verdict.is_allowed);
    CHECK_TEXT(verdict.text, "address of this host, which needs a rule in holt.conf");

    add(&with, NET_FROM_CONFIG, NET_ANY, "169.254.169.254:80 8.8.8.8:7070 224.0.0.0/4");
    add(&with, NET_FROM_SANDBOX, NET_OPEN, "");
    CHECK(!reaches(&with, NULL, "169.254.169.254", 80)); /* the sandbox must ask for it */
    net_policy_done(&with);
    add(&with, NET_FROM_CONFIG, NET_ANY, "169.254.169.254:80 8.8.8.8:7070 224.0.0.0/4");
    add(&with, NET_FROM_SANDBOX, NET_OPEN, "169.254.169.254 8.8.8.8 224.0.0.0/4");
    CHECK(reaches(&with, NULL, "169.254.169.254", 80));
    CHECK(!reaches(&with, NULL, "169.254.169.254", 81));
    net_policy_decide(&with, &own, &verdict);
    CHECK(verdict.is_allowed);
    CHECK(!reaches(&with, NULL, "224.0.0.1", 80)); /* no rule allows multicast */
}

static void deny_wins_except_in_a_list_of_e2b(void)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };

    add(&policy, NET_FROM_SANDBOX, NET_OPEN, "1.1.1.1 a.test !0.0.0.0/0 ![::/0]");
    CHECK(!reaches(&policy, NULL, "1.1.1.1", 53) && !reaches(&policy, NULL, "9.9.9.9", 53));
    CHECK(!net_policy_allows_name(&policy, "a.test", &verdict));
    policy.layers[0].allow_wins = true;
    CHECK(reaches(&policy, NULL, "1.1.1.1", 53) && !reaches(&policy, NULL, "9.9.9.9", 53));
    CHECK(reaches(&policy, "a.test", "9.9.9.9", 443) &&
          !reaches(&policy, "b.test", "9.9.9.9", 443));
    CHECK(net_policy_allows_name(&policy, "a.test", &verdict));
    CHECK(!net_policy_allows_name(&policy, "b.test", &verdict)); /* names are egress too */
    add(&policy, NET_FROM_OWNER, NET_OPEN, "!1.1.1.0/24");
    CHECK(!reaches(&policy, NULL, "1.1.1.1", 53)); /* but not against another layer */
}

static void names_that_are_no_names_are_denied(void)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    static const char *const names[] = {
        "",         ".",     "a..b",       "a b",     "127.1",  "0x7f.1",   "2130706433", "a\001b",
        "\xd0\xb0", "[::1]", "a.test:443", "-a.test", "*.test", "a.test/b", "1.1.1.1"
    };

    add(&policy, NET_FROM_SANDBOX, NET_OPEN, "* *.test");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CHECK(!reaches(&policy, names[i], "1.1.1.1", 443), "(%s)", names[i]);
        CHECK(!net_policy_allows_name(&policy, names[i], &verdict), "(%s)", names[i]);
    }
}

static void a_policy_survives_its_json(void)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 }, again = { 0 }, copy = { 0 };
    cleanup_json json_t *json = NULL, *other = NULL;
    struct err err = { 0 };

    add(&policy, NET_FROM_CONFIG, NET_ANY, "169.254.169.254:80");
    add(&policy, NET_FROM_SANDBOX, NET_ALLOW, "*.a.test http://b.test/x !c.test");
    policy.layers[1].allow_wins = true;
    json = net_policy_to_json(&policy);
    CHECK(net_policy_from_json(json, &again, &err) == 0, "%s", err.msg);
    other = net_policy_to_json(&again);
    CHECK(json_equal(json, other));
    net_policy_copy(&again, &copy);
    CHECK(copy.count == 2 && copy.layers[1].allow.count == 2 && copy.layers[1].allow_wins);
    CHECK(copy.layers[0].mode == NET_ANY && copy.layers[0].source == NET_FROM_CONFIG);
}

static void json_of_others_is_refused(void)
{
    static const char *const texts[] = {
        "{\"layers\":[{\"mode\":\"allow\",\"allow\":[\"a b\"]}]}",
        "{\"layers\":[{\"mode\":\"maybe\"}]}",
        "{\"layers\":[{}]}",
        "{\"layers\":[{\"mode\":\"any\"}]}", /* only holt.conf may say that */
        "{\"layers\":[{\"mode\":\"open\",\"from\":\"elsewhere\"}]}",
        "{\"layers\":[{\"mode\":\"open\",\"permit\":[]}]}",
        "{\"layers\":[{\"mode\":\"open\",\"allow\":[1]}]}",
        "{\"layers\":[{\"mode\":\"open\",\"allow\":\"a.test\"}]}",
        "{\"layers\":{}}",
        ("{\"layers\":[{\"mode\":\"none\"},{\"mode\":\"none\"},{\"mode\":\"none\"},"
         "{\"mode\":\"none\"},{\"mode\":\"none\"}]}"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        cleanup_json json_t *json = NULL;
        struct net_policy policy = { 0 };
        struct err err = { 0 };

        CHECK(json_parse_object(texts[i], strlen(texts[i]), &json, &err) == 0, "%s", err.msg);
        CHECK(net_policy_from_json(json, &policy, &err) < 0, "(%s)", texts[i]);
        CHECK(err.msg[0]);
    }
}

static void lists_are_bounded(void)
{
    cleanup_with(net_layer_done) struct net_layer layer = { .mode = NET_ALLOW };
    struct err err = { 0 };
    char rule[300];
    int r = 0, count = 0;

    for (; r == 0 && count < 2000; count++) {
        (void)snprintf(rule, sizeof(rule), "h%d.test", count);
        r = net_layer_allow(&layer, rule, &err);
    }
    CHECK(r < 0 && err.kind == ERR_EXHAUSTED && layer.allow.count == NET_RULES_MAX);
    CHECK(net_layer_allow(&layer, "h1.test", &err) == 0); /* is there already */
    CHECK(layer.allow.count == NET_RULES_MAX);
    CHECK(net_layer_remove(&layer, "H1.test.") && !net_layer_remove(&layer, "h1.test"));
    CHECK(net_layer_allow(&layer, "not a rule", &err) == -EINVAL);
    net_layer_done(&layer);
    for (r = 0, count = 0; r == 0 && count < 1000; count++) {
        (void)snprintf(rule, sizeof(rule), "%060d.%060d.%060d.h%d.test", 0, 0, 0, count);
        r = net_layer_deny(&layer, rule, &err);
    }
    CHECK(r < 0 && err.kind == ERR_EXHAUSTED, "%s", err.msg);
    CHECK(layer.bytes <= NET_LAYER_BYTES_MAX);
}

/* --- a model ---------------------------------------------------------------------------------
 *
 * Written from docs/network.md, over a small world in which every question can be asked: names as
 * lists of labels, addresses as one of few. It shares no code with the policy. */

enum { WORLD_NAMES = 5, WORLD_ADDRESSES = 6, WORLD_PORTS = 4, WORLD_RULES = 12 };

static const char *const world_names[WORLD_NAMES] = { NULL, "x.test", "a.x.test", "b.a.x.test",
                                                      "ax.test" };
static const struct {
    const char *text;
    int special; /* 0: public, 1: private, 2: the host's, 3: never */
} world_addresses[WORLD_ADDRESSES] = { { "1.1.1.1", 0 },   { "10.0.0.1", 1 }, { "127.0.0.1", 2 },
                                       { "224.0.0.1", 3 }, { "2606::1", 0 },  { "fe80::1", 2 } };
static const uint16_t world_ports[WORLD_PORTS] = { 80, 443, 22, 8080 };
static const enum net_protocol world_protocols[] = { NET_TCP, NET_TLS, NET_HTTP };

/* What a rule names: bits of names and addresses, ports and protocols. */
static const struct model_rule {
    const char *text;
    unsigned names, addresses;          /* bit N: world_names[N], world_addresses[N] */
    unsigned allow_ports, deny_ports;   /* bit N: world_ports[N] */
    unsigned protocols, deny_protocols; /* bits of TCP, TLS, HTTP */
    bool is_raw;                        /* TCP that is neither, on ports 80 and 443 too */
    bool is_wide;                       /* wider than the ranges that are not public */
} world_rules[WORLD_RULES] = {
    { "x.test", 0x2, 0, 0x3, 0xf, 7, 7, false, false },
    { "*.x.test", 0xc, 0, 0x3, 0xf, 7, 7, false, false },
    { "*", 0x1e, 0, 0x3, 0xf, 7, 7, false, false },
    { "x.test:22", 0x2, 0, 0x4, 0x4, 7, 7, false, false },
    { "*.test:443,8080", 0x1e, 0, 0xa, 0xa, 7, 7, false, false },
    { "https://a.x.test", 0x4, 0, 0x2, 0x2, 2, 2, false, false },
    { "http://*.x.test:80-8080", 0xc, 0, 0xb, 0xb, 4, 4, false, false },
    { "tcp://x.test:443", 0x2, 0, 0x2, 0x2, 7, 7, true, false },
    { "0.0.0.0/0", 0, 0xf, 0xf, 0xf, 7, 7, true, true },
    { "10.0.0.0/8:80", 0, 0x2, 0x1, 0x1, 7, 7, true, false },
    { "[::/0]:443", 0, 0x30, 0x2, 0x2, 7, 7, true, true },
    { "127.0.0.1", 0, 0x4, 0xf, 0xf, 7, 7, true, false },
};

struct model_layer {
    enum net_source source;
    enum net_mode mode;
    bool allow_wins;
    unsigned allow, deny; /* bits of world_rules */
};

struct model_request {
    unsigned name, address, port, protocol; /* indices */
};

static bool model_rule_matches(const struct model_rule *rule, const struct model_request *request,
                               bool is_deny)
{
    bool is_web = world_ports[request->port] == 80 || world_ports[request->port] == 443;
    bool is_plain = world_protocols[request->protocol] == NET_TCP;

    if (rule->names ? !(rule->names >> request->name & 1)
                    : !(rule->addresses >> request->address & 1))
        return false;
    /* http://...:80-8080 covers 443 as well. */
    if (!((is_deny ? rule->deny_ports : rule->allow_ports) >> request->port & 1))
        return false;
    if (!(rule->protocols >> request->protocol & 1))
        return false;
    return is_deny || rule->is_raw || !is_plain || !is_web;
}

static bool model_any(unsigned rules, const struct model_request *request, bool is_deny,
                      bool needs_range)
{
    for (unsigned i = 0; i < WORLD_RULES; i++) {
        if ((rules >> i & 1) &&
            !(needs_range && (world_rules[i].names || world_rules[i].is_wide)) &&
            model_rule_matches(&world_rules[i], request, is_deny))
            return true;
    }
    return false;
}

static bool model_layer_allows(const struct model_layer *layer, const struct model_request *request)
{
    int special = world_addresses[request->address].special;
    bool is_named = model_any(layer->allow, request, false, special > 0);

    if (layer->mode == NET_NONE)
        return false;
    if (model_any(layer->deny, request, true, false) && !(layer->allow_wins && is_named))
        return false;
    return is_named || (layer->mode == NET_OPEN && special == 0) ||
           (layer->mode == NET_ANY && special <= 1);
}

static bool model_allows(const struct model_layer *layers, size_t count,
                         const struct model_request *request)
{
    int special = world_addresses[request->address].special;
    bool has_config = false, all = count > 0;

    for (size_t i = 0; i < count; i++) {
        has_config = has_config || (layers[i].source == NET_FROM_CONFIG &&
                                    model_any(layers[i].allow, request, false, true));
        all = all && model_layer_allows(&layers[i], request);
    }
    return all && special < 3 && (special < 2 || has_config);
}

static unsigned chance(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245 + 12345;
    return (*seed >> 16) % below;
}

static void model_layer_make(unsigned *seed, size_t index, struct model_layer *model,
                             struct net_layer *layer)
{
    struct err err = { 0 };

    *model = (struct model_layer){ .source = (enum net_source)index,
                                   .mode = (enum net_mode)chance(seed, index == 0 ? 4 : 3),
                                   .allow_wins = chance(seed, 4) == 0 };
    *layer = (struct net_layer){ .source = model->source,
                                 .mode = model->mode,
                                 .allow_wins = model->allow_wins };
    for (unsigned i = 0; i < WORLD_RULES; i++) {
        unsigned what = chance(seed, 8);

        if (what < 2)
            CHECK(net_layer_allow(layer, world_rules[i].text, &err) == 0, "%s", err.msg);
        else if (what == 2)
            CHECK(net_layer_deny(layer, world_rules[i].text, &err) == 0, "%s", err.msg);
        model->allow |= (what < 2) << i;
        model->deny |= (what == 2) << i;
    }
}

static void model_compare(const struct net_policy *policy, const struct model_layer *layers,
                          unsigned seed)
{
    enum { REQUESTS = WORLD_NAMES * WORLD_ADDRESSES * WORLD_PORTS * 3 };

    for (unsigned i = 0; i < REQUESTS; i++) {
        struct model_request request = { i % WORLD_NAMES, i / WORLD_NAMES % WORLD_ADDRESSES,
                                         i / WORLD_NAMES / WORLD_ADDRESSES % WORLD_PORTS,
                                         i / WORLD_NAMES / WORLD_ADDRESSES / WORLD_PORTS };
        bool wanted = model_allows(layers, policy->count, &request);

        net_policy_decide(
            policy,
            &(struct net_request){ .name = world_names[request.name],
                                   .address = address(world_addresses[request.address].text),
                                   .port = world_ports[request.port],
                                   .protocol = world_protocols[request.protocol] },
            &verdict);
        CHECK(verdict.is_allowed == wanted, "(seed %u: %s %s:%u protocol %u: wanted %d, got %s)",
              seed, world_names[request.name] ? world_names[request.name] : "-",
              world_addresses[request.address].text, world_ports[request.port],
              world_protocols[request.protocol], wanted, verdict.text);
    }
}

static void decisions_are_those_of_a_model(void)
{
    for (unsigned round = 0; round < 3000; round++) {
        cleanup_with(net_policy_done) struct net_policy policy = { 0 };
        struct model_layer layers[NET_LAYERS_MAX];
        unsigned seed = round;
        size_t count = 1 + chance(&seed, NET_LAYERS_MAX);

        for (size_t i = 0; i < count; i++) {
            struct net_layer layer;
            struct err err = { 0 };

            model_layer_make(&seed, i, &layers[i], &layer);
            CHECK(net_policy_add(&policy, &layer, &err) == 0, "%s", err.msg);
        }
        model_compare(&policy, layers, round);
    }
}

int main(void)
{
    RUN(nothing_is_allowed_without_a_layer_or_a_rule);
    RUN(a_verdict_names_the_rule);
    RUN(a_name_never_leads_to_an_address_that_is_not_public);
    RUN(a_range_allows_private_addresses_where_every_layer_has_it);
    RUN(a_wide_range_means_the_internet);
    RUN(a_range_of_holt_conf_does_not_allow_the_host_itself);
    RUN(only_holt_conf_allows_what_belongs_to_the_host);
    RUN(deny_wins_except_in_a_list_of_e2b);
    RUN(names_that_are_no_names_are_denied);
    RUN(a_policy_survives_its_json);
    RUN(json_of_others_is_refused);
    RUN(lists_are_bounded);
    RUN(decisions_are_those_of_a_model);
    (void)puts("ok: all");
    return 0;
}
