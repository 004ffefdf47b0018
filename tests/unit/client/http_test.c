// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"
#include "client/transport/http.h"
#include "client/transport/link.h"
#include "holt.h"

enum {
    BODY_MAX = 1000,
    PACKET_MAX = 16 * 1024, /* a receive that is shorter than the packet would lose the rest */
};

/* A connection whose other end is in our hands. Packets keep their borders, so the pieces that the
 * test sends are the pieces that the reader receives. */
struct pair {
    struct http http;
    int daemon_fd;
};

static const struct http_request hello = {
    .authority = "localhost",
    .path = "holt.v1.HostService/Health",
    .content_type = "application/json",
    .body = "{}",
    .len = 2,
    .reply_max = BODY_MAX,
    .deadline = HOLT_NO_DEADLINE,
};

static void pair_init(struct pair *pair)
{
    int ends[2];

    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    http_init(&pair->http, link_new(ends[0]));
    pair->daemon_fd = ends[1];
}

static void pair_done(struct pair *pair)
{
    http_done(&pair->http);
    (void)close(pair->daemon_fd);
}

static void ask(struct pair *pair, char *request, size_t size)
{
    struct holt_error error;
    ssize_t n;

    CHECK(http_send(&pair->http, &hello, &error) == 0);
    n = recv(pair->daemon_fd, request, size - 1, 0);
    CHECK(n > 0);
    request[n] = '\0';
}

static void answer(const struct pair *pair, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(pair->daemon_fd, data, len < PACKET_MAX ? len : PACKET_MAX, MSG_NOSIGNAL);

        CHECK(n > 0);
        data += n;
        len -= (size_t)n;
    }
}

static int read_reply(struct http *http, unsigned *ret_status, struct holt_error *error)
{
    int r = http_read_head(http, ret_status, error);

    while (r == 0 && !http->is_complete)
        if (http_read_body(http, error) < 0)
            r = -1;
    return r;
}

/* Answers one request with text and the end of the connection; -1 as the reader sees it. */
static int exchange(struct pair *pair, const char *text, unsigned *ret_status,
                    struct holt_error *error)
{
    char request[1024];

    ask(pair, request, sizeof(request));
    answer(pair, text, strlen(text));
    CHECK(shutdown(pair->daemon_fd, SHUT_WR) == 0);
    return read_reply(&pair->http, ret_status, error);
}

static void a_request_is_what_connect_asks_for(void)
{
    struct http_request request = hello;
    struct holt_error error;
    struct pair pair;
    char text[1024] = "";

    pair_init(&pair);
    request.token = "secret";
    CHECK(http_send(&pair.http, &request, &error) == 0);
    CHECK(recv(pair.daemon_fd, text, sizeof(text) - 1, 0) > 0);
    CHECK_TEXT(text, "POST /holt.v1.HostService/Health HTTP/1.1\r\n"
                     "Host: localhost\r\n"
                     "User-Agent: libholt/" HOLT_VERSION "\r\n"
                     "Content-Type: application/json\r\n"
                     "Connect-Protocol-Version: 1\r\n"
                     "Content-Length: 2\r\n"
                     "Authorization: Bearer secret\r\n"
                     "\r\n{}");
    pair_done(&pair);
}

static void verb_and_headers_can_be_others(void)
{
    struct http_request request = hello;
    struct holt_error error;
    struct pair pair;
    char text[1024] = "";

    pair_init(&pair);
    request.verb = "DELETE";
    request.headers = "Accept: */*\r\nX-Y: z\r\n";
    CHECK(http_send(&pair.http, &request, &error) == 0);
    CHECK(recv(pair.daemon_fd, text, sizeof(text) - 1, 0) > 0);
    CHECK(strncmp(text, "DELETE /holt.v1.", strlen("DELETE /holt.v1.")) == 0);
    CHECK(strstr(text, "\r\nAccept: */*\r\nX-Y: z\r\n\r\n{}"));
    pair_done(&pair);
}

static void header_check(const char *reply, const char *wanted_value)
{
    for (size_t cut = 0; cut <= strlen(reply); cut++) {
        struct http_wanted wanted = { .name = "Mcp-Session-Id" };
        struct http_request request = hello;
        struct holt_error error;
        char ignored[1024];
        unsigned status;
        struct pair pair;

        pair_init(&pair);
        request.wanted = &wanted;
        CHECK(http_send(&pair.http, &request, &error) == 0);
        CHECK(recv(pair.daemon_fd, ignored, sizeof(ignored), 0) > 0);
        answer(&pair, reply, cut);
        answer(&pair, reply + cut, strlen(reply) - cut);
        CHECK(read_reply(&pair.http, &status, &error) == 0, "(cut at %zu: %s)", cut, error.message);
        CHECK_TEXT(wanted.value, wanted_value);
        pair_done(&pair);
    }
}

static void a_header_that_is_wanted_is_kept(void)
{
    char reply[512];

    header_check(
        "HTTP/1.1 200 OK\r\nX: mcp-session-id\r\nmcp-session-ID: abc\r\nMcp-Session-Idea: no\r\n"
        "Content-Length: 2\r\n\r\n{}",
        "abc");
    header_check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "");
    header_check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
                 "Mcp-Session-Id: late\r\n\r\n",
                 "");
    (void)snprintf(reply, sizeof(reply),
                   "HTTP/1.1 200 OK\r\nMcp-Session-Id: %0200d\r\nContent-Length: 0\r\n\r\n", 1);
    header_check(reply, "");
}

static void check_every_split(const char *reply, unsigned wanted_status, const char *wanted_body)
{
    char request[1024];

    for (size_t cut = 0; cut <= strlen(reply); cut++) {
        struct holt_error error;
        unsigned status;
        struct pair pair;

        pair_init(&pair);
        ask(&pair, request, sizeof(request));
        answer(&pair, reply, cut);
        answer(&pair, reply + cut, strlen(reply) - cut);
        CHECK(read_reply(&pair.http, &status, &error) == 0, "(cut at %zu: %s)", cut, error.message);
        CHECK(status == wanted_status);
        CHECK_TEXT(pair.http.body.data ? pair.http.body.data : "", wanted_body);
        CHECK(http_is_idle(&pair.http));
        pair_done(&pair);
    }
}

static void a_reply_may_arrive_in_any_two_pieces(void)
{
    check_every_split("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"a\":\"b c\"}", 200,
                      "{\"a\":\"b c\"}");
    check_every_split("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, "");
}

static void chunks_are_put_together(void)
{
    check_every_split("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n",
                      200, "abc0123456789");
}

static void interim_replies_are_passed_over(void)
{
    check_every_split("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
                      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
                      200, "{}");
}

static void every_byte_may_come_alone(void)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                "5\r\nhello\r\n0\r\n\r\n";
    struct holt_error error;
    char request[1024];
    unsigned status;
    struct pair pair;

    pair_init(&pair);
    ask(&pair, request, sizeof(request));
    for (size_t i = 0; i < strlen(reply); i++)
        answer(&pair, reply + i, 1);
    CHECK(read_reply(&pair.http, &status, &error) == 0);
    CHECK_TEXT(pair.http.body.data, "hello");
    pair_done(&pair);
}

static void a_connection_carries_one_request_after_another(void)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    struct holt_error error;
    char request[1024];
    unsigned status;
    struct pair pair;

    pair_init(&pair);
    for (int i = 0; i < 3; i++) {
        CHECK(http_is_idle(&pair.http));
        ask(&pair, request, sizeof(request));
        CHECK(!http_is_idle(&pair.http));
        answer(&pair, reply, strlen(reply));
        CHECK(read_reply(&pair.http, &status, &error) == 0);
        CHECK_TEXT(pair.http.body.data, "{}");
    }
    CHECK(shutdown(pair.daemon_fd, SHUT_WR) == 0);
    CHECK(!http_is_idle(&pair.http), "(the daemon has hung up)");
    pair_done(&pair);
}

static void check_not_reused(const char *reply)
{
    struct holt_error error;
    char request[1024];
    unsigned status;
    struct pair pair;

    pair_init(&pair);
    ask(&pair, request, sizeof(request));
    answer(&pair, reply, strlen(reply));
    CHECK(read_reply(&pair.http, &status, &error) == 0);
    CHECK(!http_is_idle(&pair.http));
    pair_done(&pair);
}

static void a_connection_that_is_told_to_close_is_not_used_again(void)
{
    check_not_reused("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}");
    check_not_reused("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    check_not_reused("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n");
}

static void a_body_may_end_with_the_connection(void)
{
    struct holt_error error;
    unsigned status;
    struct pair pair;

    pair_init(&pair);
    CHECK(exchange(&pair, "HTTP/1.1 200 OK\r\n\r\nhello", &status, &error) == 0);
    CHECK_TEXT(pair.http.body.data, "hello");
    CHECK(!http_is_idle(&pair.http));
    pair_done(&pair);
}

static void check_refused(const char *reply, const char *wanted_code)
{
    struct holt_error error = { .code = "" };
    unsigned status;
    struct pair pair;

    pair_init(&pair);
    CHECK(exchange(&pair, reply, &status, &error) == -1, "(for '%.60s')", reply);
    CHECK_TEXT(error.code, wanted_code);
    CHECK(!http_is_idle(&pair.http));
    pair_done(&pair);
}

static void a_truncated_reply_is_refused(void)
{
    check_refused("", "unavailable");
    check_refused("HTTP/1.1 200", "unavailable");
    check_refused("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "unavailable");
    check_refused("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "unavailable");
    check_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                  "unavailable");
    check_refused("HTTP/1.1 100 Continue\r\n\r\n", "unavailable");
}

static void garbage_is_refused(void)
{
    check_refused("SSH-2.0-OpenSSH_9.2\r\n", "internal");
    check_refused("HTTP/1.1 abc\r\n\r\n", "internal");
    check_refused("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "internal");
    check_refused("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                  "internal");
    check_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "internal");
    check_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "ffffffffffffffffff\r\n",
                  "internal");
    check_refused("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc",
                  "internal");
}

static void an_oversized_reply_is_refused(void)
{
    cleanup_free char *reply = NULL;
    size_t header_size = (size_t)128 * 1024;

    CHECK(asprintf(&reply, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%*s", BODY_MAX + 1,
                   BODY_MAX + 1, "x") > 0);
    check_refused(reply, "resource_exhausted");
    free(TAKE_PTR(reply));
    CHECK(asprintf(&reply, "HTTP/1.1 200 OK\r\nX: %*s", (int)header_size, "x") > 0);
    check_refused(reply, "internal");
}

static void a_daemon_that_hangs_up_early_is_still_heard(void)
{
    static const char reply[] = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}";
    struct holt_error error;
    unsigned status;
    struct pair pair;
    int ends[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    http_init(&pair.http, link_new(ends[0]));
    CHECK(send(ends[1], reply, strlen(reply), 0) == (ssize_t)strlen(reply));
    CHECK(close(ends[1]) == 0);
    CHECK(http_send(&pair.http, &hello, &error) == 0);
    CHECK(read_reply(&pair.http, &status, &error) == 0);
    CHECK(status == 413);
    http_done(&pair.http);
}

int main(void)
{
    RUN(a_request_is_what_connect_asks_for);
    RUN(verb_and_headers_can_be_others);
    RUN(a_header_that_is_wanted_is_kept);
    RUN(a_reply_may_arrive_in_any_two_pieces);
    RUN(chunks_are_put_together);
    RUN(interim_replies_are_passed_over);
    RUN(every_byte_may_come_alone);
    RUN(a_connection_carries_one_request_after_another);
    RUN(a_connection_that_is_told_to_close_is_not_used_again);
    RUN(a_body_may_end_with_the_connection);
    RUN(a_truncated_reply_is_refused);
    RUN(garbage_is_refused);
    RUN(an_oversized_reply_is_refused);
    RUN(a_daemon_that_hangs_up_early_is_still_heard);
    return 0;
}
