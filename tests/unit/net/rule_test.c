// SPDX-License-Identifier: Apache-2.0
/* Rules: one spelling, refusals with a reason, and what each matches. */
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "net/policy.h"
#include "net/rule.h"

static void parses_to(const char *text, const char *wanted)
{
    struct net_rule rule, again;
    struct err err = { 0 };

    CHECK(net_rule_parse(text, &rule, &err) == 0, "(%s: %s)", text, err.msg);
    CHECK_TEXT(rule.text, wanted);
    CHECK(net_rule_parse(rule.text, &again, &err) == 0, "(%s: %s)", rule.text, err.msg);
    CHECK_TEXT(again.text, wanted);
}

static void is_refused(const char *text, const char *reason)
{
    struct net_rule rule;
    struct err err = { 0 };

    CHECK(net_rule_parse(text, &rule, &err) < 0, "(%s is accepted as %s)", text, rule.text);
    CHECK(err.kind == ERR_INVALID && strstr(err.msg, reason), "(%s: %s)", text, err.msg);
}

static void a_rule_has_one_spelling(void)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "example.com", "example.com" },
        { "EXAMPLE.Com.", "example.com" },
        { "*.Example.com.", "*.example.com" },
        { "*", "*" },
        { "_dmarc.example.com", "_dmarc.example.com" },
        { "xn--bcher-kva.example", "xn--bcher-kva.example" },
        { "localhost", "localhost" },
        { "https://example.com", "https://example.com" },
        { "HTTPS://example.com:443", "https://example.com" },
        { "https://example.com:8443", "https://example.com:8443" },
        { "example.com:443", "example.com:443" },
        { "example.com:80,443,8000-8100", "example.com:80,443,8000-8100" },
        { "example.com:1-65535", "example.com:*" },
        { "example.com:*", "example.com:*" },
        { "ssh://github.com", "tcp://github.com:22" },
        { "tcp://db.example.com:5432", "tcp://db.example.com:5432" },
        { "10.0.0.0/8", "10.0.0.0/8" },
        { "10.1.2.3", "10.1.2.3" },
        { "10.1.2.3/32", "10.1.2.3" },
        { "10.0.0.0/8:5432", "10.0.0.0/8:5432" },
        { "0.0.0.0/0", "0.0.0.0/0" },
        { "::/0", "[::/0]" },
        { "[::/0]", "[::/0]" },
        { "2001:DB8::/32", "[2001:db8::/32]" },
        { "[2001:db8::1]:443", "[2001:db8::1]:443" },
        { "::ffff:10.0.0.0/104", "10.0.0.0/8" },
        { "::ffff:10.1.2.3", "10.1.2.3" },
        { "[::ffff:0:0/96]", "0.0.0.0/0" },
        { "http://example.com/v1/*", "http://example.com/v1/*" },
        { "GET http://example.com/", "GET http://example.com/" },
        { "POST http://10.0.0.1:8080/api/**", "POST http://10.0.0.1:8080/api/**" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        parses_to(cases[i].text, cases[i].wanted);
}

static void what_cannot_be_compiled_is_refused(void)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        { "", "empty" },
        { " ", "empty" },
        { ".", "empty" },
        { "a..b", "empty label" },
        { ".example.com", "empty label" },
        { "example.com..", "empty label" },
        { "-a.example", "'-'" },
        { "a-.example", "'-'" },
        { "a b.example", "may follow the host" },
        { "exa\001mple.com", "control" },
        { "exa\tmple.com", "control" },
        { "b\xc3\xbc"
          "cher.example",
          "punycode" },
        { "\xd0\xb0pple.com", "punycode" },
        { "a*.example.com", "stands only at the start" },
        { "*.*.com", "stands only at the start" },
        { "foo.*.com", "stands only at the start" },
        { "**.example.com", "stands only at the start" },
        { "*.", "empty" },
        { "*example.com", "stands only at the start" },
        { "127.1", "notation" },
        { "2130706433", "notation" },
        { "0x7f000001", "notation" },
        { "0x7f.0.0.1", "notation" },
        { "0177.0.0.1", "notation" },
        { "010.0.0.1", "notation" },
        { "1.2.3.4.5", "notation" },
        { "256.1.1.1", "notation" },
        { "1.2.3.4.", "notation" },
        { "*.1", "notation" },
        { "10.0.0.1/8", "write 10.0.0.0/8" },
        { "2001:db8::1/32", "write 2001:db8::/32" },
        { "10.0.0.0/33", "not an address" },
        { "10.0.0.0/08", "not an address" },
        { "::/129", "not an address" },
        { "::ffff:0:0/95", "not an address" },
        { "[::1", "']' is missing" },
        { "[example.com]", "not an address" },
        { "fe80::1%eth0", "not an address" },
        { "example.com:", "a port is" },
        { "example.com:0", "a port is" },
        { "example.com:0443", "a port is" },
        { "example.com:65536", "a port is" },
        { "example.com:+80", "a port is" },
        { "example.com:80,", "a port is" },
        { "example.com:90-80", "FIRST-LAST" },
        { "example.com:80-", "FIRST-LAST" },
        { "example.com:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "more than 16" },
        { "udp://example.com:53", "scheme must be" },
        { "://example.com", "scheme must be" },
        { "tcp://example.com", "needs a port" },
        { "https://10.0.0.0/8/v1", "needs the name" },
        { "GET https://*", "needs the name" },
        { "GET example.com", "needs http://" },
        { "example.com/v1", "needs http://" },
        { "http://example.com/a?b", "query" },
        { "http://example.com/../a", "'..'" },
        { "http://example.com//a", "empty segment" },
        { "http://example.com/%2e", "character" },
        { "http://user@example.com", "character" },
    };
    char long_name[500];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        is_refused(cases[i].text, cases[i].reason);
    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    is_refused(long_name, "longer");
    long_name[64] = '\0';
    is_refused(long_name, "63");
}

static bool allows(const char *text, struct net_request request)
{
    struct net_rule rule;
    struct err err = { 0 };

    CHECK(net_rule_parse(text, &rule, &err) == 0, "%s", err.msg);
    return net_rule_allows(&rule, &request);
}

static bool denies(const char *text, struct net_request request)
{
    struct net_rule rule;
    struct err err = { 0 };

    CHECK(net_rule_parse(text, &rule, &err) == 0, "%s", err.msg);
    return net_rule_denies(&rule, &request);
}

static struct net_address address(const char *text)
{
    struct net_address ret;

    CHECK(net_address_parse(text, &ret) == 0, "(%s)", text);
    return ret;
}

static void a_wildcard_needs_a_label_in_front(void)
{
    struct net_request request = { .port = 443, .protocol = NET_TLS };

    request.name = "a.example.com";
    CHECK(allows("*.example.com", request));
    request.name = "a.b.example.com";
    CHECK(allows("*.example.com", request));
    request.name = "example.com";
    CHECK(!allows("*.example.com", request));
    request.name = "badexample.com";
    CHECK(!allows("*.example.com", request) && !allows("example.com", request));
    request.name = "example.com.evil.test";
    CHECK(!allows("*.example.com", request) && !allows("example.com", request));
    request.name = NULL;
    CHECK(!allows("*", request) && !allows("*.example.com", request));
}

static void a_name_without_ports_is_for_the_web(void)
{
    struct net_request request = { .name = "a.test", .port = 443, .protocol = NET_TLS };

    CHECK(allows("a.test", request));
    request.protocol = NET_TCP; /* no name in the bytes: another host may be behind the address */
    CHECK(!allows("a.test", request) && !allows("a.test:443", request));
    CHECK(allows("tcp://a.test:443", request));
    request.port = 22;
    CHECK(!allows("a.test", request) && allows("a.test:22", request) &&
          allows("ssh://a.test", request));
    request.port = 80;
    request.protocol = NET_HTTP;
    CHECK(allows("a.test", request) && allows("http://a.test", request));
    CHECK(!allows("https://a.test", request));
    request.protocol = NET_TLS;
    CHECK(!allows("http://a.test", request));
}

static void a_deny_rule_without_ports_is_for_all(void)
{
    struct net_request request = { .name = "a.test", .port = 22, .protocol = NET_TCP };

    CHECK(denies("a.test", request) && denies("*", request) && !denies("b.test", request));
    CHECK(!denies("a.test:443", request) && denies("a.test:1-100", request));
    CHECK(!denies("https://a.test:22", request));
    request.address = address("64:ff9b::a00:1");
    CHECK(denies("10.0.0.0/8", request) && !allows("10.0.0.0/8:22", request));
    request.address = address("2002:a00:1::");
    CHECK(denies("10.0.0.0/8", request));
}

static void families_are_kept_apart(void)
{
    struct net_request request = { .port = 1, .protocol = NET_TCP };

    request.address = address("::ffff:10.0.0.1");
    CHECK(allows("10.0.0.0/8", request) && !allows("::/0", request));
    request.address = address("2001:db8::1");
    CHECK(allows("::/0", request) && !allows("0.0.0.0/0", request));
    request.address = address("10.255.255.255");
    CHECK(allows("10.0.0.0/8", request));
    request.address = address("11.0.0.0");
    CHECK(!allows("10.0.0.0/8", request));
}

static void paths_are_compared_as_servers_read_them(void)
{
    struct net_request request = { .name = "a.test",
                                   .port = 80,
                                   .protocol = NET_HTTP,
                                   .method = "GET",
                                   .path = "/v1/items?x=/v2" };

    CHECK(allows("http://a.test/v1/*", request) && allows("GET http://a.test", request));
    CHECK(!allows("POST http://a.test", request) && !allows("http://a.test/v1", request));
    request.path = "/v1/a/b";
    CHECK(!allows("http://a.test/v1/*", request) && allows("http://a.test/v1/**", request));
    CHECK(allows("http://a.test/**/b", request) && allows("http://a.test/*/a/*", request));
    request.path = "/%761/items";
    CHECK(allows("http://a.test/v1/*", request));
    for (size_t i = 0; i < 7; i++) {
        static const char *const odd[] = { "/v1/../admin", "/v1/%2e%2e/admin", "/v1//a",
                                           "/v1/..;x/a",   "/v1/a%2fb",        "/v1/a%5cb",
                                           "/v1/%zz" };

        request.path = odd[i];
        CHECK(!allows("http://a.test/v1/**", request), "(%s)", odd[i]);
        CHECK(denies("http://a.test/other", request), "(%s)", odd[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        static const char *const same[] = { "/V1/a", "/v1;x=y/a", "/v1/%41;" };

        request.path = same[i];
        CHECK(denies("http://a.test/v1/*", request), "(%s)", same[i]);
    }
    request.method = "Get";
    CHECK(denies("GET http://a.test", request) && !allows("GET http://a.test", request));
}

/* At the ClientHello no method is known; each request is then decided with its own. */
static void requests_inside_tls_are_decided_one_by_one(void)
{
    struct net_request request = { .name = "api.example.com", .port = 443, .protocol = NET_HTTPS };
    struct net_rule rule;
    struct err err = { 0 };

    CHECK(net_rule_parse("GET https://api.example.com/v1/*", &rule, &err) == 0);
    CHECK(net_rule_reads_https(&rule, "api.example.com", 443));
    CHECK(!net_rule_reads_https(&rule, "api.example.com", 8443));
    CHECK(!net_rule_reads_https(&rule, "example.com", 443));
    CHECK(net_rule_allows(&rule, &request) && !net_rule_denies(&rule, &request));
    request.method = "GET";
    request.path = "/v1/x";
    CHECK(net_rule_allows(&rule, &request) && net_rule_denies(&rule, &request));
    request.path = "/v2/x";
    CHECK(!net_rule_allows(&rule, &request) && !net_rule_denies(&rule, &request));
    request.path = "/v1/x";
    request.method = "POST";
    CHECK(!net_rule_allows(&rule, &request) && !net_rule_denies(&rule, &request));
    /* TLS that is passed on unread could be any request. */
    request.protocol = NET_TLS;
    request.method = request.path = NULL;
    CHECK(!net_rule_allows(&rule, &request) && net_rule_denies(&rule, &request));
    CHECK(net_rule_parse("https://api.example.com", &rule, &err) == 0);
    CHECK(!net_rule_reads_https(&rule, "api.example.com", 443));
}

int main(void)
{
    RUN(requests_inside_tls_are_decided_one_by_one);
    RUN(a_rule_has_one_spelling);
    RUN(what_cannot_be_compiled_is_refused);
    RUN(a_wildcard_needs_a_label_in_front);
    RUN(a_name_without_ports_is_for_the_web);
    RUN(a_deny_rule_without_ports_is_for_all);
    RUN(families_are_kept_apart);
    RUN(paths_are_compared_as_servers_read_them);
    (void)puts("ok: all");
    return 0;
}
