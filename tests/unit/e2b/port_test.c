// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/xalloc.h"
#include "check.h"
#include "e2b/port/header.h"
#include "e2b/port/pump.h"
#include "e2b/port/reply.h"

enum { TEXT_MAX = 256 * 1024, LARGE = 8 * 1024 * 1024 };

/* --- replies ------------------------------------------------------------------------------------
 */

/* Feeds a text in pieces, and then the end if wants_end: 0, or -EBADMSG. What was decoded is
 * appended to body. */
static int feed(struct port_reply *reply, const char *text, size_t piece, bool wants_end,
                struct buf *body)
{
    size_t len = strlen(text);

    while (len > 0 && !reply->is_complete) {
        char data[TEXT_MAX];
        size_t part = len < piece ? len : piece;
        ssize_t n;

        memcpy(data, text, part);
        n = port_reply_feed(reply, data, part);
        if (n < 0)
            return (int)n;
        CHECK((size_t)n <= part);
        CHECK(buf_add(body, data, (size_t)n) == 0);
        text += part;
        len -= part;
    }
    if (wants_end && !reply->is_complete) {
        char none[1];
        ssize_t n = port_reply_feed(reply, none, 0);

        return n < 0 ? (int)n : 0;
    }
    return 0;
}

/* The body of a reply, however it is cut; NULL: it is refused each time. The caller frees it. */
static char *body_of(struct port_reply how, const char *text, bool wants_end)
{
    char *first = NULL;

    for (size_t piece = 1; piece <= strlen(text); piece++) {
        struct port_reply reply = how;
        struct buf body = BUF_INIT(TEXT_MAX);
        int r;

        port_reply_init(&reply);
        r = feed(&reply, text, piece, wants_end, &body);
        port_reply_done(&reply);
        CHECK(r == 0 || r == -EBADMSG);
        if (piece == 1 && r == 0)
            first = xstrdup(body.data ? body.data : "");
        else if (piece > 1)
            CHECK((r == 0) == (first != NULL), "(in pieces of %zu)", piece);
        if (r == 0)
            CHECK_TEXT(body.data ? body.data : "", first);
        buf_done(&body);
    }
    return first;
}

static void check_body(const char *text, bool wants_end, const char *wanted)
{
    const struct port_reply plain = { .is_head = false };
    cleanup_free char *body = body_of(plain, text, wants_end);

    CHECK(body, "(refused: %s)", text);
    CHECK_TEXT(body, wanted);
}

static void check_refused(const char *text)
{
    const struct port_reply plain = { .is_head = false };
    cleanup_free char *body = body_of(plain, text, true);

    CHECK(!body, "(taken: %s)", text);
}

static void a_body_is_read_to_its_end_however_that_is_said(void)
{
    check_body("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, "hello");
    check_body(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
        false, "hello");
    check_body("HTTP/1.0 200 OK\r\nServer: x\r\n\r\nhello", true, "hello");
    check_body("HTTP/1.1 204 No Content\r\n\r\n", false, "");
    check_body("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, "");
    check_body("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n", false,
               "ok");
    check_body("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
               false, "ok");
    check_body("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
               false, "ok");
}

static void what_is_no_clear_reply_is_refused(void)
{
    check_refused("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell");
    check_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n");
    check_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhel\r\n");
    check_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n");
    check_refused("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello");
    check_refused(
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    check_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n");
    check_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhello");
    check_refused("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n");
    check_refused("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n");
    check_refused("HTTP/1.1 200 OK\r\nA b: c\r\nContent-Length: 0\r\n\r\n");
    check_refused("HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: c\r\nContent-Length: 0\r\n\r\n");
    check_refused("HTTP/1.1 200 OK\r\nA: \x01\r\nContent-Length: 0\r\n\r\n");
    check_refused("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    check_refused("HTTP/1.1 700 Odd\r\nContent-Length: 0\r\n\r\n");
    check_refused("SSH-2.0-server\r\n");
    check_refused("");
}

static void headers_keep_their_order_and_case(void)
{
    char text[] = "HTTP/1.1 201 Fine\r\nx-LOWER: 1\r\nEmpty:\r\nSet-Cookie: a=b\r\n"
                  "Set-Cookie:  c=d \r\nTab: a\tb\r\nContent-Length: 7\r\n\r\n";
    struct port_reply reply = { .is_head = true };

    port_reply_init(&reply);
    CHECK(port_reply_feed(&reply, text, strlen(text)) == 0);
    CHECK(reply.has_head && reply.is_complete && reply.status == 201);
    CHECK(reply.length == 7);
    CHECK(reply.header_count == 6);
    CHECK_TEXT(port_reply_name(&reply, 0), "x-LOWER");
    CHECK_TEXT(port_reply_value(&reply, 0), "1");
    CHECK_TEXT(port_reply_name(&reply, 1), "Empty");
    CHECK_TEXT(port_reply_value(&reply, 1), "");
    CHECK_TEXT(port_reply_value(&reply, 2), "a=b");
    CHECK_TEXT(port_reply_name(&reply, 3), "Set-Cookie");
    CHECK(strncmp(port_reply_value(&reply, 3), "c=d", 3) == 0);
    CHECK_TEXT(port_reply_value(&reply, 4), "a b");
    port_reply_done(&reply);
}

static void headers_are_bounded(void)
{
    struct buf many = BUF_INIT(TEXT_MAX), large = BUF_INIT(TEXT_MAX), interim = BUF_INIT(TEXT_MAX);
    struct port_reply reply = { .is_head = false };
    struct buf body = BUF_INIT(TEXT_MAX);

    CHECK(buf_add_str(&many, "HTTP/1.1 200 OK\r\n") == 0);
    for (int i = 0; i <= PORT_REPLY_HEADERS_MAX; i++)
        CHECK(buf_printf(&many, "A%d: b\r\n", i) == 0);
    CHECK(buf_add_str(&many, "\r\n") == 0);
    port_reply_init(&reply);
    CHECK(feed(&reply, many.data, TEXT_MAX, false, &body) == -EBADMSG);
    port_reply_done(&reply);

    CHECK(buf_add_str(&large, "HTTP/1.1 200 OK\r\nA: ") == 0);
    for (int i = 0; i < PORT_REPLY_TEXT_MAX; i++)
        CHECK(buf_add_str(&large, "x") == 0);
    CHECK(buf_add_str(&large, "\r\n\r\n") == 0);
    reply = (struct port_reply){ .is_head = false };
    port_reply_init(&reply);
    CHECK(feed(&reply, large.data, TEXT_MAX, false, &body) == -EBADMSG);
    port_reply_done(&reply);

    for (int i = 0; i <= PORT_REPLY_INTERIM_MAX; i++)
        CHECK(buf_add_str(&interim, "HTTP/1.1 100 Continue\r\n\r\n") == 0);
    reply = (struct port_reply){ .is_head = false };
    port_reply_init(&reply);
    CHECK(feed(&reply, interim.data, TEXT_MAX, false, &body) == -EBADMSG);
    port_reply_done(&reply);
    buf_done(&many);
    buf_done(&large);
    buf_done(&interim);
    buf_done(&body);
}

/* NULL: the header stays behind. */
static void check_passes(const char *name, const char *value, const char *wanted)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
    bool passes = port_header_passes(name, value, &out);

    CHECK(passes == (wanted != NULL), "(%s: %s)", name, value);
    if (wanted)
        CHECK_TEXT(out.data ? out.data : "", wanted);
}

static void a_server_acts_on_no_other_host(void)
{
    check_passes("Content-Type", "text/html; domain=x", "text/html; domain=x");
    check_passes("Set-Cookie", "a=b; Path=/; HttpOnly", "a=b; Path=/; HttpOnly");
    check_passes("set-cookie", "domain=b; Domain=example.com; Path=/", "domain=b; Path=/");
    check_passes("Set-Cookie", "a=b; DOMAIN =.example.com", "a=b;");
    check_passes("Set-Cookie", "a=b;domain=x;domain=y;Secure", "a=b;Secure");
    check_passes("Set-Cookie", "holt-token=evil; Path=/", NULL);
    check_passes("Set-Cookie", " Holt-Token = evil", NULL);
    check_passes("Set-Cookie", "=holt-token=evil", NULL);
    check_passes("Set-Cookie", "holt-token", NULL);
    check_passes("Set-Cookie", "holt-tokens=other", "holt-tokens=other");
    check_passes("Alt-Svc", "h2=\"evil:443\"", NULL);
    check_passes("Clear-Site-Data", "\"cookies\"", NULL);
}

static void what_follows_an_upgrade_is_left_as_it_is(void)
{
    const struct port_reply how = { .can_upgrade = true };
    cleanup_free char *body = body_of(
        how, "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", false);
    char text[] =
        "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst";
    struct port_reply reply = how;

    CHECK(body);
    port_reply_init(&reply);
    CHECK(port_reply_feed(&reply, text, strlen(text)) == 5);
    CHECK(memcmp(text, "first", 5) == 0);
    CHECK(reply.is_upgraded && reply.is_complete);
    port_reply_done(&reply);
}

/* --- requests -----------------------------------------------------------------------------------
 */

static void check_request(const struct port_request *request, const char *wanted)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

    CHECK(port_request_write(request, &out) == 0);
    CHECK_TEXT(out.data, wanted);
}

static void a_request_goes_on_as_it_was_written(void)
{
    static const struct port_header headers[] = {
        { "hOsT", "3000-sb1.example.org" },
        { "X-Custom-CASE", "Some Value" },
        { "Connection", "keep-alive, X-Private" },
        { "x-private", "not for others" },
        { "TE", "trailers" },
        { "Keep-Alive", "timeout=5" },
        { "Expect", "100-continue" },
        { "e2b-traffic-access-token", "secret" },
        { "Authorization", "Bearer the-servers-own" },
        { "Upgrade", "h2c" },
        { "Content-Length", "5" },
    };
    struct port_request request = {
        .verb = "PATCH",
        .target = "/a%20b/../c?x=%2F&y",
        .port = 3000,
        .headers = headers,
        .header_count = ARRAY_SIZE(headers),
    };

    check_request(&request, "PATCH /a%20b/../c?x=%2F&y HTTP/1.1\r\n"
                            "hOsT: 3000-sb1.example.org\r\n"
                            "X-Custom-CASE: Some Value\r\n"
                            "Authorization: Bearer the-servers-own\r\n"
                            "Content-Length: 5\r\n"
                            "Connection: close\r\n\r\n");
    request.mask_host = "localhost:${PORT}";
    request.is_upgrade = true;
    check_request(&request, "PATCH /a%20b/../c?x=%2F&y HTTP/1.1\r\n"
                            "Host: localhost:3000\r\n"
                            "X-Custom-CASE: Some Value\r\n"
                            "Authorization: Bearer the-servers-own\r\n"
                            "Upgrade: h2c\r\n"
                            "Content-Length: 5\r\n"
                            "Connection: Upgrade\r\n\r\n");
}

static void tokens_of_holt_stay_here(void)
{
    static const struct port_header headers[] = {
        { "Host", "a" },
        { "holt-TOKEN", "holt_port_1" },
        { "Cookie", "holt-token=x" },
        { "Cookie", "a=b;holt-token=x; c=holt-token ;;" },
        { "COOKIE", "Holt-Token = x; holt-tokens=y; holt-token" },
    };
    const struct port_request request = {
        .verb = "GET",
        .target = "/",
        .port = 80,
        .headers = headers,
        .header_count = ARRAY_SIZE(headers),
    };

    check_request(&request, "GET / HTTP/1.1\r\nHost: a\r\nCookie: a=b; c=holt-token \r\n"
                            "COOKIE: holt-tokens=y\r\nConnection: close\r\n\r\n");
}

static void a_body_without_a_length_is_chunked(void)
{
    static const struct port_header headers[] = {
        { "Host", "a" },
        { "Transfer-Encoding", "chunked" },
        { "Connection", "Host, Content-Length" },
    };
    const struct port_request request = {
        .verb = "POST",
        .target = "/",
        .port = 80,
        .is_chunked = true,
        .headers = headers,
        .header_count = ARRAY_SIZE(headers),
    };

    check_request(&request, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                            "Connection: close\r\n\r\n");
}

static void nothing_is_smuggled_into_a_request(void)
{
    static const struct {
        const char *verb, *target, *mask;
        struct port_header header;
    } bad[] = {
        { "GET", "/ HTTP/1.1", NULL, { "A", "b" } },
        { "GET", "/\r\nX: y", NULL, { "A", "b" } },
        { "GET", "", NULL, { "A", "b" } },
        { "GET /", "/", NULL, { "A", "b" } },
        { "GET", "/", NULL, { "A b", "c" } },
        { "GET", "/", NULL, { "A", "b\nc: d" } },
        { "GET", "/", "a\r\nX: y", { "Host", "b" } },
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        cleanup_with(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
        const struct port_request request = {
            .verb = bad[i].verb,
            .target = bad[i].target,
            .mask_host = bad[i].mask,
            .headers = &bad[i].header,
            .header_count = 1,
        };

        CHECK(port_request_write(&request, &out) == -EINVAL, "(%zu)", i);
    }
}

/* --- both ways ----------------------------------------------------------------------------------
 */

/* client <-> [inner_client, inner_server] <-> server, with a pump in the middle. */
struct line {
    int client, inner_client, inner_server, server;
    const char *early;
    pthread_t thread;
    int result;
};

static void *line_main(void *argument)
{
    struct line *line = argument;

    const struct port_side client = { .fd = line->inner_client,
                                      .early = line->early,
                                      .early_len = strlen(line->early) };
    const struct port_side server = { .fd = line->inner_server, .early = "hello ", .early_len = 6 };

    line->result = port_pump(&client, &server);
    (void)close(line->inner_client);
    (void)close(line->inner_server);
    return NULL;
}

static void line_start(struct line *line, const char *early)
{
    int one[2], other[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, one) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other) == 0);
    *line = (struct line){ .client = one[0],
                           .inner_client = one[1],
                           .inner_server = other[0],
                           .server = other[1],
                           .early = early };
    CHECK(pthread_create(&line->thread, NULL, line_main, line) == 0);
}

static int line_end(const struct line *line)
{
    CHECK(pthread_join(line->thread, NULL) == 0);
    return line->result;
}

static void check_received(int fd, const char *wanted)
{
    char text[64] = "";

    CHECK(recv(fd, text, strlen(wanted), MSG_WAITALL) == (ssize_t)strlen(wanted));
    CHECK_TEXT(text, wanted);
}

static void check_end(int fd)
{
    char byte;

    CHECK(recv(fd, &byte, 1, 0) == 0);
}

static void say(int fd, const char *text)
{
    CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

static void bytes_pass_both_ways_and_each_ends_alone(void)
{
    struct line line;

    line_start(&line, "early ");
    say(line.client, "late");
    check_received(line.server, "early late");
    say(line.server, "answer");
    check_received(line.client, "hello answer");
    CHECK(shutdown(line.client, SHUT_WR) == 0);
    check_end(line.server);
    say(line.server, "still here");
    check_received(line.client, "still here");
    CHECK(shutdown(line.server, SHUT_WR) == 0);
    check_end(line.client);
    CHECK(line_end(&line) == 0);
    (void)close(line.client);
    (void)close(line.server);
}

static void a_side_that_goes_ends_the_other(void)
{
    struct line line;

    line_start(&line, "");
    (void)close(line.server);
    check_received(line.client, "hello ");
    check_end(line.client);
    CHECK(line_end(&line) < 0);
    (void)close(line.client);

    line_start(&line, "");
    check_received(line.client, "hello ");
    say(line.client, "last words");
    (void)close(line.client);
    check_received(line.server, "last words");
    check_end(line.server);
    (void)line_end(&line);
    (void)close(line.server);
}

static void *read_slowly(void *argument)
{
    const int *fd = argument;
    static char bytes[64 * 1024];
    size_t total = 0;
    ssize_t n;

    while ((n = recv(*fd, bytes, sizeof(bytes), 0)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            CHECK(bytes[i] == (char)((total + (size_t)i) % 251));
        total += (size_t)n;
    }
    CHECK(n == 0 && total == LARGE, "(%zu)", total);
    return NULL;
}

/* Without a reader, only as much is sent as the sockets and the pump can hold. */
static void a_slow_side_holds_the_other_back(void)
{
    char *bytes = xcalloc(1, LARGE);
    struct line line;
    pthread_t reader;
    size_t sent = 0;

    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (char)(i % 251);
    line_start(&line, "");
    for (;;) {
        struct pollfd wait = { .fd = line.client, .events = POLLOUT };
        ssize_t n = send(line.client, bytes + sent, LARGE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0)
            sent += (size_t)n;
        else if (poll(&wait, 1, 200) == 0)
            break;
    }
    CHECK(sent < LARGE / 2, "(%zu)", sent);
    CHECK(pthread_create(&reader, NULL, read_slowly, &line.server) == 0);
    while (sent < LARGE) {
        ssize_t n = send(line.client, bytes + sent, LARGE - sent, MSG_NOSIGNAL);

        CHECK(n > 0);
        sent += (size_t)n;
    }
    CHECK(shutdown(line.client, SHUT_WR) == 0);
    CHECK(pthread_join(reader, NULL) == 0);
    CHECK(shutdown(line.server, SHUT_WR) == 0);
    CHECK(line_end(&line) == 0);
    (void)close(line.client);
    (void)close(line.server);
    free(bytes);
}

int main(void)
{
    RUN(a_body_is_read_to_its_end_however_that_is_said);
    RUN(what_is_no_clear_reply_is_refused);
    RUN(headers_keep_their_order_and_case);
    RUN(headers_are_bounded);
    RUN(a_server_acts_on_no_other_host);
    RUN(what_follows_an_upgrade_is_left_as_it_is);
    RUN(a_request_goes_on_as_it_was_written);
    RUN(tokens_of_holt_stay_here);
    RUN(a_body_without_a_length_is_chunked);
    RUN(nothing_is_smuggled_into_a_request);
    RUN(bytes_pass_both_ways_and_each_ends_alone);
    RUN(a_side_that_goes_ends_the_other);
    RUN(a_slow_side_holds_the_other_back);
    return 0;
}
