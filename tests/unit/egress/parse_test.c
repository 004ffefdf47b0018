// SPDX-License-Identifier: Apache-2.0
/* The bytes that holt-net reads: TLS, HTTP, DNS. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "egress/dns.h"
#include "egress/hello.h"
#include "egress/http_head.h"

/* --- TLS --- */

static void u16_add(struct buf *out, unsigned value)
{
    const uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

    CHECK(buf_add(out, bytes, 2) == 0);
}

/* A ClientHello with a name and another extension, in records of `step` bytes. */
static void hello_make(struct buf *out, const char *name, size_t name_len, unsigned extra,
                       size_t step)
{
    cleanup_with(buf_done) struct buf extensions = BUF_INIT(4096), body = BUF_INIT(4096);
    static const char random[32];
    uint8_t length[4];

    if (name) {
        u16_add(&extensions, 0);
        u16_add(&extensions, (unsigned)name_len + 5);
        u16_add(&extensions, (unsigned)name_len + 3);
        CHECK(buf_add(&extensions, "", 1) == 0);
        u16_add(&extensions, (unsigned)name_len);
        CHECK(buf_add(&extensions, name, name_len) == 0);
    }
    u16_add(&extensions, extra);
    u16_add(&extensions, 0);
    u16_add(&body, 0x0303);
    CHECK(buf_add(&body, random, sizeof(random)) == 0 && buf_add(&body, "", 1) == 0);
    u16_add(&body, 2);
    u16_add(&body, 0x1301);
    CHECK(buf_add(&body, "\1\0", 2) == 0);
    u16_add(&body, (unsigned)extensions.len);
    CHECK(buf_add(&body, extensions.data, extensions.len) == 0);
    length[0] = 1;
    length[1] = 0;
    length[2] = (uint8_t)(body.len >> 8);
    length[3] = (uint8_t)body.len;
    buf_clear(&extensions);
    CHECK(buf_add(&extensions, length, 4) == 0);
    CHECK(buf_add(&extensions, body.data, body.len) == 0);
    for (size_t at = 0; at < extensions.len; at += step) {
        size_t part = extensions.len - at < step ? extensions.len - at : step;

        CHECK(buf_add(out, "\x16\3\1", 3) == 0);
        u16_add(out, (unsigned)part);
        CHECK(buf_add(out, extensions.data + at, part) == 0);
    }
}

static void a_hello_tells_its_name(void)
{
    for (size_t step = 1; step < 200; step += 33) {
        cleanup_with(buf_done) struct buf out = BUF_INIT(8192);
        struct hello hello;

        hello_make(&out, "example.com", 11, 43, step);
        CHECK(hello_is_tls(out.data, out.len));
        for (size_t len = 0; len < out.len; len++)
            CHECK(hello_parse(out.data, len, &hello) == 0);
        CHECK(hello_parse(out.data, out.len, &hello) == 1);
        CHECK(strcmp(hello.name, "example.com") == 0 && !hello.is_encrypted);
    }
}

static void a_hello_may_have_no_name_or_a_hidden_one(void)
{
    cleanup_with(buf_done) struct buf none = BUF_INIT(8192), hidden = BUF_INIT(8192);
    struct hello hello;

    hello_make(&none, NULL, 0, 43, 4096);
    CHECK(hello_parse(none.data, none.len, &hello) == 1 && hello.name[0] == '\0');
    hello_make(&hidden, "a.test", 6, 0xfe0d, 4096);
    CHECK(hello_parse(hidden.data, hidden.len, &hello) == 1 && hello.is_encrypted);
}

static void a_hello_with_a_bad_name_is_refused(void)
{
    static const struct {
        const char *name;
        size_t len;
    } bad[] = {
        { "a\0b.test", 8 }, { "a b.test", 8 }, { "a\n.test", 7 }, { "\xd0\xb0.test", 7 }, { "", 0 }
    };
    struct hello hello;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        cleanup_with(buf_done) struct buf out = BUF_INIT(8192);

        hello_make(&out, bad[i].name, bad[i].len, 43, 4096);
        CHECK(hello_parse(out.data, out.len, &hello) == -EBADMSG);
    }
    CHECK(hello_parse("\x16\3\1\0\1\2", 6, &hello) == -EBADMSG);
    CHECK(hello_parse("\x16\3\1\xff\xff", 5, &hello) == -EBADMSG);
}

/* --- HTTP --- */

static int parse(const char *text, struct http_head *ret)
{
    return http_head_parse(text, strlen(text), ret);
}

static void a_head_tells_its_host(void)
{
    struct http_head head;

    CHECK(parse("GET /a?b HTTP/1.1\r\nHost: Example.com:8080\r\nA: b\r\n\r\nrest", &head) == 1);
    CHECK(strcmp(head.method, "GET") == 0 && strcmp(head.host, "Example.com") == 0);
    CHECK(head.port == 8080 && head.path_len == 4 && memcmp(head.path, "/a?b", 4) == 0);
    CHECK(head.body == HTTP_NO_BODY && !head.is_upgrade);
    CHECK(parse("GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n", &head) == 1);
    CHECK(strcmp(head.host, "2001:db8::1") == 0 && head.port == 80);
    CHECK(parse("GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", &head) == 1);
    CHECK(head.path_len == 2);
    CHECK(parse("GET / HTTP/1.0\r\n\r\n", &head) == 1 && head.host[0] == '\0');
    CHECK(parse("GET / HTTP/1.1\r\nHost: a", &head) == 0);
}

/* What a server may take for the method and the path. */
static void a_head_tells_what_overrides_its_first_line(void)
{
    static const char *const bad[] = {
        "X-HTTP-Method: GET\r\nX-Method-Override: DELETE",
        "X-HTTP-Method-Override: DE LETE",
        "X-HTTP-Method-Override:",
        "X-Original-URL: a",
        "X-Original-URL: /a\r\nX-Rewrite-URL: /b",
    };
    struct http_head head;
    char text[200];

    CHECK(parse("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", &head) == 1);
    CHECK(head.other_method[0] == '\0' && !head.other_path);
    CHECK(parse("POST / HTTP/1.1\r\nHost: a.test\r\nX-HTTP-Method-Override: delete\r\n"
                "X-Rewrite-Url: https://a.test/b?c\r\n\r\n",
                &head) == 1);
    CHECK_TEXT(head.other_method, "DELETE");
    CHECK(head.other_path_len == 4 && memcmp(head.other_path, "/b?c", 4) == 0);
    /* Servers that put fields into variables cannot tell these apart. */
    CHECK(parse("POST / HTTP/1.1\r\nHost: a.test\r\nX_HTTP_Method-Override: put\r\n"
                "x_original_url: /d\r\n\r\n",
                &head) == 1);
    CHECK_TEXT(head.other_method, "PUT");
    CHECK(head.other_path_len == 2 && memcmp(head.other_path, "/d", 2) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        (void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a.test\r\n%s\r\n\r\n", bad[i]);
        CHECK(parse(text, &head) == -EBADMSG, "%s", bad[i]);
    }
}

static void only_websocket_is_an_upgrade(void)
{
    static const char *const plain[] = { "Upgrade: h2c", "Upgrade: websocket, h2c", "Upgrade: x",
                                         "Upgrade: h2c\r\nUpgrade: websocket",
                                         "Upgrade: websocket\r\nUpgrade: h2c" };
    struct http_head head;
    char text[200];

    CHECK(parse("GET / HTTP/1.1\r\nHost: a.test\r\nupgrade: WebSocket\r\n\r\n", &head) == 1 &&
          head.is_upgrade);
    for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
        (void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a.test\r\n%s\r\n\r\n",
                       plain[i]);
        CHECK(parse(text, &head) == 1 && !head.is_upgrade, "%s", plain[i]);
    }
}

static void words_of_other_protocols_are_not_http(void)
{
    CHECK(http_head_is_http("GET / HTTP/1.1\r\n", 16) == 1 && http_head_is_http("GE", 2) == 0);
    CHECK(http_head_is_http("get / HTTP/1.1\n", 15) == 1 && http_head_is_http("GET /a", 6) == 0);
    CHECK(http_head_is_http("\r\nGET", 5) == 1 && http_head_is_http("", 0) == 0);
    CHECK(http_head_is_http("EHLO a.test\r\n", 13) == -1 && http_head_is_http("PING\r\n", 6) == -1);
    CHECK(http_head_is_http("SSH-2.0-x", 9) == -1 && http_head_is_http("\x16\3", 2) == -1);
}

static void an_ambiguous_head_is_refused(void)
{
    static const char *const bad[] = {
        "GET / HTTP/1.1\nHost: a.test\n\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\n b.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: b@a.test\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a.test\r\n\r\n",
        "CONNECT b.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET http://a.test:81/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET b.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "GET / HTTP/1.1\nHost: a.test\n\n",
        "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: +1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nA: \x01\r\n\r\n",
    };
    struct http_head head;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(parse(bad[i], &head) == -EBADMSG);
}

/* Returns how much of the text belongs to the body, however it is cut. */
static long body_of(const struct http_head *head, const char *text, size_t step)
{
    struct http_stream stream;
    size_t len = strlen(text), passed = 0;

    http_stream_begin(&stream, head);
    while (stream.body != HTTP_NO_BODY && passed < len) {
        size_t part = len - passed < step ? len - passed : step;
        long n = http_stream_pass(&stream, text + passed, part);

        if (n < 0)
            return n;
        passed += (size_t)n;
    }
    return (long)passed;
}

static void the_end_of_a_body_is_found(void)
{
    static const char chunks[] = "5\r\nhello\r\n0A\r\n0123456789\r\n0\r\n\r\n";
    struct http_head head;

    for (size_t step = 1; step < 9; step++) {
        CHECK(parse("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", &head) == 1);
        CHECK(body_of(&head, "helloGET / HTTP/1.1", step) == 5);
        CHECK(parse("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", &head) ==
              1);
        CHECK(body_of(&head, "5\r\nhello\r\n0A\r\n0123456789\r\n0\r\n\r\nGET /", step) ==
              (long)sizeof(chunks) - 1);
        CHECK(body_of(&head, "5;x=y\r\nhello", step) == -EBADMSG);
        CHECK(body_of(&head, "5\nhello", step) == -EBADMSG);
        CHECK(body_of(&head, "0\r\nTrailer: x\r\n\r\n", step) == -EBADMSG);
    }
}

/* --- DNS --- */

static const uint8_t example[] = { 0,   7,   1,   0,   0,   1, 0,   0,   0,   0, 0, 0, 7, 'E', 'x',
                                   'a', 'm', 'p', 'l', 'e', 3, 'c', 'o', 'm', 0, 0, 1, 0, 1 };

static void a_query_is_read_and_written(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(512);
    struct dns_query query;

    CHECK(dns_query_parse(example, sizeof(example), &query) == 0);
    CHECK(strcmp(query.name, "example.com") == 0 && query.type == DNS_A && query.id == 7);
    CHECK(!query.has_options && query.udp_max == 512);
    CHECK(dns_query_write(&query, 0x1234, &out) == 0);
    CHECK(memcmp(out.data + 12, "\7example\3com", 12) == 0);
    for (size_t len = 0; len < sizeof(example); len++)
        CHECK(dns_query_parse(example, len, &query) == -EBADMSG);
}

static void a_reply_is_checked_and_written_anew(void)
{
    cleanup_with(buf_done) struct buf in = BUF_INIT(512), out = BUF_INIT(512);
    const struct dns_reason reason = { .code = DNS_NO_REASON };
    static const uint8_t answers[] = {
        0xc0, 12,  0,    5,  0, 1, 0, 0, 0, 9, 0, 4, 1, 'b', 0xc0, 20,           /* alias b.com */
        1,    'b', 0xc0, 20, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4,   93,   184, 216, 34, /* its address */
    };
    struct dns_query query;
    struct dns_reply reply;

    CHECK(dns_query_parse(example, sizeof(example), &query) == 0);
    CHECK(buf_add(&in, example, sizeof(example)) == 0);
    CHECK(buf_add(&in, answers, sizeof(answers)) == 0);
    in.data[2] = (char)0x81;
    in.data[3] = (char)0x80;
    in.data[7] = 2;
    CHECK(dns_reply_parse(in.data, in.len, &query, 7, &reply) == 0);
    CHECK(reply.count == 2 && reply.records[0].type == DNS_CNAME);
    CHECK(reply.records[0].data_len == 7 && memcmp(reply.records[0].data, "\1b\3com", 7) == 0);
    CHECK(reply.records[1].type == DNS_A && reply.records[1].ttl == 9);
    CHECK(reply.records[1].address.bytes[0] == 93 && reply.records[1].address.bytes[3] == 34);
    CHECK(dns_reply_write(&query, &reply, &reason, 512, &out) == 0 && out.data[7] == 2);
    buf_clear(&out);
    CHECK(dns_reply_write(&query, &reply, &reason, 40, &out) == 0); /* too long: cut */
    CHECK(out.data[7] == 0 && out.data[2] & 2);
    dns_reply_done(&reply);
    in.data[2] = (char)0x83; /* cut by the server, within a record */
    buf_clear(&out);
    CHECK(dns_reply_parse(in.data, in.len - 3, &query, 7, &reply) == 0 && reply.count == 0);
    CHECK(dns_reply_write(&query, &reply, &reason, 512, &out) == 0);
    CHECK(out.data[7] == 0 && out.data[2] & 2);
    dns_reply_done(&reply);
    in.data[2] = (char)0x81;
    CHECK(dns_reply_parse(in.data, in.len, &query, 8, &reply) == -EBADMSG);
    dns_reply_done(&reply);
    in.data[13] = 'F'; /* the reply to another question */
    CHECK(dns_reply_parse(in.data, in.len, &query, 7, &reply) == -EBADMSG);
    dns_reply_done(&reply);
}

static void a_name_that_points_to_itself_is_refused(void)
{
    uint8_t loop[] = { 0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1 };
    struct dns_query query;

    CHECK(dns_query_parse(loop, sizeof(loop), &query) == -EBADMSG);
    loop[13] = 200;
    CHECK(dns_query_parse(loop, sizeof(loop), &query) == -EBADMSG);
}

static void an_extended_error_has_the_reason(void)
{
    static const uint8_t option[] = { 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0 };
    cleanup_with(buf_done) struct buf in = BUF_INIT(512), out = BUF_INIT(512);
    const struct dns_reason reason = { .code = DNS_BLOCKED, .text = "no rule" };
    const struct dns_reply reply = { .code = DNS_NO_NAME };
    struct dns_query query;

    CHECK(buf_add(&in, example, sizeof(example)) == 0);
    CHECK(buf_add(&in, option, sizeof(option)) == 0);
    in.data[11] = 1;
    CHECK(dns_query_parse(in.data, in.len, &query) == 0);
    CHECK(query.has_options && query.udp_max == 1232);
    CHECK(dns_reply_write(&query, &reply, &reason, 512, &out) == 0);
    CHECK((out.data[3] & 15) == 3 && memmem(out.data, out.len, "\0\17no rule", 9));
}

int main(void)
{
    RUN(a_hello_tells_its_name);
    RUN(a_hello_may_have_no_name_or_a_hidden_one);
    RUN(a_hello_with_a_bad_name_is_refused);
    RUN(a_head_tells_its_host);
    RUN(a_head_tells_what_overrides_its_first_line);
    RUN(only_websocket_is_an_upgrade);
    RUN(words_of_other_protocols_are_not_http);
    RUN(an_ambiguous_head_is_refused);
    RUN(the_end_of_a_body_is_found);
    RUN(a_query_is_read_and_written);
    RUN(a_reply_is_checked_and_written_anew);
    RUN(a_name_that_points_to_itself_is_refused);
    RUN(an_extended_error_has_the_reason);
    return 0;
}
