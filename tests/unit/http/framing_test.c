// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/cleanup.h"
#include "check.h"
#include "unit/http/framed.h"

#define LINE "POST /x HTTP/1.1\r\n"
#define HOST "Host: a\r\n"
#define RAW(text) (text), sizeof(text) - 1

struct raw {
    const char *bytes;
    size_t len;
};

static void one_reading_is_accepted(void)
{
    static const struct raw cases[] = {
        { RAW(LINE HOST "\r\n") },
        { RAW("GET / HTTP/1.1\r\n" HOST "\r\n") },
        { RAW("GET /a?b=c%20d&e HTTP/1.1\r\n" HOST "X:y\r\n\r\n") },
        { RAW("GET /%2e%2500?a=%00 HTTP/1.1\r\n" HOST "\r\n") },
        { RAW("GET / HTTP/1.0\r\n\r\n") },
        { RAW(LINE HOST "Content-Length: 2\r\n\r\n{}") },
        { RAW(LINE HOST "content-length:   2\r\n\r\n{}") },
        { RAW(LINE HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n") },
        { RAW(LINE HOST "Transfer-Encoding:\tChunked\r\n\r\n0\r\n\r\n") },
        { RAW(LINE "Empty:\r\n" HOST "Empty: \r\n\r\n") },
        { RAW(LINE HOST "X: a \t b \r\nCookie: a=b; c=d\r\nX: \xc3\xa9\r\n\r\n") },
        { RAW(LINE HOST "!#$%&'*+-.^_`|~0Az: y\r\n\r\n") },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        framed_send(cases[i].bytes, cases[i].len, NULL, 0);
        CHECK(framed.is_seen && !framed.refusal, "(%zu: %s)", i, cases[i].bytes);
    }
}

static void refused_with_400(const struct raw *raw)
{
    char reply[1024];

    framed_send(raw->bytes, raw->len, reply, sizeof(reply));
    CHECK(!framed.is_seen || framed.refusal, "(%s)", raw->bytes);
    CHECK(!framed.is_seen || strncmp(reply, "HTTP/1.1 400", 12) == 0, "(%s: %s)", raw->bytes,
          reply);
    CHECK(!framed.is_seen || strstr(reply, "Connection: close"), "(%s)", reply);
}

static void hidden_bytes_and_folded_lines_are_refused(void)
{
    static const struct raw cases[] = {
        { RAW(LINE HOST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n") },
        { RAW(LINE HOST "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n") },
        { RAW(LINE HOST "Content-Length : 2\r\n\r\n{}") },
        { RAW(LINE " Host: a\r\nHost: b\r\n\r\n") },
        { RAW(LINE HOST " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n") },
        { RAW(LINE HOST "Transfer-Encoding: chunked\r\n folded\r\n\r\n0\r\n\r\n") },
        { RAW(LINE HOST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n") },
        { RAW(LINE HOST "Transfer-Encoding: chunked\r\n \r\n\r\n0\r\n\r\n") },
        { RAW(LINE HOST "X: y\r\n\tz\r\nContent-Length: 2\r\n\r\n{}") },
        { RAW(LINE "Host: a\r\n b\r\n\r\n") },
        { RAW(LINE HOST "X: a\0b\r\n\r\n") },
        { RAW(LINE HOST "X: a\0\r\n\r\n") },
        { RAW(LINE HOST "X: a\0\0\0\0\r\n\r\n") },
        { RAW(LINE HOST "X: a\0\r\nY: z\r\n\r\n") },
        { RAW(LINE "Host: a\0.b\r\nX: y\r\n\r\n") },
        { RAW(LINE HOST "X\0: y\r\n\r\n") },
        { RAW(LINE HOST "X:\0y\r\n\r\n") },
        { RAW("POST /x\0y HTTP/1.1\r\n" HOST "\r\n") },
        { RAW("POST /x%00y HTTP/1.1\r\n" HOST "\r\n") },
        { RAW("POST\0 /x HTTP/1.1\r\n" HOST "\r\n") },
        { RAW("POST /x HTTP/1.1\0\r\n" HOST "\r\n") },
        { RAW("POST  /x HTTP/1.1\r\n" HOST "\r\n") },
        { RAW("PO(ST /x HTTP/1.1\r\n" HOST "\r\n") },
        { RAW(LINE HOST "X: a\x01\r\n\r\n") },
        { RAW(LINE HOST "X: a\x7f\r\n\r\n") },
        { RAW(LINE HOST "X(: a\r\n\r\n") },
        { RAW(LINE HOST ": a\r\n\r\n") },
        { RAW(LINE HOST "X: a\nContent-Length: 2\r\n\r\n{}") },
        { RAW(LINE HOST "X: a\rContent-Length: 2\r\n\r\n{}") },
        { RAW("POST /x HTTP/1.1\nHost: a\n\n") },
        { RAW(LINE HOST "X: a\r\n\n") },
        { RAW(LINE HOST "X: a\0b\n\n") },
        { RAW(LINE HOST "X: a\r\n:\r\n\r\n") },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        refused_with_400(&cases[i]);
}

static void two_readings_are_refused(void)
{
    static const struct raw cases[] = {
        { RAW(LINE HOST HOST "\r\n") },
        { RAW(LINE HOST "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x") },
        { RAW(LINE HOST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") },
        { RAW(LINE HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n") },
        { RAW(LINE HOST "Transfer-Encoding: gzip\r\n\r\nx") },
        { RAW(LINE HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n") },
        { RAW(LINE HOST "Transfer-Encoding: \r\n\r\n0\r\n\r\n") },
        { RAW(LINE HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n") },
        { RAW(LINE HOST "E2b-Sandbox-Id: a\r\nE2b-Sandbox-Id: b\r\n\r\n") },
        { RAW(LINE HOST "E2b-Sandbox-Port: 1\r\nE2b-Sandbox-Port: 2\r\n\r\n") },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        refused_with_400(&cases[i]);
        CHECK(framed.is_seen && framed.refusal == &refuse_framing, "(%s)", cases[i].bytes);
    }
}

/* Verbs that libmicrohttpd expects no body of, and those that it does. */
static void every_verb_gets_its_refusal_without_a_body(void)
{
    static const char *const verbs[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "X" };
    char text[256];

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        int len = snprintf(text, sizeof(text),
                           "%s / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", verbs[i]);

        refused_with_400(&(struct raw){ text, (size_t)len });
        CHECK(framed.is_seen);
    }
}

int main(void)
{
    RUN(one_reading_is_accepted);
    RUN(hidden_bytes_and_folded_lines_are_refused);
    RUN(two_readings_are_refused);
    RUN(every_verb_gets_its_refusal_without_a_body);
    return 0;
}
