// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "gateway/request.h"

static bool body_read_as(enum request_call call, const char *text, size_t part,
                         struct request_body *ret)
{
    size_t len = strlen(text);

    request_body_init(ret, call);
    for (size_t i = 0; i < len; i += part)
        if (request_body_feed(ret, text + i, part < len - i ? part : len - i) < 0)
            return false;
    return request_body_is_whole(ret);
}

static bool body_read(const char *text, size_t part, struct request_body *ret)
{
    return body_read_as(CALL_CHAT, text, part, ret);
}

static void calls_are_found_by_method_and_path(void)
{
    enum provider_kind kind;

    CHECK(request_classify("POST", "/v1/messages?beta=true", false, &kind) == CALL_MESSAGES);
    CHECK(kind == PROVIDER_ANTHROPIC);
    CHECK(request_classify("POST", "/v1/messages/count_tokens", false, &kind) == CALL_COUNT);
    CHECK(request_classify("POST", "/v1/responses", true, &kind) == CALL_RESPONSES);
    CHECK(kind == PROVIDER_OPENAI);
    CHECK(request_classify("GET", "/v1/models", true, &kind) == CALL_MODELS);
    CHECK(kind == PROVIDER_ANTHROPIC);
    CHECK(request_classify("GET", "/v1/models/x%2Fy?a", true, &kind) == CALL_ENTRY);
    CHECK(kind == PROVIDER_ANTHROPIC);
    CHECK(request_classify("POST", "/v1/models/x", false, &kind) == CALL_UNKNOWN);
    CHECK(request_classify("HEAD", "/", false, &kind) == CALL_PROBE);
    CHECK(request_classify("GET", "/v1/messages", false, &kind) == CALL_UNKNOWN);
    CHECK(request_classify("POST", "/v1/messagesx", false, &kind) == CALL_UNKNOWN);
    CHECK(request_classify("POST", "/v1/../v1/messages", false, &kind) == CALL_UNKNOWN);
}

static void members_of_the_root_count(void)
{
    static const char text[] = " {\"messages\":[{\"model\":\"x\",\"max_tokens\":9}],\"metadata\":"
                               "{\"model\":\"y\"},\"max_tokens\":100,\"stream\":true,"
                               "\"model\" : \"fast\",\"n\":2,\"temperature\":-1.5e3,\"x\":null} ";
    struct request_body body;

    for (size_t part = 1; part < sizeof(text); part++) {
        CHECK(body_read(text, part, &body), "(parts of %zu)", part);
        CHECK(strcmp(body.model, "fast") == 0 && body.max_output == 100 && body.choices == 2);
        CHECK(body.is_stream);
    }
}

static void names_of_entries_are_decoded(void)
{
    char name[MODEL_NAME_MAX + 1], target[400] = "/v1/models/";

    CHECK(request_entry_name("/v1/models/a%2fB%2Fc-1.5?x=%00", name) == 0);
    CHECK(strcmp(name, "a/B/c-1.5") == 0);
    CHECK(request_entry_name("/v1/models/", name) < 0);
    CHECK(request_entry_name("/v1/models/a%0", name) < 0);
    CHECK(request_entry_name("/v1/models/a%g0", name) < 0);
    CHECK(request_entry_name("/v1/models/a%00b", name) < 0);
    memset(target + strlen(target), 'a', MODEL_NAME_MAX + 1);
    CHECK(request_entry_name(target, name) < 0);
}

/* A provider passes over what its format does not have, and would take its own maximum. */
static void the_limit_of_another_format_limits_nothing(void)
{
    struct request_body body;

    CHECK(body_read_as(CALL_CHAT, "{\"model\":\"a\",\"max_output_tokens\":1}", 9, &body));
    CHECK(body.max_output == 0);
    CHECK(body_read_as(CALL_RESPONSES, "{\"model\":\"a\",\"max_tokens\":1,\"n\":3}", 9, &body));
    CHECK(body.max_output == 0 && body.choices == 0);
    CHECK(body_read_as(CALL_RESPONSES, "{\"model\":\"a\",\"max_output_tokens\":7}", 9, &body));
    CHECK(body.max_output == 7 && !body.is_background);
    CHECK(body_read_as(CALL_MESSAGES,
                       "{\"model\":\"a\",\"max_completion_tokens\":1,\"max_tokens\":8}", 9, &body));
    CHECK(body.max_output == 8);
    CHECK(body_read_as(CALL_RESPONSES, "{\"model\":\"a\",\"background\":true}", 9, &body));
    CHECK(body.is_background);
    CHECK(body_read_as(CALL_RESPONSES, "{\"model\":\"a\",\"background\":false}", 9, &body));
    CHECK(!body.is_background);
}

static void only_the_name_of_the_model_changes(void)
{
    static const char text[] = "{\"a\":\"\\u00e9 \\\" model\", \"model\":\"fast\" ,\"b\":[1]}";
    static const char wanted[] = "{\"a\":\"\\u00e9 \\\" model\", \"model\":\"real-1\" ,\"b\":[1]}";
    cleanup_with(buf_done) struct buf out = BUF_INIT(1000);
    struct request_body body;

    CHECK(body_read(text, 7, &body));
    CHECK(request_body_rename(&body, text, strlen(text), "real-1", &out) == 0);
    CHECK(strcmp(out.data, wanted) == 0, "(%s)", out.data);
}

/* What the provider could read in another way is refused. */
static void ambiguous_bodies_are_refused(void)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"model\":\"a\",\"model\":\"b\"}",
        "{\"model\":\"a\",\"mod\\u0065l\":\"b\"}",
        "{\"model\":\"a\\u0062\"}",
        "{\"model\":5}",
        "{\"model\":\"a\",\"max_tokens\":5,\"max_tokens\":50}",
        "{\"model\":\"a\",\"max_tokens\":-5}",
        "{\"model\":\"a\",\"max_tokens\":\"5\"}",
        "{\"model\":\"a\",\"max_tokens\":1e9}",
        "{\"model\":\"a\",\"Model\":\"b\"}",
        "{\"MODEL\":\"b\",\"model\":\"a\"}",
        "{\"model\":\"a\",\"Max_Tokens\":5}",
        "{\"model\":\"a\",\"max_to\342\204\252ens\":5}",
        "{\"model\":\"a\",\"model\x01\":5}",
        "{\"model\":\"a\"",
        "{\"model\":\"a\"}{",
        "{\"model\":\"a\",}",
        "{\"model\" \"a\"}",
        "{\"model\":\"a\" \"b\":1}",
        "{\"model\":\"a\",\"b\":[1}",
        "{\"model\":\"a\",'b':1}",
    };
    struct request_body body;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(!body_read(bad[i], 3, &body), "(%s)", bad[i]);
}

static void depth_is_bounded(void)
{
    enum { DEPTH = 100000 };
    cleanup_free char *text = calloc(1, DEPTH + 1);
    struct request_body body;

    CHECK(text != NULL);
    memcpy(text, "{\"a\":", 5);
    memset(text + 5, '[', DEPTH - 5);
    CHECK(!body_read(text, 4096, &body));
}

static void errors_have_the_shape_of_the_provider(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(4000);

    CHECK(request_put_error(PROVIDER_ANTHROPIC, ERROR_RATE, "too \"much\"", 12, &out) == 0);
    CHECK(strncmp(out.data, "HTTP/1.1 429 Too Many Requests\r\n", 32) == 0);
    CHECK(strstr(out.data, "Retry-After: 12\r\n") && !strstr(out.data, "X-Should-Retry"));
    CHECK(strstr(out.data, "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\","
                           "\"message\":\"too \\\"much\\\"\"}}"));
    buf_clear(&out);
    CHECK(request_put_error(PROVIDER_OPENAI, ERROR_QUOTA, "x", 5000, &out) == 0);
    CHECK(strstr(out.data, "X-Should-Retry: false\r\n"));
    CHECK(strstr(out.data, "\"code\":\"insufficient_quota\""));
    buf_clear(&out);
    CHECK(request_put_error(PROVIDER_OPENAI, ERROR_RATE, "x", 50, &out) == 0);
    CHECK(strstr(out.data, "\"code\":\"rate_limit_exceeded\""));
    buf_clear(&out);
    CHECK(request_put_error(PROVIDER_OPENAI, ERROR_PATH, "x", 0, &out) == 0);
    CHECK(strncmp(out.data, "HTTP/1.1 404 Not Found\r\n", 24) == 0);
    CHECK(strstr(out.data, "\"code\":\"unknown_url\""));
}

int main(void)
{
    RUN(calls_are_found_by_method_and_path);
    RUN(members_of_the_root_count);
    RUN(names_of_entries_are_decoded);
    RUN(the_limit_of_another_format_limits_nothing);
    RUN(only_the_name_of_the_model_changes);
    RUN(ambiguous_bodies_are_refused);
    RUN(depth_is_bounded);
    RUN(errors_have_the_shape_of_the_provider);
    return 0;
}
