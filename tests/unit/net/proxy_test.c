// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "net/policy.h"
#include "net/proxy.h"

static void parse(const char *text, struct net_proxy *ret)
{
    struct err err = { 0 };

    CHECK(net_proxy_parse(text, ret, &err) == 0, "(%s: %s)", text, err.msg);
}

static void urls_have_one_form(void)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        { "socks5://Proxy.Example.com.:1080", "socks5://proxy.example.com:1080" },
        { "http://10.0.0.1:3128/", "http://10.0.0.1:3128" },
        { "http://[2001:DB8::1]:3128", "http://[2001:db8::1]:3128" },
        { "socks5://[::ffff:10.0.0.1]:1", "socks5://10.0.0.1:1" },
        { "socks5://u:p@h:65535", "socks5://h:65535" },
        { "socks5://u@h:65535", "socks5://h:65535" },
        { "http://u:p@with@at@h:1", "http://h:1" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct net_proxy proxy, again;
        char shown[NET_PROXY_SHOW_SIZE];
        cleanup_free char *url = NULL;

        parse(rows[i].text, &proxy);
        net_proxy_show(&proxy, shown);
        CHECK_TEXT(shown, rows[i].shown);
        url = net_proxy_format(&proxy);
        parse(url, &again);
        CHECK(net_proxy_equal(&proxy, &again), "(%s)", url);
    }
}

static void a_login_may_have_any_byte_but_nul(void)
{
    struct net_proxy proxy, again;
    struct err err = { 0 };
    char user[NET_PROXY_LOGIN_MAX + 2];
    cleanup_free char *url = NULL;

    parse("socks5://a%3Ab:%25%40%ff@h:1", &proxy);
    CHECK_TEXT(proxy.user, "a:b");
    CHECK_TEXT(proxy.password, "%@\xff");
    memset(user, 0xfe, sizeof(user) - 1);
    user[sizeof(user) - 1] = '\0';
    CHECK(net_proxy_login(&proxy, user, "", &err) < 0);
    user[sizeof(user) - 2] = '\0';
    CHECK(net_proxy_login(&proxy, user, user, &err) == 0);
    url = net_proxy_format(&proxy);
    parse(url, &again);
    CHECK(net_proxy_equal(&proxy, &again));
}

static void what_is_no_proxy_is_refused_without_its_password(void)
{
    static const char *const texts[] = {
        "",
        "hunter2",
        "socks5h://u:hunter2@h:1",
        "https://u:hunter2@h:1",
        "socks4://u:hunter2@h:1",
        "socks5://u:hunter2@h",
        "socks5://u:hunter2@h:0",
        "socks5://u:hunter2@h:65536",
        "socks5://u:hunter2@h:1x",
        "socks5://u:hunter2@h:1/x",
        "socks5://u:hunter2@:1",
        "socks5://u:hunter2@a..b:1",
        "socks5://u:hunter2@127.1:1",
        "socks5://u:hunter2@[::1:1",
        "socks5://u:hunter2@::1:1",
        "socks5://u:hunter2@[10.0.0.1]:1",
        "socks5://u:hunter2@[name]:1",
        "socks5://u:hunter2%@h:1",
        "socks5://u:hunter2%4@h:1",
        "socks5://u:hunter2%zz@h:1",
        "socks5://u:hunter2%00@h:1",
        "socks5://:hunter2@h:1",
        "http://a%3Ab:hunter2@h:1",
        "socks5://u:hunter2@h\n:1",
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct net_proxy proxy;
        struct err err = { 0 };

        CHECK(net_proxy_parse(texts[i], &proxy, &err) < 0, "(%s was accepted)", texts[i]);
        CHECK(err.kind == ERR_INVALID && !strstr(err.msg, "hunter2"), "(%s)", err.msg);
    }
}

static void a_layer_keeps_its_proxy(void)
{
    cleanup_with(net_layer_done) struct net_layer layer = { .source = NET_FROM_SANDBOX,
                                                            .mode = NET_OPEN };
    cleanup_with(net_layer_done) struct net_layer copy = { 0 }, again = { 0 };
    struct net_proxy proxy;
    struct err err = { 0 };
    json_t *json;

    parse("socks5://u:p%20q@h.test:1080", &proxy);
    net_layer_set_proxy(&layer, &proxy);
    net_layer_copy(&layer, &copy);
    CHECK(copy.proxy != layer.proxy && net_proxy_equal(copy.proxy, &proxy));
    json = net_layer_to_json(&copy);
    CHECK(net_layer_from_json(json, &again, &err) == 0, "(%s)", err.msg);
    CHECK(net_proxy_equal(again.proxy, &proxy));
    json_decref(json);
    net_layer_set_proxy(&copy, NULL);
    CHECK(!copy.proxy);
}

static bool decide(const struct net_policy *policy, const char *name, const char *address,
                   bool is_own)
{
    struct net_request request = {
        .name = name, .port = 1080, .protocol = NET_TCP, .is_own_address = is_own
    };
    struct net_verdict verdict;

    CHECK(net_address_parse(address, &request.address) == 0);
    net_policy_decide_proxy(policy, &request, &verdict);
    return verdict.is_allowed;
}

/* Mode any of holt.conf lets sandboxes reach private addresses by their rules; the address of a
 * proxy is none of these rules. */
static void the_address_of_a_proxy_is_decided_above_the_sandbox(void)
{
    cleanup_with(net_policy_done) struct net_policy policy = { .count = 2 };
    struct net_layer *config = &policy.layers[0], *own = &policy.layers[1];
    struct err err = { 0 };

    *config = (struct net_layer){ .source = NET_FROM_CONFIG, .mode = NET_ANY };
    *own = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_ALLOW };
    CHECK(net_layer_allow(own, "10.0.0.0/8", &err) == 0 && net_layer_allow(own, "*", &err) == 0);
    CHECK(decide(&policy, NULL, "93.184.216.34", false));
    CHECK(!decide(&policy, NULL, "93.184.216.34", true));
    CHECK(!decide(&policy, "h.test", "10.0.0.1", false));
    CHECK(!decide(&policy, NULL, "127.0.0.1", false));
    CHECK(!decide(&policy, NULL, "169.254.169.254", false));
    CHECK(!decide(&policy, NULL, "224.0.0.1", false));
    CHECK(net_layer_allow(config, "h.test:1080", &err) == 0);
    CHECK(!decide(&policy, "h.test", "10.0.0.1", false)); /* a name says nothing of the address */
    CHECK(net_layer_allow(config, "10.0.0.0/8:1080", &err) == 0);
    CHECK(decide(&policy, "h.test", "10.0.0.1", false));
    CHECK(!decide(&policy, NULL, "10.0.0.1", true));
    CHECK(net_layer_deny(config, "10.0.0.1", &err) == 0);
    CHECK(!decide(&policy, NULL, "10.0.0.1", false));
    config->mode = NET_ALLOW; /* what the host does not name stays out of reach */
    CHECK(!decide(&policy, NULL, "93.184.216.34", false));
    CHECK(decide(&policy, "h.test", "93.184.216.34", false));
    config->mode = NET_NONE;
    CHECK(!decide(&policy, "h.test", "93.184.216.34", false));
}

int main(void)
{
    RUN(urls_have_one_form);
    RUN(a_login_may_have_any_byte_but_nul);
    RUN(what_is_no_proxy_is_refused_without_its_password);
    RUN(a_layer_keeps_its_proxy);
    RUN(the_address_of_a_proxy_is_decided_above_the_sandbox);
    return 0;
}
