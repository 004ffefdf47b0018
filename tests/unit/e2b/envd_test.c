// SPDX-License-Identifier: Apache-2.0
/* The messages of E2B's envd, without a sandbox: forms, compressed bodies, messages, paths. */
#include <signal.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/file_entry.h"
#include "base/json.h"
#include "check.h"
#include "e2b/envd/entry.h"
#include "e2b/envd/inflate.h"
#include "e2b/envd/multipart.h"
#include "e2b/envd/process_message.h"
#include "wire/envelope.h"

enum { TEXT_MAX = 1 << 20 };

/* --- forms ------------------------------------------------------------------------------------ */

/* What a form was taken for: "[name|filename]bytes." for each part. */
static int part_begin(void *context, const char *name, const char *filename, struct err *err)
{
    (void)err;
    return buf_printf(context, "[%s|%s]", name, filename);
}

static int part_data(void *context, const void *data, size_t len, struct err *err)
{
    (void)err;
    return buf_add(context, data, len);
}

static int part_end(void *context, struct err *err)
{
    (void)err;
    return buf_add_str(context, ".");
}

static const struct multipart_ops ops = { part_begin, part_data, part_end };

/* Feeds it in pieces of so many bytes. */
static int form_read(const char *type, const char *text, size_t len, size_t piece, struct buf *ret,
                     struct err *err)
{
    cleanup_with(multipart_done) struct multipart form = { 0 };
    int r = multipart_init(&form, type, &ops, ret, err);

    for (size_t at = 0; r == 0 && at < len; at += piece)
        r = multipart_feed(&form, text + at, len - at < piece ? len - at : piece, err);
    return r == 0 ? multipart_finish(&form, err) : r;
}

static void check_form(const char *type, const char *text, const char *wanted)
{
    for (size_t piece = 1; piece <= strlen(text); piece++) {
        cleanup_with(buf_done) struct buf seen = BUF_INIT(TEXT_MAX);
        struct err err = { 0 };

        CHECK(form_read(type, text, strlen(text), piece, &seen, &err) == 0, "(%zu: %s)", piece,
              err.msg);
        CHECK(strcmp(seen.data ? seen.data : "", wanted) == 0, "(%zu: got '%s', wanted '%s')",
              piece, seen.data ? seen.data : "", wanted);
    }
}

static void a_form_comes_apart_however_it_is_cut(void)
{
    check_form("multipart/form-data; boundary=B",
               "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n"
               "Content-Type: text/plain\r\n\r\none\r\ntwo\r\n--B\r\n"
               "content-disposition: form-data; filename=\"b;=%22c\\\"\"; name=file\r\n\r\n"
               "\r\n--b\r\n-\r\n--B--\r\nrest",
               "[file|a.txt]one\r\ntwo.[file|b;=\"c\"]\r\n--b\r\n-.");
    check_form("multipart/form-data; charset=x; boundary=\"a b\"",
               "before\r\n--a b \t\r\nX: y\r\n\r\n\r\n--a b--", "[|].");
    check_form("multipart/form-data; boundary=B", "--B\r\n\r\n\r\n--B\r\n\r\nx\r\n--B--",
               "[|].[|]x.");
    check_form("multipart/form-data; boundary=B", "--B--", "");
}

static void check_form_refused(const char *type, const char *text, size_t len, const char *why)
{
    cleanup_with(buf_done) struct buf seen = BUF_INIT(TEXT_MAX);
    struct err err = { 0 };

    CHECK(form_read(type, text, len, 4096, &seen, &err) < 0);
    CHECK(err.kind == ERR_INVALID && strstr(err.msg, why), "(%s)", err.msg);
}

static void check_text_refused(const char *type, const char *text, const char *why)
{
    check_form_refused(type, text, strlen(text), why);
}

static void what_is_no_form_is_refused(void)
{
    static const char nul[] = "--B\r\nA: \0\r\n\r\nx\r\n--B--";
    static char large[2 * MULTIPART_HEADER_MAX];
    const char *type = "multipart/form-data; boundary=B";

    check_text_refused("multipart/form-data", "", "boundary");
    check_text_refused(type, "", "no end");
    check_text_refused(type, "--B\r\n\r\nx", "no end");
    check_text_refused(type, "--Bx\r\n\r\nx\r\n--B--", "own line");
    check_form_refused(type, nul, sizeof(nul) - 1, "NUL");
    memset(large, 'h', sizeof(large));
    memcpy(large, "--B\r\n", 5);
    check_form_refused(type, large, sizeof(large), "longer than");
}

/* --- gzip ------------------------------------------------------------------------------------- */

static size_t pack(const char *text, unsigned char *ret, size_t size)
{
    z_stream zlib = { .next_in = (unsigned char *)(uintptr_t)text,
                      .avail_in = (unsigned)strlen(text),
                      .next_out = ret,
                      .avail_out = (unsigned)size };

    CHECK(deflateInit2(&zlib, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    CHECK(deflate(&zlib, Z_FINISH) == Z_STREAM_END);
    CHECK(deflateEnd(&zlib) == Z_OK);
    return size - zlib.avail_out;
}

static int unpack(const unsigned char *data, size_t len, size_t piece, struct buf *ret,
                  struct err *err)
{
    struct inflater *inflater = inflater_new(part_data, ret);
    int r = 0;

    for (size_t at = 0; r == 0 && at < len; at += piece)
        r = inflater_feed(inflater, data + at, len - at < piece ? len - at : piece, err);
    if (r == 0)
        r = inflater_finish(inflater, err);
    inflater_free(inflater);
    return r;
}

static void what_is_packed_comes_out_however_it_is_cut(void)
{
    unsigned char packed[1024];
    size_t len = pack("hello ", packed, sizeof(packed));

    len += pack("again", packed + len, sizeof(packed) - len);
    for (size_t piece = 1; piece <= len; piece++) {
        cleanup_with(buf_done) struct buf seen = BUF_INIT(TEXT_MAX);
        struct err err = { 0 };

        CHECK(unpack(packed, len, piece, &seen, &err) == 0, "(%zu: %s)", piece, err.msg);
        CHECK_TEXT(seen.data, "hello again");
    }
    for (size_t cut = 1; cut <= 3; cut++) {
        cleanup_with(buf_done) struct buf seen = BUF_INIT(TEXT_MAX);
        struct err err = { 0 };

        CHECK(unpack(packed, len - cut, 7, &seen, &err) < 0 && err.kind == ERR_INVALID);
    }
}

static void a_little_that_becomes_much_is_handed_on_in_parts(void)
{
    static char text[900 * 1024];
    static unsigned char packed[64 * 1024];
    cleanup_with(buf_done) struct buf seen = BUF_INIT(TEXT_MAX);
    struct err err = { 0 };
    size_t len;

    memset(text, 'x', sizeof(text) - 1);
    len = pack(text, packed, sizeof(packed));
    CHECK(unpack(packed, len, sizeof(packed), &seen, &err) == 0, "(%s)", err.msg);
    CHECK(seen.len == sizeof(text) - 1);
}

/* --- messages --------------------------------------------------------------------------------- */

static json_t *json_of(const char *text)
{
    json_t *value = json_loads(text, JSON_ALLOW_NUL, NULL);

    CHECK(value, "(%s)", text);
    return value;
}

/* Decodes and checks the message of Start. */
static int start_of(const json_t *json, struct arena *arena, struct e2b_start *ret, struct err *err)
{
    struct envd_start_request message;
    cleanup_json json_t *env = json_of("{\"A\": \"sandbox\", \"B\": \"2\"}");
    const struct e2b_surroundings around = { .user = "user:0",
                                             .cwd = "~",
                                             .env = env,
                                             .sandbox_id = "sb1",
                                             .template_name = "base",
                                             .timeout_ms = 60000 };

    int r = schema_decode(SCHEMA(envd_start_request, &message), json, DECODE_LENIENT, arena, err);

    return r < 0 ? r : e2b_start_parse(&message, &around, ret, err);
}

static void a_start_becomes_what_the_host_takes(void)
{
    cleanup_json json_t *message = json_of(
        "{\"process\": {\"cmd\": \"/bin/bash\", \"args\": [\"-c\", \"true\"], \"envs\": "
        "{\"A\": \"own\"}, \"cwd\": \"x\"}, \"stdin\": false, \"tag\": \"t\", \"unknown\": 1, "
        "\"pty\": {\"size\": {\"cols\": 80, \"rows\": 24}}}");
    cleanup_with(e2b_start_done) struct e2b_start start = { 0 };
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(TEXT_MAX);
    struct err err = { 0 };

    CHECK(start_of(message, &arena, &start, &err) == 0, "(%s)", err.msg);
    CHECK_TEXT(start.spec.args[0], "/bin/bash");
    CHECK_TEXT(start.spec.args[2], "true");
    CHECK(!start.spec.args[3]);
    CHECK_TEXT(start.spec.env[0], "E2B_SANDBOX=true");
    CHECK_TEXT(start.spec.env[1], "E2B_SANDBOX_ID=sb1");
    CHECK_TEXT(start.spec.env[2], "E2B_TEMPLATE_ID=base");
    CHECK_TEXT(start.spec.env[3], "A=sandbox");
    CHECK_TEXT(start.spec.env[5], "A=own");
    CHECK(!start.spec.env[6]);
    CHECK_TEXT(start.spec.cwd, "x");
    CHECK_TEXT(start.spec.tag, "t");
    CHECK_TEXT(start.spec.user, "user:0");
    CHECK(!start.spec.has_stdin && start.spec.has_terminal && start.spec.timeout_ms == 60000);
    CHECK(start.spec.rows == 24 && start.spec.columns == 80);
}

static void a_start_of_an_old_client_has_stdin_and_begins_at_home(void)
{
    cleanup_json json_t *message = json_of("{\"process\": {\"cmd\": \"cat\"}}");
    cleanup_with(e2b_start_done) struct e2b_start start = { 0 };
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(TEXT_MAX);
    struct err err = { 0 };

    CHECK(start_of(message, &arena, &start, &err) == 0, "(%s)", err.msg);
    CHECK(start.spec.has_stdin && !start.spec.has_terminal && !start.spec.args[1]);
    CHECK_TEXT(start.spec.cwd, "~");
}

static void a_start_that_cannot_be_is_refused(void)
{
    static const char *const messages[] = {
        "{}",
        "{\"process\": {}}",
        "{\"process\": {\"cmd\": \"\"}}",
        "{\"process\": {\"cmd\": \"a\\u0000b\"}}",
        "{\"process\": {\"cmd\": \"a\", \"args\": [1]}}",
        "{\"process\": {\"cmd\": \"a\", \"args\": [\"b\\u0000\"]}}",
        "{\"process\": {\"cmd\": \"a\", \"args\": {}}}",
        "{\"process\": {\"cmd\": \"a\", \"envs\": {\"\": \"x\"}}}",
        "{\"process\": {\"cmd\": \"a\", \"envs\": {\"A=B\": \"x\"}}}",
        "{\"process\": {\"cmd\": \"a\", \"envs\": {\"A\": 1}}}",
        "{\"process\": {\"cmd\": \"a\", \"envs\": {\"A\": \"\\u0000\"}}}",
        "{\"process\": {\"cmd\": \"a\", \"cwd\": \"\\u0000\"}}",
        "{\"process\": {\"cmd\": \"a\"}, \"pty\": {\"size\": {\"cols\": 65536}}}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
        cleanup_json json_t *message = json_of(messages[i]);
        cleanup_with(e2b_start_done) struct e2b_start start = { 0 };
        cleanup_with(arena_done) struct arena arena = ARENA_INIT(TEXT_MAX);
        struct err err = { 0 };

        CHECK(start_of(message, &arena, &start, &err) < 0, "(%s)", messages[i]);
        CHECK(err.kind == ERR_INVALID, "(%s: %s)", messages[i], err.msg);
    }
}

static void a_signal_goes_by_name_or_number(void)
{
    static const struct {
        const char *message;
        int signal;
    } cases[] = {
        { "{\"signal\": \"SIGNAL_SIGKILL\"}", SIGKILL },
        { "{\"signal\": 15}", SIGTERM },
        { "{\"signal\": \"SIGNAL_SIGTERM\"}", SIGTERM },
        { "{\"signal\": \"SIGHUP\"}", 0 },
        { "{\"signal\": 1}", 0 },
        { "{}", 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cleanup_json json_t *message = json_of(cases[i].message);
        cleanup_with(arena_done) struct arena arena = ARENA_INIT(TEXT_MAX);
        struct envd_send_signal_request request;
        struct err err = { 0 };
        int signal = 0;
        int r = schema_decode(SCHEMA(envd_send_signal_request, &request), message, DECODE_LENIENT,
                              &arena, &err);

        if (r == 0)
            r = e2b_signal_parse(&request, &signal, &err);
        CHECK((r == 0) == (cases[i].signal != 0));
        CHECK(signal == cases[i].signal, "(%s)", cases[i].message);
    }
}

static void check_end(const struct process_end *end, const char *wanted)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

    CHECK(e2b_event_end(&out, end) == 0);
    CHECK_TEXT(out.data + ENVELOPE_HEADER_SIZE, wanted);
}

static void an_end_says_how(void)
{
    check_end(
        &(struct process_end){ .outcome = OUTCOME_EXITED },
        "{\"event\":{\"end\":{\"exitCode\":0,\"exited\":true,\"status\":\"exit status 0\"}}}");
    check_end(&(struct process_end){ .outcome = OUTCOME_EXITED, .exit_code = 3 },
              "{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status 3\","
              "\"error\":\"exit status 3\"}}}");
    check_end(
        &(struct process_end){ .outcome = OUTCOME_SIGNALED, .exit_code = 143, .signal = 15 },
        "{\"event\":{\"end\":{\"exitCode\":-1,\"exited\":false,\"status\":\"signal: terminated\","
        "\"error\":\"signal: terminated\"}}}");
    check_end(&(struct process_end){ .outcome = OUTCOME_OOM, .exit_code = 137 },
              "{\"event\":{\"end\":{\"exitCode\":-1,\"exited\":false,\"status\":\"signal: killed\","
              "\"error\":\"signal: killed\"}}}");
    check_end(
        &(struct process_end){ .outcome = OUTCOME_SIGNALED, .signal = 40 },
        "{\"event\":{\"end\":{\"exitCode\":-1,\"exited\":false,\"status\":\"signal: signal 40\","
        "\"error\":\"signal: signal 40\"}}}");
}

/* --- files ------------------------------------------------------------------------------------ */

static struct file_entry entry_make(enum entry_type type, uint32_t mode)
{
    return (struct file_entry){ .type = type,
                                .mode = mode,
                                .uid = 7,
                                .gid = 8,
                                .size = 5000000000,
                                .mtime_s = 1700000000,
                                .mtime_ns = 5,
                                .target = "",
                                .user_name = "user",
                                .group_name = "",
                                .end_path = "",
                                .meta = "" };
}

static void check_field(const json_t *object, const char *name, const char *wanted)
{
    const char *text = json_string_value(json_object_get(object, name));

    CHECK(text || !wanted, "(no %s)", name);
    CHECK(!text || (wanted && strcmp(text, wanted) == 0), "(%s: got '%s')", name, text);
}

static json_t *entry_json(const char *path, const struct file_entry *entry)
{
    cleanup_with(e2b_entry_done) struct e2b_entry described;
    cleanup_with(buf_done) struct buf text = BUF_INIT(TEXT_MAX);

    e2b_entry_init(&described, path, entry);
    CHECK(schema_encode(SCHEMA_OF(envd_entry_info, &described.info), ENCODE_ALL, &text) == 0);
    return json_of(text.data);
}

static void an_entry_is_told_as_clients_know_it(void)
{
    struct file_entry entry = entry_make(ENTRY_FILE, 04755);
    cleanup_json json_t *file = NULL, *link = NULL, *dangling = NULL, *root = NULL;

    entry.meta = "k\0v\0l\0";
    entry.meta_len = 7;
    file = entry_json("/home/user/f", &entry);
    check_field(file, "name", "f");
    check_field(file, "type", "FILE_TYPE_FILE");
    check_field(file, "path", "/home/user/f");
    check_field(file, "size", "5000000000");
    check_field(file, "permissions", "urwxr-xr-x");
    check_field(file, "owner", "user");
    check_field(file, "group", "8");
    check_field(file, "modifiedTime", "2023-11-14T22:13:20.000000005Z");
    check_field(file, "symlinkTarget", NULL);
    CHECK(json_integer_value(json_object_get(file, "mode")) == 0755);
    check_field(json_object_get(file, "metadata"), "k", "v");
    check_field(json_object_get(file, "metadata"), "l", "");

    entry = entry_make(ENTRY_LINK, 0777);
    entry.target = "../f";
    dangling = entry_json("/l", &entry);
    check_field(dangling, "type", NULL);
    check_field(dangling, "symlinkTarget", "../f");
    entry.end_type = ENTRY_DIRECTORY;
    entry.end_mode = 01700;
    entry.end_path = "/f";
    link = entry_json("/l", &entry);
    check_field(link, "type", "FILE_TYPE_DIRECTORY");
    check_field(link, "permissions", "Lrwxrwxrwx");
    check_field(link, "symlinkTarget", "/f");
    CHECK(json_integer_value(json_object_get(link, "mode")) == 0700);

    entry = entry_make(ENTRY_DIRECTORY, 01777);
    root = entry_json("/", &entry);
    check_field(root, "name", "/");
    check_field(root, "permissions", "dtrwxrwxrwx");
}

int main(void)
{
    RUN(a_form_comes_apart_however_it_is_cut);
    RUN(what_is_no_form_is_refused);
    RUN(what_is_packed_comes_out_however_it_is_cut);
    RUN(a_little_that_becomes_much_is_handed_on_in_parts);
    RUN(a_start_becomes_what_the_host_takes);
    RUN(a_start_of_an_old_client_has_stdin_and_begins_at_home);
    RUN(a_start_that_cannot_be_is_refused);
    RUN(a_signal_goes_by_name_or_number);
    RUN(an_end_says_how);
    RUN(an_entry_is_told_as_clients_know_it);
    return 0;
}
