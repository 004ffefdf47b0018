/* Calls of methods without a server: JSON text in, JSON text out. A method is named
 * "Service/Method"; what it calls is what the test has defined its function to. */
#pragma once

#define route_find test_route_find
#define route_at test_route_at
#define route_index test_route_index

#include "../../../src/api/route.c" // NOLINT(bugprone-suspicious-include)
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "check.h"
#include "http/stream.h"
#include "wire/envelope.h"

enum { TEXT_MAX = 32 << 20 };

static const struct call direct_call = { .caller = &caller_root, .connection_fd = -1 };

static const struct route *method_of(const char *name)
{
    cleanup_free char *path = xasprintf("/holt.v1.%s", name);
    const struct route *route = route_find(path);

    CHECK(route, "(no method %s)", name);
    return route;
}

/* A unary call whose answer is appended as text. */
static inline int direct_answer(const char *method, const json_t *request, struct buf *got,
                                struct err *err)
{
    struct call call = direct_call;
    int r;

    call.out = got;
    r = method_of(method)->unary(&call, request, err);
    if (r == 0 && got->len == 0)
        CHECK(buf_add_str(got, "{}") == 0);
    return r;
}

static inline int direct_stream(const char *method, const json_t *request, struct stream **ret,
                                struct err *err)
{
    return method_of(method)->stream(&direct_call, request, ret, err);
}

static json_t *request_of(const char *text)
{
    struct err err = { 0 };
    json_t *request = NULL;

    CHECK(json_parse_object(text, strlen(text), &request, &err) == 0, "(%s)", err.msg);
    return request;
}

/* The answer must be exactly this. */
static inline void answers(const char *method, const char *text, const char *wanted)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(TEXT_MAX);
    cleanup_json json_t *request = request_of(text);
    struct err err = { 0 };

    CHECK(direct_answer(method, request, &got, &err) == 0, "(%s)", err.msg);
    CHECK_TEXT(got.data, wanted);
}

static inline void refuses(const char *method, const char *text, enum err_kind kind,
                           const char *reason)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(TEXT_MAX);
    cleanup_json json_t *request = request_of(text);
    struct err err = { 0 };

    CHECK(direct_answer(method, request, &got, &err) < 0, "(%.200s was accepted)", text);
    CHECK(got.len == 0 && err.kind == kind, "(%s)", err.msg);
    CHECK(strstr(err.msg, reason), "(%s)", err.msg);
}

static inline void refuses_stream(const char *method, const char *text, enum err_kind kind,
                                  const char *reason)
{
    cleanup_json json_t *request = request_of(text);
    struct stream *stream = NULL;
    struct err err = { 0 };

    CHECK(direct_stream(method, request, &stream, &err) < 0, "(%.200s was accepted)", text);
    CHECK(!stream && err.kind == kind, "(%s)", err.msg);
    CHECK(strstr(err.msg, reason), "(%s)", err.msg);
}

static inline void lines_add(struct buf *lines, const struct buf *envelopes)
{
    const char *at = envelopes->data;
    size_t len = envelopes->len;

    while (len > 0) {
        struct envelope envelope;
        ssize_t size = envelope_parse(at, len, &envelope);

        CHECK(size > 0, "(%zd)", size);
        CHECK(buf_add(lines, envelope.payload, envelope.len) == 0);
        CHECK(buf_add_str(lines, "\n") == 0);
        at += size;
        len -= (size_t)size;
    }
}

/* All messages, one a line; an error as "error: ..." at the end. */
static inline void streams(const char *method, const char *text, struct buf *lines)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(2 * ENVELOPE_PAYLOAD_MAX);
    cleanup_json json_t *request = request_of(text);
    struct stream *stream = NULL;
    struct err err = { 0 };
    int r;

    CHECK(direct_stream(method, request, &stream, &err) == 0, "(%s)", err.msg);
    buf_clear(lines);
    do {
        buf_clear(&out);
        r = stream->ops->next(stream, &out, &err);
        lines_add(lines, &out);
    } while (r > 0);
    if (r < 0)
        CHECK(buf_printf(lines, "error: %s\n", err.msg) == 0);
    stream->ops->close(stream);
}
