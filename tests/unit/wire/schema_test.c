// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "check.h"
#include "wire/holt_v1.h"
#include "wire/schema.h"

enum { TEXT_MAX = 1 << 20 };

/* A decoded message with what it points to. */
struct decoded {
    json_t *object;
    struct arena arena;
    struct err err;
    int result;
};

static void decoded_done(struct decoded *decoded)
{
    arena_done(&decoded->arena);
    json_decref(decoded->object);
}

static struct decoded decode_limited(const struct schema *schema, void *message, const char *text,
                                     enum decode_mode mode, size_t limit)
{
    struct decoded decoded = { .arena = ARENA_INIT(limit) };

    CHECK(json_parse_with_nul(text, strlen(text), &decoded.object, &decoded.err) == 0, "(%s)",
          text);
    decoded.result =
        schema_decode(schema, message, decoded.object, mode, &decoded.arena, &decoded.err);
    return decoded;
}

static struct decoded decode(const struct schema *schema, void *message, const char *text,
                             enum decode_mode mode)
{
    return decode_limited(schema, message, text, mode, MESSAGE_BYTES_MAX);
}

/* A request with this text is refused with these words. */
static void refused(const struct schema *schema, const char *text, enum err_kind kind,
                    const char *message)
{
    cleanup_free void *memory = calloc(1, schema->size);
    cleanup_with(decoded_done) struct decoded decoded =
        decode(schema, memory, text, DECODE_REQUEST);

    CHECK(decoded.result < 0, "(%s)", text);
    CHECK(decoded.err.kind == kind, "(%s: %s)", text, decoded.err.msg);
    CHECK_TEXT(decoded.err.msg, message);
}

static void taken(const struct schema *schema, const char *text)
{
    cleanup_free void *memory = calloc(1, schema->size);
    cleanup_with(decoded_done) struct decoded decoded =
        decode(schema, memory, text, DECODE_REQUEST);

    CHECK(decoded.result == 0, "(%s: %s)", text, decoded.err.msg);
}

static void encodes_to(const struct schema *schema, const void *message, enum encode_mode mode,
                       const char *wanted)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

    CHECK(schema_encode(schema, message, mode, &out) == 0);
    CHECK_TEXT(out.data, wanted);
}

static void every_kind_of_field_is_decoded(void)
{
    struct msg_create_sandbox_request request;
    cleanup_with(decoded_done) struct decoded decoded = decode(
        SCHEMA(msg_create_sandbox_request, &request),
        "{\"name\":\"n\",\"limits\":{\"memoryBytes\":\"5\",\"cpuMillis\":7},"
        "\"quotaBytes\":1e3,\"labels\":{\"a\":\"b\",\"c\":\"\"},\"maxSnapshots\":\"3\","
        "\"volumes\":[{\"volume\":\"v\",\"path\":\"/p\"},{\"volume\":\"w\",\"path\":\"q\"}]}",
        DECODE_REQUEST);

    CHECK(decoded.result == 0, "(%s)", decoded.err.msg);
    CHECK_TEXT(request.name, "n");
    CHECK_TEXT(request.template, "");
    CHECK(request.limits && request.limits->memory_bytes == 5 && request.limits->cpu_millis == 7);
    CHECK(request.limits->pids == 0 && request.quota_bytes == 1000 && request.max_snapshots == 3);
    CHECK(request.labels_count == 2);
    CHECK_TEXT(request.labels[0].key, "a");
    CHECK_TEXT(request.labels[0].value, "b");
    CHECK_TEXT(request.labels[1].value, "");
    CHECK(request.volumes_count == 2);
    CHECK_TEXT(request.volumes[1].volume, "w");
    CHECK_TEXT(request.volumes[1].path, "q");
}

static void lists_of_text_end_with_null(void)
{
    struct msg_stats_request request;
    cleanup_with(decoded_done) struct decoded none =
        decode(SCHEMA(msg_stats_request, &request), "{}", DECODE_REQUEST);

    CHECK(none.result == 0 && request.sandbox_ids_count == 0 && !request.sandbox_ids[0]);
    {
        cleanup_with(decoded_done) struct decoded two = decode(
            SCHEMA(msg_stats_request, &request), "{\"sandboxIds\":[\"a\",\"b\"]}", DECODE_REQUEST);

        CHECK(two.result == 0 && request.sandbox_ids_count == 2);
        CHECK_TEXT(request.sandbox_ids[1], "b");
        CHECK(!request.sandbox_ids[2]);
    }
}

static void presence_is_told(void)
{
    struct msg_execute_tool_request request;
    struct msg_watch_response reply;
    struct msg_tool_content content;
    cleanup_with(decoded_done) struct decoded absent =
        decode(SCHEMA(msg_execute_tool_request, &request),
               "{\"sandboxId\":\"s\",\"tool\":\"t\",\"snapshot\":null}", DECODE_REQUEST);

    CHECK(absent.result == 0 && !request.has_snapshot && !request.params);
    {
        cleanup_with(decoded_done) struct decoded present =
            decode(SCHEMA(msg_execute_tool_request, &request),
                   "{\"sandboxId\":\"s\",\"tool\":\"t\",\"snapshot\":false,\"params\":{\"a\":[1]}}",
                   DECODE_REQUEST);

        CHECK(present.result == 0 && request.has_snapshot && !request.snapshot);
        CHECK(json_is_array(json_object_get(request.params, "a")));
    }
    {
        cleanup_with(decoded_done) struct decoded lost =
            decode(SCHEMA(msg_watch_response, &reply), "{\"lost\":\"0\"}", DECODE_REPLY);

        CHECK(lost.result == 0 && reply.has_lost && !reply.event && !reply.heartbeat);
    }
    {
        cleanup_with(decoded_done) struct decoded image =
            decode(SCHEMA(msg_tool_content, &content), "{\"image\":{}}", DECODE_REPLY);

        CHECK(image.result == 0 && !content.text.data && content.image);
    }
}

static void both_names_of_a_field_are_known(void)
{
    struct msg_get_process_request request;
    cleanup_with(decoded_done) struct decoded decoded = decode(
        SCHEMA(msg_get_process_request, &request),
        "{\"sandbox_id\":\"other\",\"process_id\":\"p\",\"sandboxId\":\"this\"}", DECODE_REQUEST);

    CHECK(decoded.result == 0, "(%s)", decoded.err.msg);
    CHECK_TEXT(request.sandbox_id, "this");
    CHECK_TEXT(request.process_id, "p");
    refused(&msg_get_process_request_schema, "{\"sandbox_Id\":\"x\"}", ERR_INVALID,
            "unknown field 'sandbox_Id'");
}

static void bytes_of_either_alphabet_are_decoded(void)
{
    static const char *const texts[] = { "+/8=", "-_8=", "+/8", "-_8" };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        cleanup_free char *text = NULL;
        struct msg_write_file_request request;

        CHECK(asprintf(&text, "{\"sandboxId\":\"s\",\"data\":\"%s\"}", texts[i]) > 0);
        cleanup_with(decoded_done) struct decoded decoded =
            decode(SCHEMA(msg_write_file_request, &request), text, DECODE_REQUEST);

        CHECK(decoded.result == 0, "(%s: %s)", text, decoded.err.msg);
        CHECK(request.data.len == 2 && memcmp(request.data.data, "\xfb\xff", 3) == 0);
        CHECK(!request.raw_path.data && !request.has_mode);
    }
    refused(&msg_write_file_request_schema, "{\"data\":\"*\"}", ERR_INVALID,
            "field 'data' must be base64");
    refused(&msg_write_file_request_schema, "{\"data\":5}", ERR_INVALID,
            "field 'data' must be text");
}

static void wrong_types_are_refused(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        { "{\"x\":1}", "unknown field 'x'" },
        { "{\"name\":5}", "field 'name' must be text" },
        { "{\"limits\":[]}", "field 'limits' must be an object" },
        { "{\"limits\":{\"x\":1}}", "unknown field 'x'" },
        { "{\"quotaBytes\":-1}", "field 'quotaBytes' must be a whole number, not negative" },
        { "{\"quotaBytes\":1.5}", "field 'quotaBytes' must be a whole number, not negative" },
        { "{\"quotaBytes\":\"18446744073709551616\"}",
          "field 'quotaBytes' must be a whole number, not negative" },
        { "{\"quotaBytes\":\" 7\"}", "field 'quotaBytes' must be a whole number, not negative" },
        { "{\"maxSnapshots\":4294967296}", "field 'maxSnapshots' is too large" },
        { "{\"labels\":{\"a\":5}}", "field 'labels': the value of 'a' must be text" },
        { "{\"volumes\":{}}", "field 'volumes' must be a list" },
        { "{\"volumes\":[5]}", "field 'volumes' must be a list of objects" },
        { "{\"name\":\"a\\u0000b\"}", "field 'name' has a NUL inside" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        refused(&msg_create_sandbox_request_schema, rows[i].text, ERR_INVALID, rows[i].message);
    refused(&msg_stats_request_schema, "{\"sandboxIds\":[5]}", ERR_INVALID,
            "field 'sandboxIds' must be a list of text");
    refused(&msg_diff_request_schema, "{\"lines\":1}", ERR_INVALID,
            "field 'lines' must be true or false");
}

static void rules_are_checked(void)
{
    static const struct {
        const struct schema *schema;
        const char *text;
        enum err_kind kind;
        const char *message;
    } rows[] = {
        { &msg_sandbox_request_schema, "{}", ERR_INVALID, "field 'sandboxId' is missing" },
        { &msg_sandbox_request_schema, "{\"sandboxId\":\"\"}", ERR_INVALID,
          "field 'sandboxId' is missing" },
        { &msg_sandbox_request_schema, "{\"sandboxId\":\"a..b\"}", ERR_INVALID,
          "field 'sandboxId': 'a..b' cannot be the id or the name of a sandbox: letters, digits, "
          "'.', '_' and '-', a letter or digit first, no '..', at most 128" },
        { &msg_run_request_schema, "{}", ERR_INVALID, "field 'process' is missing" },
        { &msg_run_request_schema, "{\"process\":{}}", ERR_INVALID, "field 'args' is missing" },
        { &msg_create_sandbox_request_schema, "{\"template\":\"A\"}", ERR_INVALID,
          "field 'template': 'A' is not a valid name" },
        { &msg_create_sandbox_request_schema, "{\"expireAction\":\"x\"}", ERR_INVALID,
          "field 'expireAction' must be kill, pause, stop or deep-pause" },
        { &msg_create_sandbox_request_schema, "{\"idempotencyKey\":\"a\\nb\"}", ERR_INVALID,
          "field 'idempotencyKey' has a control character" },
        { &msg_create_sandbox_request_schema, "{\"labels\":{\"a b\":\"\"}}", ERR_INVALID,
          "'a b' cannot be the key of a label: letters, digits, '.', '_', '/' and '-', at most "
          "63" },
        { &msg_create_sandbox_request_schema, "{\"ttlMs\":4611686018428}", ERR_INVALID,
          "field 'ttlMs' must be at most 4611686018427" },
        { &msg_create_sandbox_request_schema, "{\"volumes\":[{},{},{},{},{},{},{},{},{}]}",
          ERR_INVALID, "field 'volumes' has more than 8 items" },
        { &msg_fork_request_schema, "{\"sandboxId\":\"s\",\"count\":0}", ERR_INVALID,
          "field 'count' must be from 1 to 256" },
        { &msg_watch_stats_request_schema, "{\"intervalMs\":99}", ERR_INVALID,
          "field 'intervalMs' must be from 100 to 3600000" },
        { &msg_stats_request_schema, "{\"sandboxIds\":[\"a\",\"\"]}", ERR_INVALID,
          "field 'sandboxIds' has an empty item" },
        { &msg_tool_resources_schema, "{\"cpus\":256.5}", ERR_INVALID,
          "field 'cpus' must be a number from 0 to 256" },
        { &msg_stat_file_request_schema, "{\"sandboxId\":\"s\",\"rawPath\":\"AA==\"}", ERR_INVALID,
          "field 'rawPath' has a NUL inside" },
        { &msg_process_spec_schema, "{\"args\":[\"x\"],\"env\":{\"a=b\":\"\"}}", ERR_INVALID,
          "'a=b' cannot be the name of a variable" },
        { &msg_process_spec_schema, "{\"args\":[\"x\"],\"cwd\":\"x\"}", ERR_INVALID,
          "field 'cwd' must be an absolute path" },
        { &msg_launch_request_schema,
          "{\"sandboxId\":\"s\",\"process\":{\"args\":[\"x\"]},\"restart\":\"x\"}", ERR_INVALID,
          "field 'restart' must be no, on_failure or always, not 'x'" },
        { &msg_watch_request_schema, "{\"sinceTime\":\"x\"}", ERR_INVALID,
          "field 'sinceTime' must be like 2026-01-31T12:00:00Z, not 'x'" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        refused(rows[i].schema, rows[i].text, rows[i].kind, rows[i].message);
    taken(&msg_watch_stats_request_schema, "{\"intervalMs\":0}");
    taken(&msg_launch_request_schema,
          "{\"sandboxId\":\"s\",\"process\":{\"args\":[\"x\"]},\"restart\":2}");
}

static void an_absent_number_has_its_default(void)
{
    struct msg_fork_request request;
    cleanup_with(decoded_done) struct decoded decoded =
        decode(SCHEMA(msg_fork_request, &request), "{\"sandboxId\":\"s\"}", DECODE_REQUEST);

    CHECK(decoded.result == 0 && request.count == 1);
}

static void a_reply_may_be_newer(void)
{
    struct msg_ended ended;
    cleanup_with(decoded_done) struct decoded decoded = decode(
        SCHEMA(msg_ended, &ended),
        "{\"outcome\":\"new\",\"exitCode\":-5,\"new\":1,\"durationMs\":\"9\"}", DECODE_REPLY);

    CHECK(decoded.result == 0, "(%s)", decoded.err.msg);
    CHECK(ended.outcome == MSG_OUTCOME_UNKNOWN && ended.exit_code == -5);
    CHECK(ended.duration_ms == 9);
    CHECK_TEXT(ended.reason, "");
}

/* The names in upper case are those of earlier versions. */
static void enums_are_words_and_old_names_are_read(void)
{
    static const char *const texts[] = { "{\"outcome\":\"timed_out\",\"killedBy\":\"user\"}",
                                         "{\"outcome\":\"OUTCOME_TIMED_OUT\",\"killedBy\":1}" };
    cleanup_with(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct msg_ended ended;
        cleanup_with(decoded_done) struct decoded decoded =
            decode(SCHEMA(msg_ended, &ended), texts[i], DECODE_REQUEST);

        CHECK(decoded.result == 0, "(%s)", decoded.err.msg);
        CHECK(ended.outcome == MSG_OUTCOME_TIMED_OUT && ended.killed_by == MSG_KILLED_BY_USER);
    }
    CHECK(schema_encode(MESSAGE(msg_ended, .outcome = MSG_OUTCOME_TIMED_OUT), ENCODE_ALL, &out) ==
          0);
    CHECK(strstr(out.data, "\"outcome\":\"timed_out\"") &&
              strstr(out.data, "\"killedBy\":\"none\""),
          "(%s)", out.data);
}

static void a_message_has_a_limit(void)
{
    struct msg_stats_request request;
    cleanup_with(decoded_done) struct decoded decoded =
        decode_limited(SCHEMA(msg_stats_request, &request),
                       "{\"sandboxIds\":[\"a\",\"b\",\"c\",\"d\"]}", DECODE_REQUEST, 32);

    CHECK(decoded.result < 0 && decoded.err.kind == ERR_EXHAUSTED);
}

static void defaults_are_encoded(void)
{
    const struct msg_limits limits = { .memory_bytes = UINT64_MAX };
    const struct msg_template template = { .name = "t", .created_at = -5 };

    encodes_to(SCHEMA_OF(msg_limits, &limits), ENCODE_ALL,
               "{\"memoryBytes\":\"18446744073709551615\",\"cpuMillis\":0,\"pids\":0,\"files\":0}");
    encodes_to(SCHEMA_OF(msg_limits, &limits), ENCODE_SOME,
               "{\"memoryBytes\":\"18446744073709551615\"}");
    encodes_to(SCHEMA_OF(msg_template, &template), ENCODE_ALL,
               "{\"name\":\"t\",\"kind\":\"\",\"sizeBytes\":\"0\",\"files\":\"0\",\"createdAt\":"
               "\"-5\",\"ownerName\":\"\"}");
}

static void lists_maps_and_messages_are_encoded(void)
{
    const struct pair labels[] = { { "a", "b" }, { "c", "" } };
    const struct msg_limits limits = { .pids = 3 };
    const struct msg_sandbox sandbox = {
        .id = "s",
        .created_at_ms = 1500,
        .labels = labels,
        .labels_count = 2,
        .limits = &limits,
        .space_used = 0,
        .has_space_used = true,
    };
    const struct msg_list_sandboxes_response list = { .sandboxes = &sandbox, .sandboxes_count = 1 };

    encodes_to(SCHEMA_OF(msg_list_sandboxes_response, &list), ENCODE_SOME,
               "{\"sandboxes\":[{\"id\":\"s\",\"createdAt\":\"1970-01-01T00:00:01.500Z\","
               "\"labels\":{\"a\":\"b\",\"c\":\"\"},\"limits\":{\"pids\":3},\"spaceUsed\":"
               "\"0\"}]}");
    encodes_to(&msg_list_sandboxes_response_schema, &(struct msg_list_sandboxes_response){ 0 },
               ENCODE_ALL, "{\"sandboxes\":[]}");
    encodes_to(&msg_destroy_sandbox_response_schema, &(struct msg_destroy_sandbox_response){ 0 },
               ENCODE_ALL, "{}");
}

static void foreign_bytes_are_encoded(void)
{
    const struct msg_volume volume = { .id = "a\"\\\n\x01", .name = "\xc3\xa9\xff" };
    const struct msg_tool_content text = { .text = { "a\0b", 3 } };
    const struct msg_read_file_response bytes = { .data = { "\xfb\xff", 2 } };
    const struct msg_file_entry entry = { .path = "p",
                                          .modified_time = { true, 4, 1709168523 },
                                          .mode = 420 };

    encodes_to(SCHEMA_OF(msg_volume, &volume), ENCODE_ALL,
               "{\"id\":\"a\\\"\\\\\\n\\u0001\",\"name\":\"???\",\"owner\":\"\"}");
    encodes_to(SCHEMA_OF(msg_tool_content, &text), ENCODE_ALL, "{\"text\":\"a\\u0000b\"}");
    encodes_to(SCHEMA_OF(msg_read_file_response, &bytes), ENCODE_ALL, "{\"data\":\"+/8=\"}");
    encodes_to(SCHEMA_OF(msg_file_entry, &entry), ENCODE_SOME,
               "{\"path\":\"p\",\"mode\":420,\"modifiedTime\":\"2024-02-29T01:02:03.000000004Z\"}");
}

static void what_is_encoded_can_be_decoded(void)
{
    const struct msg_ended wanted = { .outcome = MSG_OUTCOME_SIGNALED,
                                      .exit_code = 137,
                                      .signal = 9,
                                      .reason = "why",
                                      .stdout_bytes = 1ULL << 60 };
    cleanup_with(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
    struct msg_ended got;

    CHECK(schema_encode(SCHEMA_OF(msg_ended, &wanted), ENCODE_ALL, &out) == 0);
    cleanup_with(decoded_done) struct decoded decoded =
        decode(SCHEMA(msg_ended, &got), out.data, DECODE_REPLY);
    CHECK(decoded.result == 0 && got.outcome == MSG_OUTCOME_SIGNALED && got.exit_code == 137);
    CHECK(got.signal == 9 && got.stdout_bytes == 1ULL << 60);
    CHECK_TEXT(got.reason, "why");
}

static void a_small_buffer_is_told(void)
{
    const struct msg_volume volume = { .id = "abc", .name = "def" };
    cleanup_with(buf_done) struct buf out = BUF_INIT(10);

    CHECK(schema_encode(SCHEMA_OF(msg_volume, &volume), ENCODE_ALL, &out) == -ENOBUFS);
}

int main(void)
{
    RUN(every_kind_of_field_is_decoded);
    RUN(lists_of_text_end_with_null);
    RUN(presence_is_told);
    RUN(both_names_of_a_field_are_known);
    RUN(bytes_of_either_alphabet_are_decoded);
    RUN(wrong_types_are_refused);
    RUN(rules_are_checked);
    RUN(an_absent_number_has_its_default);
    RUN(a_reply_may_be_newer);
    RUN(enums_are_words_and_old_names_are_read);
    RUN(a_message_has_a_limit);
    RUN(defaults_are_encoded);
    RUN(lists_maps_and_messages_are_encoded);
    RUN(foreign_bytes_are_encoded);
    RUN(what_is_encoded_can_be_decoded);
    RUN(a_small_buffer_is_told);
    return 0;
}
