// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "egress/proxy.h"

static struct net_proxy proxy;
static struct proxy_talk talk;

static void start(const char *url, const char *target, uint16_t port)
{
    struct net_address address;
    struct err err = { 0 };

    CHECK(net_proxy_parse(url, &proxy, &err) == 0, "(%s)", err.msg);
    CHECK(net_address_parse(target, &address) == 0);
    proxy_talk_start(&talk, &proxy, &address, port);
}

static void said(const void *data, size_t len)
{
    CHECK(talk.out_len == len && memcmp(talk.out, data, len) == 0);
}

#define SAID(text) said(text, sizeof(text) - 1)
#define TAKE(text) proxy_talk_take(&talk, text, sizeof(text) - 1)

static void socks_asks_for_an_address(void)
{
    start("socks5://h:1", "10.1.2.3", 443);
    SAID("\5\1\0");
    CHECK(TAKE("\5\0") == 2);
    SAID("\5\1\0\1\x0a\1\2\3\1\xbb");
    CHECK(TAKE("\5\0\0\1\0\0\0\0\0\0behind") == 10);
    CHECK(talk.state == PROXY_READY);
    start("socks5://u:secret@h:1", "2001:db8::1", 80);
    SAID("\5\2\0\2");
    CHECK(TAKE("\5\2") == 2);
    SAID("\1\1u\6secret");
    CHECK(TAKE("\1\0") == 2);
    SAID("\5\1\0\4\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\x50");
    CHECK(TAKE("\5\0\0\3\4name\0\0") == 11);
    CHECK(talk.state == PROXY_READY);
    CHECK(TAKE("more") == 0);
}

/* A proxy that asks for a login which it was not given gets none. */
static void socks_fails_with_a_reason(void)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *reason;
        bool blames_target;
    } rows[] = {
        { "\4\0", 2, "it does not speak SOCKS5", false },
        { "\5\2", 2, "it asks for an unknown way to log in", false },
        { "\5\xff", 2, "it asks for a password", false },
        { "\5\0\5\2\0\1", 6, "its rules do not allow the connection", false },
        { "\5\0\5\4\0\1", 6, "it reports: host unreachable", true },
        { "\5\0\5\x63\0\1", 6, "it reports error 99", false },
        { "\5\0\5\0\0\2", 6, "malformed reply", false },
        { "\5\0\4\0\0\1", 6, "malformed reply", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        start("socks5://h:1", "10.1.2.3", 443);
        CHECK(proxy_talk_take(&talk, rows[i].bytes, rows[i].len) == rows[i].len);
        CHECK(talk.state == PROXY_FAILED && talk.blames_target == rows[i].blames_target);
        CHECK_TEXT(talk.reason, rows[i].reason);
    }
}

static void http_asks_for_an_address(void)
{
    start("http://u:p@h:1", "2001:db8::1", 443);
    SAID("CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n"
         "Proxy-Authorization: Basic dTpw\r\n\r\n");
    CHECK(TAKE("HTTP/1.0 200\r\nA: b\r\n\r\nbehind") == 22);
    CHECK(talk.state == PROXY_READY);
    start("http://h:1", "10.1.2.3", 80);
    SAID("CONNECT 10.1.2.3:80 HTTP/1.1\r\nHost: 10.1.2.3:80\r\n\r\n");
    CHECK(TAKE("HTTP/1.1 204 x\r\n\r\n") == 18);
    CHECK(talk.state == PROXY_READY);
}

static void http_fails_with_a_reason(void)
{
    static const struct {
        const char *bytes, *reason;
        bool blames_target;
    } rows[] = {
        { "HTTP/1.1 403 x\r\n\r\n", "it answers HTTP 403", false },
        { "HTTP/1.1 502 x\r\n\r\n", "it answers HTTP 502", true },
        { "HTTP/1.1 100 x\r\n\r\n", "it answers HTTP 100", false },
        { "HTTP/1.1 407 x\r\n\r\n", "it asks for a password (HTTP 407)", false },
        { "HTTP/2.0 200 ", "malformed reply", false },
        { "HTTP/1.1 2000", "malformed reply", false },
        { "HTTP/1.1  200", "malformed reply", false },
        { "\r\n\r\n", "malformed reply", false },
    };
    static char head[PROXY_HEAD_MAX + 100] = "HTTP/1.1 200 x\r\nA: ";

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        start("http://h:1", "10.1.2.3", 443);
        CHECK(proxy_talk_take(&talk, rows[i].bytes, strlen(rows[i].bytes)) ==
              strlen(rows[i].bytes));
        CHECK(talk.state == PROXY_FAILED && talk.blames_target == rows[i].blames_target, "(%s)",
              rows[i].bytes);
        CHECK_TEXT(talk.reason, rows[i].reason);
    }
    memset(head + strlen(head), 'x', sizeof(head) - strlen(head));
    start("http://h:1", "10.1.2.3", 443);
    CHECK(proxy_talk_take(&talk, head, sizeof(head)) == PROXY_HEAD_MAX);
    CHECK_TEXT(talk.reason, "the reply is too long");
    start("http://h:1", "10.1.2.3", 443);
    CHECK(TAKE("HTTP/1.1 200 \0") == 13);
    CHECK_TEXT(talk.reason, "malformed reply");
}

/* The result does not depend on how the bytes come. */
static void bytes_may_come_one_by_one(void)
{
    static const char socks[] = "\5\2\1\0\5\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0after";
    static const char http[] = "HTTP/1.1 200 OK\r\nX: \r\n\r\nafter";
    const struct {
        const char *url, *bytes;
        size_t len;
    } rows[] = { { "socks5://u:p@h:1", socks, sizeof(socks) - 1 },
                 { "http://u:p@h:1", http, sizeof(http) - 1 } };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        size_t used = 0;

        start(rows[i].url, "10.1.2.3", 443);
        while (talk.state == PROXY_TALKING)
            used += proxy_talk_take(&talk, rows[i].bytes + used, 1);
        CHECK(talk.state == PROXY_READY && used == rows[i].len - strlen("after"));
    }
}

static void the_longest_login_fits(void)
{
    struct net_address address;
    struct err err = { 0 };
    char text[NET_PROXY_LOGIN_MAX + 1];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    CHECK(net_address_parse("2001:db8:1111:2222:3333:4444:5555:6666", &address) == 0);
    for (int i = 0; i < 2; i++) {
        start(i ? "http://h:1" : "socks5://h:1", "10.1.2.3", 443);
        CHECK(net_proxy_login(&proxy, text, text, &err) == 0);
        proxy_talk_start(&talk, &proxy, &address, 65535);
        if (i == 0)
            CHECK(TAKE("\5\2") == 2);
        CHECK(talk.state == PROXY_TALKING && talk.out_len > 2 * NET_PROXY_LOGIN_MAX);
    }
}

int main(void)
{
    RUN(socks_asks_for_an_address);
    RUN(socks_fails_with_a_reason);
    RUN(http_asks_for_an_address);
    RUN(http_fails_with_a_reason);
    RUN(bytes_may_come_one_by_one);
    RUN(the_longest_login_fits);
    return 0;
}
