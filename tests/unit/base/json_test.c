// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "check.h"

static json_t *object_of(const char *text)
{
    struct err err = { 0 };
    json_t *object = NULL;

    CHECK(json_parse_object(text, strlen(text), &object, &err) == 0, "(%s: %s)", text, err.msg);
    return object;
}

static void only_one_whole_object_is_a_message(void)
{
    static const char *const bad[] = { "",
                                       "null",
                                       "[]",
                                       "1",
                                       "{",
                                       "{} {}",
                                       "{}x",
                                       "{a:1}",
                                       "{\"a\":}",
                                       "{\"a\":1,}",
                                       "{'a':1}",
                                       "\"\xff\"",
                                       "{\"a\":1,\"a\":2}" };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err err = { 0 };
        json_t *object = NULL;

        CHECK(json_parse_object(bad[i], strlen(bad[i]), &object, &err) < 0, "(%s)", bad[i]);
        CHECK(err.kind == ERR_INVALID && !object, "(%s)", bad[i]);
    }
}

static void deep_nesting_is_refused_not_recursed(void)
{
    enum { DEPTH = 100000 };
    cleanup_with(buf_done) struct buf text = BUF_INIT(DEPTH + 16);
    struct err err = { 0 };
    json_t *object = NULL;

    CHECK(buf_add_str(&text, "{\"a\":") == 0);
    for (int i = 0; i < DEPTH; i++)
        CHECK(buf_add(&text, "[", 1) == 0);
    CHECK(json_parse_object(text.data, text.len, &object, &err) < 0);
    CHECK(err.kind == ERR_INVALID);
}

static void absent_and_null_fields_leave_the_default(void)
{
    cleanup_json json_t *object = object_of("{\"n\":null}");
    struct err err = { 0 };
    const char *text = "default";
    uint64_t number = 7;
    bool flag = true;

    CHECK(json_get_text(object, "n", &text, &err) == 0);
    CHECK(json_get_text(object, "gone", &text, &err) == 0);
    CHECK(json_get_u64(object, "n", &number, &err) == 0);
    CHECK(json_get_bool(object, "gone", &flag, &err) == 0);
    CHECK_TEXT(text, "default");
    CHECK(number == 7 && flag);
}

static void a_wrong_type_is_refused_by_name(void)
{
    cleanup_json json_t *object = object_of("{\"x\":{\"y\":1},\"s\":\"text\",\"n\":1}");
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(16);
    struct err err = { 0 };
    const char *text = NULL;
    const json_t *inner = NULL;
    uint64_t number = 0;
    bool flag = false;

    CHECK(json_get_text(object, "x", &text, &err) == -EINVAL);
    CHECK_TEXT(err.msg, "field 'x' must be text");
    CHECK(json_get_u64(object, "s", &number, &err) == -EINVAL);
    CHECK(json_get_bool(object, "n", &flag, &err) == -EINVAL);
    CHECK(json_get_array(object, "x", &inner, &err) == -EINVAL);
    CHECK(json_get_object(object, "s", &inner, &err) == -EINVAL);
    CHECK(json_get_bytes(object, "s", &bytes, &err) == 0, "('text' is base64)");
    CHECK(json_get_bytes(object, "n", &bytes, &err) == -EINVAL);
    CHECK(json_get_object(object, "x", &inner, &err) == 0 && inner);
}

static void numbers_come_as_numbers_or_as_text(void)
{
    cleanup_json json_t *object = object_of("{\"a\":5,\"b\":\"18446744073709551615\",\"c\":-1,"
                                            "\"d\":1.5,\"e\":\"-1\",\"f\":4294967296}");
    struct err err = { 0 };
    uint64_t wide = 0;
    uint32_t narrow = 9;

    CHECK(json_get_u64(object, "a", &wide, &err) == 0 && wide == 5);
    CHECK(json_get_u64(object, "b", &wide, &err) == 0 && wide == UINT64_MAX);
    CHECK(json_get_u64(object, "c", &wide, &err) == -EINVAL);
    CHECK(json_get_u64(object, "d", &wide, &err) == -EINVAL);
    CHECK(json_get_u64(object, "e", &wide, &err) == -EINVAL);
    CHECK(json_get_u32(object, "f", &narrow, &err) == -EINVAL);
    CHECK(narrow == 9 && wide == UINT64_MAX, "(a refusal writes nothing)");
}

static void bytes_beyond_the_buffer_are_exhausted_not_cut(void)
{
    cleanup_json json_t *object = object_of("{\"data\":\"Zm9vYmFy\"}");
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(5);
    struct err err = { 0 };

    CHECK(json_get_bytes(object, "data", &bytes, &err) == -ENOSPC);
    CHECK(err.kind == ERR_EXHAUSTED && bytes.len == 0);
}

static void a_field_has_its_json_name_or_that_of_the_proto(void)
{
    static const char *const names[] = { "sandboxId", "timeoutMs", NULL };
    static const char *const others[] = { "{\"sandbox_Id\":1}", "{\"sandboxid\":1}",
                                          "{\"sandbox_id_\":1}", "{\"_sandbox_id\":1}",
                                          "{\"sandbox__id\":1}" };
    cleanup_json json_t *object = object_of("{\"sandbox_id\":\"x\",\"timeoutMs\":7}");
    const char *text = NULL;
    uint64_t number = 0;
    struct err err;

    CHECK(json_get_text(object, "sandboxId", &text, &err) == 0);
    CHECK_TEXT(text, "x");
    CHECK(json_get_u64(object, "timeoutMs", &number, &err) == 0 && number == 7);
    CHECK(json_only_fields(object, names, &err) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        cleanup_json json_t *other = object_of(others[i]);

        CHECK(!json_field(other, "sandboxId"), "(%s)", others[i]);
        CHECK(json_only_fields(other, names, &err) == -EINVAL, "(%s)", others[i]);
    }
}

static void bytes_come_in_every_base64_that_proto3_allows(void)
{
    static const char *const good[] = { "{\"b\":\"+/8=\"}", "{\"b\":\"+/8\"}", "{\"b\":\"-_8=\"}",
                                        "{\"b\":\"-_8\"}" };
    static const char *const bad[] = { "{\"b\":\"+/8==\"}", "{\"b\":\"+\"}", "{\"b\":\"=\"}",
                                       "{\"b\":\"+/9\"}", "{\"b\":\"+ /8\"}" };
    struct err err;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        cleanup_with(buf_done) struct buf bytes = BUF_INIT(16);
        cleanup_json json_t *object = object_of(good[i]);

        CHECK(json_get_bytes(object, "b", &bytes, &err) == 0, "(%s)", good[i]);
        CHECK(bytes.len == 2 && memcmp(bytes.data, "\xfb\xff", 2) == 0, "(%s)", good[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        cleanup_with(buf_done) struct buf bytes = BUF_INIT(16);
        cleanup_json json_t *object = object_of(bad[i]);

        CHECK(json_get_bytes(object, "b", &bytes, &err) == -EINVAL, "(%s)", bad[i]);
        CHECK(bytes.len == 0, "(%s)", bad[i]);
    }
}

static void an_unknown_field_is_named(void)
{
    static const char *const known[] = { "a", "b", NULL };
    cleanup_json json_t *good = object_of("{\"b\":1}");
    cleanup_json json_t *bad = object_of("{\"a\":1,\"memroy\":2}");
    struct err err = { 0 };

    CHECK(json_only_fields(good, known, &err) == 0);
    CHECK(json_only_fields(bad, known, &err) == -EINVAL);
    CHECK_TEXT(err.msg, "unknown field 'memroy'");
}

static void wide_numbers_are_written_as_text(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64);
    cleanup_json json_t *object = json_object();

    CHECK(json_object_set_new(object, "n", json_u64(UINT64_MAX)) == 0);
    CHECK(json_write(object, &out) == 0);
    CHECK_TEXT(out.data, "{\"n\":\"18446744073709551615\"}");
}

static void writing_past_the_limit_is_an_error(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(4);
    cleanup_json json_t *value = json_string("longer than four");

    CHECK(json_write(value, &out) == -ENOBUFS);
}

static void a_text_that_is_written_is_read_the_same(void)
{
    static const char tail[] = "caf\xc3\xa9 \"quoted\" \\ end\x7f";
    cleanup_with(buf_done) struct buf got = BUF_INIT(4096), small = BUF_INIT(16);
    char text[128 + sizeof(tail)];
    cleanup_json json_t *value = NULL;

    for (int i = 0; i < 128; i++)
        text[i] = (char)i;
    memcpy(text + 128, tail, sizeof(tail));
    CHECK(json_add_text(&got, text, sizeof(text) - 1) == 0);
    value = json_loadb(got.data, got.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    CHECK(value && json_string_length(value) == sizeof(text) - 1);
    CHECK(memcmp(json_string_value(value), text, sizeof(text) - 1) == 0);
    CHECK(json_add_text(&small, text, sizeof(text) - 1) == -ENOBUFS);
    buf_clear(&got);
    CHECK(json_add_text(&got, "", 0) == 0);
    CHECK_TEXT(got.data, "\"\"");
}

int main(void)
{
    RUN(a_text_that_is_written_is_read_the_same);
    RUN(only_one_whole_object_is_a_message);
    RUN(deep_nesting_is_refused_not_recursed);
    RUN(absent_and_null_fields_leave_the_default);
    RUN(a_wrong_type_is_refused_by_name);
    RUN(numbers_come_as_numbers_or_as_text);
    RUN(bytes_beyond_the_buffer_are_exhausted_not_cut);
    RUN(a_field_has_its_json_name_or_that_of_the_proto);
    RUN(bytes_come_in_every_base64_that_proto3_allows);
    RUN(an_unknown_field_is_named);
    RUN(wide_numbers_are_written_as_text);
    RUN(writing_past_the_limit_is_an_error);
    return 0;
}
