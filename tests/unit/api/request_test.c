// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include "api/message/process_spec.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "check.h"
#include "http/connect.h"

/* A decoded request with what it points to. */
struct parsed {
    json_t *object;
    struct arena arena;
    struct msg_run_request request;
    struct process_spec process;
};

static void parsed_done(struct parsed *parsed)
{
    arena_done(&parsed->arena);
    json_decref(parsed->object);
}

static int parse(const char *text, struct parsed *ret, struct err *err)
{
    int r = json_parse_object(text, strlen(text), &ret->object, err);

    ret->arena.max = MESSAGE_BYTES_MAX;
    if (r == 0)
        r = schema_decode(SCHEMA(msg_run_request, &ret->request), ret->object, DECODE_REQUEST,
                          &ret->arena, err);
    return r < 0 ? r : process_spec_fill(ret->request.process, &ret->arena, &ret->process, err);
}

static void refuse(const char *text, enum err_kind kind, const char *reason)
{
    cleanup_with(parsed_done) struct parsed parsed = { 0 };
    struct err err = { 0 };

    CHECK(parse(text, &parsed, &err) < 0, "(%.200s was accepted)", text);
    CHECK(err.kind == kind, "(%s)", err.msg);
    CHECK(strstr(err.msg, reason), "(%s)", err.msg);
}

static void a_full_request_becomes_specs(void)
{
    cleanup_with(parsed_done) struct parsed parsed = { 0 };
    const struct process_spec *process = &parsed.process;
    const struct msg_sandbox_spec *sandbox;
    struct err err = { 0 };

    CHECK(parse("{\"sandbox\":{\"template\":\"debian\",\"runtime\":\"bwrap\",\"limits\":"
                "{\"memoryBytes\":\"536870912\",\"cpuMillis\":1500,\"pids\":256}},"
                "\"process\":{\"args\":[\"sh\",\"-c\",\"\"],\"env\":{\"A\":\"1=2\",\"B\":\"\"},"
                "\"cwd\":\"/tmp\",\"stdin\":true,\"terminal\":{\"rows\":24,\"columns\":80},"
                "\"timeoutMs\":30000}}",
                &parsed, &err) == 0,
          "(%s)", err.msg);
    sandbox = parsed.request.sandbox;
    CHECK_TEXT(sandbox->template, "debian");
    CHECK_TEXT(sandbox->runtime, "bwrap");
    CHECK(sandbox->limits->memory_bytes == 512 << 20 && sandbox->limits->cpu_millis == 1500);
    CHECK(sandbox->limits->pids == 256);
    CHECK_TEXT(process->args[0], "sh");
    CHECK_TEXT(process->args[1], "-c");
    CHECK_TEXT(process->args[2], "");
    CHECK(!process->args[3]);
    CHECK_TEXT(process->env[0], "A=1=2");
    CHECK_TEXT(process->env[1], "B=");
    CHECK(!process->env[2]);
    CHECK_TEXT(process->cwd, "/tmp");
    CHECK(process->has_stdin && process->has_terminal && process->timeout_ms == 30000);
    CHECK(process->rows == 24 && process->columns == 80);
}

static void the_least_request_leaves_defaults_to_the_host(void)
{
    cleanup_with(parsed_done) struct parsed parsed = { 0 };
    struct err err = { 0 };

    CHECK(
        parse("{\"sandbox\":{\"template\":\"\",\"runtime\":null},\"process\":{\"args\":[\"true\"],"
              "\"cwd\":\"\"}}",
              &parsed, &err) == 0,
        "(%s)", err.msg);
    CHECK_TEXT(parsed.request.sandbox->template, "");
    CHECK_TEXT(parsed.request.sandbox->runtime, "");
    CHECK(!parsed.process.cwd && !parsed.process.has_terminal && !parsed.process.env[0]);
}

static void wrong_requests_are_refused_with_the_reason(void)
{
    refuse("{}", ERR_INVALID, "'process' is missing");
    refuse("[]", ERR_INVALID, "not a JSON object");
    refuse("{\"process\":{}}", ERR_INVALID, "'args' is missing");
    refuse("{\"process\":{\"args\":[]}}", ERR_INVALID, "'args' is missing");
    refuse("{\"process\":{\"args\":[\"\"]}}", ERR_INVALID, "command is empty");
    refuse("{\"process\":{\"args\":[1]}}", ERR_INVALID, "list of text");
    refuse("{\"process\":{\"args\":\"ls\"}}", ERR_INVALID, "must be a list");
    refuse("{\"process\":{\"args\":[\"a\\u0000b\"]}}", ERR_INVALID, "not valid JSON");
    refuse("{\"process\":{\"args\":[\"a\"]},\"proces\":1}", ERR_INVALID, "unknown field 'proces'");
    refuse("{\"process\":{\"args\":[\"a\"],\"timeoutms\":1}}", ERR_INVALID, "unknown field");
    refuse("{\"process\":{\"args\":[\"a\"],\"env\":{\"\":\"x\"}}}", ERR_INVALID,
           "name of a variable");
    refuse("{\"process\":{\"args\":[\"a\"],\"env\":{\"A=B\":\"x\"}}}", ERR_INVALID,
           "name of a variable");
    refuse("{\"process\":{\"args\":[\"a\"],\"env\":{\"A\":1}}}", ERR_INVALID, "must be text");
    refuse("{\"process\":{\"args\":[\"a\"],\"cwd\":\"tmp\"}}", ERR_INVALID, "absolute");
    refuse("{\"process\":{\"args\":[\"a\"],\"terminal\":{}}}", ERR_INVALID, "'rows'");
    refuse("{\"process\":{\"args\":[\"a\"],\"terminal\":{\"rows\":1,\"columns\":65536}}}",
           ERR_INVALID, "'columns'");
    refuse("{\"process\":{\"args\":[\"a\"],\"timeoutMs\":-1}}", ERR_INVALID, "timeoutMs");
    refuse("{\"process\":{\"args\":[\"a\"],\"timeoutMs\":\"18446744073709551615\"}}", ERR_INVALID,
           "at most 4611686018427");
    refuse("{\"process\":{\"args\":[\"a\"]},\"sandbox\":{\"template\":\"../x\"}}", ERR_INVALID,
           "not a valid name");
    refuse("{\"process\":{\"args\":[\"a\"]},\"sandbox\":{\"limits\":{\"pids\":4294967296}}}",
           ERR_INVALID, "too large");
    refuse("{\"process\":{\"args\":[\"a\"]},\"sandbox\":{\"limits\":{\"disk\":1}}}", ERR_INVALID,
           "unknown field");
}

static void counts_and_sizes_are_bounded(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(8 << 20);

    CHECK(buf_add_str(&text, "{\"process\":{\"args\":[\"a\"") == 0);
    for (int i = 0; i < PROCESS_ARGS_MAX; i++)
        CHECK(buf_add_str(&text, ",\"\"") == 0);
    CHECK(buf_add_str(&text, "]}}") == 0);
    refuse(text.data, ERR_EXHAUSTED, "more than 260096 items");

    buf_clear(&text);
    CHECK(buf_add_str(&text, "{\"process\":{\"args\":[\"") == 0);
    for (int i = 0; i < PROCESS_ARGS_BYTES_MAX; i++)
        CHECK(buf_add(&text, "x", 1) == 0);
    CHECK(buf_add_str(&text, "\"]}}") == 0);
    refuse(text.data, ERR_EXHAUSTED, "longer than");
}

static void deep_nesting_is_refused(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(8 << 20);

    for (int i = 0; i < 100000; i++)
        CHECK(buf_add_str(&text, "{\"a\":") == 0);
    refuse(text.data, ERR_INVALID, "not valid JSON");
}

static void content_types_match_with_parameters_only(void)
{
    CHECK(connect_type_is("application/json", CONNECT_UNARY_TYPE));
    CHECK(connect_type_is("Application/JSON; charset=utf-8", CONNECT_UNARY_TYPE));
    CHECK(!connect_type_is("application/jsonx", CONNECT_UNARY_TYPE));
    CHECK(!connect_type_is("application/connect+json", CONNECT_UNARY_TYPE));
    CHECK(!connect_type_is(NULL, CONNECT_UNARY_TYPE));
}

static void an_error_body_is_always_valid_json(void)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(4096);
    struct err err;

    (void)err_set(&err, ERR_INVALID, "cut off: \xc3");
    CHECK(connect_error_write(&body, &err) == 0);
    CHECK_TEXT(body.data,
               "{\"code\":\"invalid_argument\",\"message\":\"cut off: ?\",\"retryable\":false}");
}

/* The value is what protoc --encode=holt.v1.ErrorInfo makes of the same, in base64. */
static void an_error_body_has_every_field(void)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(4096);
    struct err err;

    (void)err_refuse(&err, CAUSE_SESSION_NOT_FOUND, "no \"t\xc3\xa4st\"");
    (void)err_remedy(&err, "look");
    CHECK(connect_error_write(&body, &err) == 0);
    CHECK_TEXT(body.data, "{\"code\":\"not_found\",\"message\":\"no \\\"t\xc3\xa4st\\\"\","
                          "\"cause\":\"SessionNotFound\",\"remedy\":\"look\",\"retryable\":false,"
                          "\"details\":[{\"type\":\"holt.v1.ErrorInfo\","
                          "\"value\":\"Cg9TZXNzaW9uTm90Rm91bmQSBGxvb2s\"}]}");
    buf_clear(&body);
    (void)err_set(&err, ERR_UNAVAILABLE, "x");
    CHECK(connect_error_write(&body, &err) == 0);
    CHECK_TEXT(body.data, "{\"code\":\"unavailable\",\"message\":\"x\",\"retryable\":true,"
                          "\"details\":[{\"type\":\"holt.v1.ErrorInfo\",\"value\":\"GAE\"}]}");
}

int main(void)
{
    RUN(a_full_request_becomes_specs);
    RUN(the_least_request_leaves_defaults_to_the_host);
    RUN(wrong_requests_are_refused_with_the_reason);
    RUN(counts_and_sizes_are_bounded);
    RUN(deep_nesting_is_refused);
    RUN(content_types_match_with_parameters_only);
    RUN(an_error_body_is_always_valid_json);
    RUN(an_error_body_has_every_field);
    return 0;
}
