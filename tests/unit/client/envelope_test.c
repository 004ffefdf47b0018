// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "client/error.h"
#include "holt.h"
#include "wire/envelope.h"

enum { STREAM_MAX = 2 * ENVELOPE_PAYLOAD_MAX };

static void an_envelope_comes_back_as_it_went_in(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(STREAM_MAX);
    struct envelope envelope;
    ssize_t size;

    CHECK(envelope_add(&out, "{\"a\":1}", 7) == 0);
    CHECK(envelope_add_end(&out, NULL) == 0);
    CHECK(memcmp(out.data, "\0\0\0\0\7{\"a\":1}\2\0\0\0\2{}", out.len) == 0);
    size = envelope_parse(out.data, out.len, &envelope);
    CHECK(size == 12 && envelope.len == 7 && !envelope.is_end);
    CHECK(memcmp(envelope.payload, "{\"a\":1}", 7) == 0);
    CHECK(envelope_parse(out.data + size, out.len - (size_t)size, &envelope) == 7);
    CHECK(envelope.is_end && envelope.len == 2);
}

static void a_part_of_an_envelope_asks_for_more(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(STREAM_MAX);
    struct envelope envelope;

    CHECK(envelope_add(&out, "hello", 5) == 0);
    for (size_t len = 0; len < out.len; len++)
        CHECK(envelope_parse(out.data, len, &envelope) == 0);
    CHECK(envelope_parse(out.data, out.len, &envelope) == (ssize_t)out.len);
}

static void an_envelope_may_be_empty(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(STREAM_MAX);
    struct envelope envelope;

    CHECK(envelope_add(&out, "", 0) == 0);
    CHECK(envelope_parse(out.data, out.len, &envelope) == ENVELOPE_HEADER_SIZE);
    CHECK(envelope.len == 0);
}

static void a_bad_header_is_refused_before_its_payload_comes(void)
{
    struct envelope envelope;

    CHECK(envelope_parse("\1", 1, &envelope) == -EPROTO, "(compressed)");
    CHECK(envelope_parse("\3\0\0\0\0", 5, &envelope) == -EPROTO);
    CHECK(envelope_parse("H", 1, &envelope) == -EPROTO);
    CHECK(envelope_parse("\0\0\x30\0\0", 5, &envelope) == 0, "(exactly the limit)");
    CHECK(envelope_parse("\0\0\x30\0\1", 5, &envelope) == -EMSGSIZE);
    CHECK(envelope_parse("\0\xff\xff\xff\xff", 5, &envelope) == -EMSGSIZE);
}

static void too_much_is_refused_and_adds_nothing(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(STREAM_MAX), small = BUF_INIT(8);
    cleanup_free char *payload = calloc(1, ENVELOPE_PAYLOAD_MAX + 1);

    CHECK(envelope_add(&out, payload, ENVELOPE_PAYLOAD_MAX + 1) == -EMSGSIZE);
    CHECK(envelope_add(&out, payload, ENVELOPE_PAYLOAD_MAX) == 0);
    CHECK(envelope_add(&small, "hello", 5) == -ENOBUFS);
    CHECK(small.len == 0);
}

static void a_large_one_is_for_who_asks_for_it(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(ENVELOPE_HEADER_SIZE + ENVELOPE_LARGE_MAX);
    cleanup_free char *payload = calloc(1, ENVELOPE_LARGE_MAX + 1);
    struct envelope envelope;

    CHECK(envelope_add_large(&out, payload, ENVELOPE_LARGE_MAX + 1) == -EMSGSIZE);
    CHECK(envelope_add_large(&out, payload, ENVELOPE_LARGE_MAX) == 0);
    CHECK(envelope_parse(out.data, out.len, &envelope) == -EMSGSIZE);
    CHECK(envelope_parse_up_to(out.data, out.len, ENVELOPE_LARGE_MAX - 1, &envelope) == -EMSGSIZE);
    CHECK(envelope_parse_up_to(out.data, out.len, ENVELOPE_LARGE_MAX, &envelope) ==
          (ssize_t)out.len);
    CHECK(envelope.len == ENVELOPE_LARGE_MAX);
}

/* Adds an end, parses it and reads it as libholt does. */
static int end_to_error(const struct err *err, struct holt_error *error)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(STREAM_MAX);
    struct envelope envelope;

    CHECK(envelope_add_end(&out, err) == 0);
    CHECK(envelope_parse(out.data, out.len, &envelope) == (ssize_t)out.len);
    CHECK(envelope.is_end);
    return error_from_end(error, envelope.payload, envelope.len);
}

static void an_end_carries_the_error(void)
{
    struct holt_error error;
    struct err err;

    CHECK(end_to_error(NULL, &error) == 0);
    (void)err_set(&err, ERR_NOT_FOUND, "no template \"x\"");
    CHECK(end_to_error(&err, &error) == -1);
    CHECK_TEXT(error.code, "not_found");
    CHECK_TEXT(error.message, "no template \"x\"");
    CHECK(!error.is_retryable && !*error.cause && !*error.remedy);
    (void)err_set(&err, ERR_INTERNAL, "\xc3\xbc");
    CHECK(end_to_error(&err, &error) == -1);
    CHECK_TEXT(error.message, "\xc3\xbc");
    (void)err_set(&err, ERR_INTERNAL, "bad \xff byte");
    CHECK(end_to_error(&err, &error) == -1);
    CHECK_TEXT(error.message, "bad ? byte");
}

static void an_error_has_every_field_and_nothing_of_the_last_one(void)
{
    static const char body[] = "{\"code\":\"not_found\",\"message\":\"m\",\"cause\":\"Why\","
                               "\"remedy\":\"so\",\"retryable\":true}";
    struct holt_error error;
    struct err err;

    (void)err_refuse(&err, CAUSE_SHUTTING_DOWN, "down");
    CHECK(end_to_error(&err, &error) == -1);
    CHECK_TEXT(error.code, "unavailable");
    CHECK_TEXT(error.cause, "ShuttingDown");
    CHECK_TEXT(error.remedy, err_remedy_of(&err));
    CHECK(error.is_retryable);
    (void)err_set(&err, ERR_NOT_FOUND, "x");
    CHECK(end_to_error(&err, &error) == -1);
    CHECK(!*error.cause && !*error.remedy && !error.is_retryable);
    error_from_reply(&error, 404, body, strlen(body));
    CHECK_TEXT(error.cause, "Why");
    CHECK_TEXT(error.remedy, "so");
    CHECK(error.is_retryable);
    error_from_reply(&error, 500, "", 0);
    CHECK(!*error.cause && !*error.remedy && !error.is_retryable);
    error_from_reply(&error, 502, "", 0);
    CHECK(error.is_retryable, "(unavailable)");
}

static void an_end_that_cannot_be_read_is_an_error(void)
{
    static const char *const ends[] = {
        "", "[]", "{", "{\"error\":1}", "{\"error\":{}}", "{\"error\":{\"code\":1}}",
    };
    struct holt_error error;

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        CHECK(error_from_end(&error, ends[i], strlen(ends[i])) == -1, "(%s)", ends[i]);
    CHECK(error_from_end(&error, "{\"error\":null,\"metadata\":{}}", 28) == 0);
}

int main(void)
{
    RUN(an_envelope_comes_back_as_it_went_in);
    RUN(a_part_of_an_envelope_asks_for_more);
    RUN(an_envelope_may_be_empty);
    RUN(a_bad_header_is_refused_before_its_payload_comes);
    RUN(too_much_is_refused_and_adds_nothing);
    RUN(a_large_one_is_for_who_asks_for_it);
    RUN(an_end_carries_the_error);
    RUN(an_error_has_every_field_and_nothing_of_the_last_one);
    RUN(an_end_that_cannot_be_read_is_an_error);
    return 0;
}
