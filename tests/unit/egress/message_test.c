// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "check.h"
#include "egress/http/message.h"
#include "egress/http/sieve.h"
#include "egress/http/websocket.h"
#include "egress/secret/json_place.h"

static int parse(const char *text, struct http_reply *ret)
{
    return http_reply_parse(text, strlen(text), false, ret);
}

static void replies_are_framed(void)
{
    struct http_reply reply;

    CHECK(parse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", &reply) == 1);
    CHECK(reply.framing == HTTP_SIZED && reply.length == 5 && reply.status == 200 && !reply.ends);
    CHECK(parse("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n", &reply) == 1);
    CHECK(reply.framing == HTTP_CHUNKS);
    CHECK(parse("HTTP/1.0 200 OK\r\n\r\n", &reply) == 1);
    CHECK(reply.framing == HTTP_UNTIL_CLOSE && reply.ends);
    CHECK(parse("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", &reply) == 1);
    CHECK(reply.framing == HTTP_EMPTY && reply.has_length);
    CHECK(parse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", &reply) == 0);
}

static void replies_with_two_meanings_are_refused(void)
{
    static const char *const bad[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 O\rK\r\n\r\n",
    };
    struct http_reply reply;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(parse(bad[i], &reply) == -EBADMSG);
}

static void chunks_are_read_byte_by_byte(void)
{
    static const char body[] = "5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nX-End: 1\r\n\r\nnext";
    struct http_body_reader reader;
    char got[16] = "";
    size_t used = 0;

    http_body_start(&reader, HTTP_CHUNKS, 0);
    while (!reader.is_done) {
        struct http_text data;
        long n = http_body_take(&reader, body + used, 1, &data);

        CHECK(n == 1);
        used++;
        (void)strncat(got, data.at, data.len);
    }
    CHECK(strcmp(got, "hello!") == 0 && strcmp(body + used, "next") == 0);
}

static void a_sieve_holds_back_and_finds(void)
{
    struct needles *needles = needles_new();
    struct sieve sieve = { .found = -1 };
    struct buf out = BUF_INIT(1000);
    unsigned char zipped[200];
    uLongf zipped_len = sizeof(zipped);

    needles_add(needles, "the-secret-value", 16, 0);
    needles_ready(needles);
    CHECK(sieve_start(&sieve, needles, (struct http_text){ "", 0 }, true) == 0);
    CHECK(sieve_push(&sieve, "x the-sec", 9, &out) == 0);
    CHECK(strcmp(out.data, "2\r\nx \r\n") == 0);
    CHECK(sieve_push(&sieve, "ond", 3, &out) == 0 && sieve_end(&sieve, &out) == 0);
    CHECK(strcmp(out.data, "2\r\nx \r\n7\r\nthe-sec\r\n3\r\nond\r\n0\r\n\r\n") == 0);
    CHECK(sieve_start(&sieve, needles, (struct http_text){ "", 0 }, false) == 0);
    CHECK(sieve_push(&sieve, "x the-sec", 9, &out) == 0);
    CHECK(sieve_push(&sieve, "ret-value", 9, &out) == -EACCES && sieve.found == 0);
    CHECK(compress(zipped, &zipped_len, (const Bytef *)"a the-secret-value", 18) == Z_OK);
    CHECK(sieve_start(&sieve, needles, (struct http_text){ "deflate", 7 }, false) == 0);
    CHECK(sieve_push(&sieve, (const char *)zipped, zipped_len, &out) == -EACCES);
    CHECK(sieve_start(&sieve, needles, (struct http_text){ "br", 2 }, false) == -ENOTSUP);
    sieve_done(&sieve);
    needles_free(needles);
    buf_done(&out);
}

static void json_places_are_found(void)
{
    static const char text[] = "{\"a\":[1,{\"b/c\":\"here\"}],\"d\":\"\\u0041\"}";
    size_t at, len;

    CHECK(json_place_find(text, strlen(text), "/a/1/b~1c", &at, &len) == 1);
    CHECK(len == 4 && memcmp(text + at, "here", 4) == 0);
    CHECK(json_place_find(text, strlen(text), "/a/0", &at, &len) == 0);
    CHECK(json_place_find(text, strlen(text), "/a/2", &at, &len) == 0);
    CHECK(json_place_find("{\"a\":\"1\",\"a\":\"2\"}", 17, "/a", &at, &len) == -EBADMSG);
    CHECK(json_place_find("{\"a\":\"1\"", 8, "/a", &at, &len) == -EBADMSG);
    CHECK(json_place_find("{\"a\":\"1\"} x", 11, "/a", &at, &len) == -EBADMSG);
}

/* Masked and not, with lengths of all three widths, however the bytes are cut. */
static void frames_are_read_without_their_masks(void)
{
    static const char text[] = "placeholder";
    enum { LONG = 70000, SIZE = 2 * LONG };
    char *bytes = xcalloc(1, SIZE), *got = xcalloc(1, SIZE), *wanted = xcalloc(1, SIZE);
    static const size_t lens[] = { 0, 11, 300, LONG };
    size_t size = 0, wanted_len = 0;

    for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
        bool is_masked = i != 2;
        uint8_t mask[4] = { 1, 0x80, 3, 0xff };
        size_t len = lens[i], width = len > 65535 ? 8 : len > 125 ? 2 : 0;

        bytes[size++] = (char)0x81;
        bytes[size++] = (char)((is_masked ? 0x80U : 0) | (width == 8   ? 127
                                                          : width == 2 ? 126
                                                                       : len));
        for (size_t j = width; j > 0; j--)
            bytes[size++] = (char)(len >> 8 * (j - 1));
        if (is_masked)
            for (size_t j = 0; j < 4; j++)
                bytes[size++] = (char)mask[j];
        for (size_t j = 0; j < len; j++) {
            char c = text[j % (sizeof(text) - 1)];

            wanted[wanted_len++] = c;
            bytes[size++] = is_masked ? (char)((uint8_t)c ^ mask[j % 4]) : c;
        }
    }
    for (size_t step = 1; step <= size; step = step * 3 + 1) {
        struct websocket_reader reader = { .head_len = 0 };
        size_t got_len = 0;

        for (size_t at = 0; at < size; at += step) {
            size_t part = size - at < step ? size - at : step;

            got_len += websocket_read(&reader, bytes + at, part, got + got_len);
        }
        CHECK(got_len == wanted_len && memcmp(got, wanted, wanted_len) == 0, "step %zu", step);
    }
    free(bytes);
    free(got);
    free(wanted);
}

int main(void)
{
    RUN(replies_are_framed);
    RUN(replies_with_two_meanings_are_refused);
    RUN(chunks_are_read_byte_by_byte);
    RUN(a_sieve_holds_back_and_finds);
    RUN(json_places_are_found);
    RUN(frames_are_read_without_their_masks);
    return 0;
}
