// SPDX-License-Identifier: Apache-2.0
/* What is recorded, and how a change to it is found. */
#include "unit/host/audit_test.h"

#include "host/observe/audit_internal.h"
#include "unit/doc_script.h"

static void a_record_says_what_when_and_about_whom(void)
{
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    json_t *object;
    struct buf *text;
    char *second;
    struct stat st;

    start_anew();
    add("create", "s1", json_pack("{s:s, s:i}", "template", "host\n", "cpus", 2));
    add("start", NULL, NULL);
    CHECK(fstatat(state_fd, "audit.jsonl", &st, 0) == 0 && (st.st_mode & 07777) == 0600);
    text = content("audit.jsonl");
    CHECK(text->data[text->len - 1] == '\n');
    CHECK(strncmp(text->data, "{\"seq\":1,\"time\":\"20", 19) == 0, "%s", text->data);
    second = strchr(text->data, '\n');
    object = json_loadb(text->data, (size_t)(second - text->data), 0, NULL);
    CHECK_TEXT(json_string_value(json_object_get(object, "event")), "create");
    CHECK_TEXT(json_string_value(json_object_get(object, "sandbox")), "s1");
    CHECK_TEXT(json_string_value(json_object_get(object, "template")), "host\n");
    CHECK(json_integer_value(json_object_get(object, "cpus")) == 2);
    CHECK_TEXT(json_string_value(json_object_get(object, "prev")), zeros);
    CHECK(strlen(json_string_value(json_object_get(object, "hash"))) == 64);
    CHECK(strlen(json_string_value(json_object_get(object, "time"))) == 24);
    CHECK(json_string_value(json_object_get(object, "time"))[23] == 'Z');
    CHECK(strstr(second + 1, json_string_value(json_object_get(object, "hash"))));
    CHECK(!strstr(second + 1, "sandbox"));
    json_decref(object);
}

static void a_chain_goes_on_when_it_is_opened_again(void)
{
    start_anew();
    CHECK(lines() == 0);
    add_numbered(1);
    for (unsigned i = 2; i <= 30; i++) {
        stop();
        start();
        add_numbered(i);
    }
    CHECK(lines() == 30);
}

static void each_byte_that_changes_is_found(void)
{
    char *begins[11];
    struct buf *text = ten_lines(begins);
    struct err err;

    for (unsigned line = 1; line <= 10; line++) {
        for (char *at = begins[line - 1]; at < begins[line] - 1; at += 7) {
            char was = *at;

            *at = was == 'x' ? 'y' : 'x';
            set_content(text->data);
            check_bad_line(line);
            *at = was;
        }
    }
    *begins[9] = ' ';
    set_content(text->data);
    CHECK(audit_open(state_fd, &audit, &err) < 0 && err.kind == ERR_INTERNAL);
    CHECK(strstr(err.msg, "last line"), "%s", err.msg);
    *begins[9] = '{';
    set_content(text->data);
    CHECK(lines() == 10);
}

static void a_removed_line_is_found(void)
{
    for (unsigned line = 1; line < 10; line++) {
        char *begins[11];
        struct buf *text = ten_lines(begins);

        memmove(begins[line - 1], begins[line], strlen(begins[line]) + 1);
        set_content(text->data);
        check_bad_line(line);
    }
}

static void swapped_lines_are_found(void)
{
    char *begins[11], moved[1024] = "";
    struct buf *text = ten_lines(begins);
    size_t third = (size_t)(begins[3] - begins[2]), fourth = (size_t)(begins[4] - begins[3]);

    CHECK(third < sizeof(moved));
    memcpy(moved, begins[2], third);
    memmove(begins[2], begins[3], fourth);
    memcpy(begins[2] + fourth, moved, third);
    set_content(text->data);
    check_bad_line(3);
}

/* One that is well made but was written elsewhere, one that is there twice, and no record. */
static void an_inserted_line_is_found(void)
{
    static char inserted[3][1024] = { "", "", "{}\n" };
    char *begins[11];

    start_anew();
    for (unsigned i = 0; i < 5; i++)
        add("elsewhere", NULL, NULL);
    (void)snprintf(inserted[0], sizeof(inserted[0]), "%s",
                   strstr(content("audit.jsonl")->data, "{\"seq\":5"));
    for (unsigned i = 0; i < ARRAY_SIZE(inserted); i++) {
        cleanup_with(buf_done) struct buf text = BUF_INIT(FILE_BYTES_MAX);

        (void)ten_lines(begins);
        (void)snprintf(inserted[1], sizeof(inserted[1]), "%.*s", (int)(begins[4] - begins[3]),
                       begins[3]);
        CHECK(buf_add(&text, begins[0], (size_t)(begins[4] - begins[0])) == 0);
        CHECK(buf_add_str(&text, inserted[i]) == 0 && buf_add_str(&text, begins[4]) == 0);
        set_content(text.data);
        check_bad_line(5);
    }
}

/* Valid except for its number. */
static void a_line_with_another_number_is_found(void)
{
    cleanup_with(buf_done) struct buf line = BUF_INIT(LINE_BYTES_MAX);
    char hash[DIGEST_HEX_LEN + 1];

    clear();
    CHECK(buf_printf(&line, "{\"seq\":2,\"event\":\"x\",\"prev\":\"%s\"", audit_origin.hash) == 0);
    CHECK(audit_hash(line.data, line.len, hash) == 0);
    CHECK(buf_printf(&line, ",\"hash\":\"%s\"}\n", hash) == 0);
    set_content(line.data);
    check_bad_line(1);
    *strchr(line.data, '2') = '1';
    line.len = (size_t)(strstr(line.data, ",\"hash\"") - line.data);
    CHECK(audit_hash(line.data, line.len, hash) == 0);
    CHECK(buf_printf(&line, ",\"hash\":\"%s\"}\n", hash) == 0);
    set_content(line.data);
    CHECK(lines() == 1);
}

static void what_is_no_log_is_refused(void)
{
    cleanup_with(buf_done) struct buf long_line = BUF_INIT(FILE_BYTES_MAX);
    struct err err = { 0 };
    unsigned count = 0;
    uint64_t all;

    clear();
    CHECK(audit_read(state_fd, NULL, count_line, &count, &all, &err) == -ENOENT);
    CHECK(err.kind == ERR_NOT_FOUND);
    set_content("\n");
    check_bad_line(1);
    set_content("[]\n");
    check_bad_line(1);
    for (unsigned i = 0; i < 1 << 20; i++)
        CHECK(buf_add(&long_line, "x", 1) == 0);
    CHECK(buf_add(&long_line, "\n", 1) == 0);
    set_content(long_line.data);
    check_bad_line(1);
    CHECK(audit_open(state_fd, &audit, &err) < 0 && strstr(err.msg, "too long"), "%s", err.msg);
}

static void a_line_that_is_too_long_is_refused(void)
{
    struct err err = { 0 };

    start_anew();
    add("long", NULL, details_of(LINE_BYTES_MAX - 300));
    add("long", NULL, details_of(PAGE_BYTES));
    CHECK(audit_add(audit, "long", NULL, details_of(LINE_BYTES_MAX), &err) < 0);
    CHECK(err.kind == ERR_EXHAUSTED && strstr(err.msg, "'long'"), "%s", err.msg);
    for (size_t len = LINE_BYTES_MAX - 300; len < LINE_BYTES_MAX; len++)
        (void)audit_add(audit, "long", NULL, details_of(len), &err);
    stop();
    start();
    CHECK(lines() > 2);
}

static void details_cannot_pass_for_the_chain(void)
{
    static const char *const names[] = { "seq", "time", "event", "sandbox", "prev", "hash" };
    struct err err = { 0 };

    start_anew();
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CHECK(audit_add(audit, "x", NULL, json_pack("{s:i}", names[i], 1), &err) == -EINVAL);
        CHECK(strstr(err.msg, names[i]), "%s", err.msg);
    }
    CHECK(audit_add(audit, "x", NULL, json_array(), &err) == -EINVAL);
    CHECK(audit_add(audit, "\xff", NULL, NULL, &err) == -EINVAL);
    CHECK(lines() == 0);
}

static int stop_at_third(const char *line, void *context)
{
    (void)line;
    return ++*(unsigned *)context == 3 ? 42 : 0;
}

static void a_reader_gets_what_is_about_its_sandbox(void)
{
    struct err err = { 0 };
    unsigned count = 0;
    uint64_t all = 0;

    start_anew();
    for (unsigned i = 0; i < 30; i++)
        add("exec", i % 3 == 0 ? "s1" : i % 3 == 1 ? "s10" : NULL, NULL);
    CHECK(lines_about("s1", &all) == 10 && all == 30);
    CHECK(lines_about("s10", &all) == 10);
    CHECK(lines_about("s", &all) == 0 && all == 30);
    CHECK(audit_read(state_fd, NULL, stop_at_third, &count, &all, &err) == 42 && count == 3);
}

/* It shares no code with us. */
static const char *check_by_hand(void)
{
    return doc_script_run("docs/audit.md", state_fd);
}

static void the_documented_script_agrees(void)
{
    struct buf *text;

    start_anew();
    add("exec", "s1", json_pack("{s:s}", "odd", "\\n \",\"hash\":\" %s $x `y` \xc3\xa4"));
    for (unsigned i = 2; i <= 30; i++)
        add_numbered(i);
    CHECK(strncmp(check_by_hand(), "30 lines", 8) == 0, "%s", check_by_hand());
    text = content("audit.jsonl");
    *strstr(text->data, "\"number\":17") = 'x';
    set_content(text->data);
    check_bad_line(17);
    CHECK(strncmp(check_by_hand(), "line 17 was changed", 19) == 0, "%s", check_by_hand());
    set_content(strchr(content("audit.jsonl")->data, '\n') + 1);
    CHECK(strncmp(check_by_hand(), "line 1 follows another", 22) == 0, "%s", check_by_hand());
}

static void all(void)
{
    scratch_make();
    RUN(a_record_says_what_when_and_about_whom);
    RUN(a_chain_goes_on_when_it_is_opened_again);
    RUN(each_byte_that_changes_is_found);
    RUN(a_removed_line_is_found);
    RUN(swapped_lines_are_found);
    RUN(an_inserted_line_is_found);
    RUN(a_line_with_another_number_is_found);
    RUN(what_is_no_log_is_refused);
    RUN(a_line_that_is_too_long_is_refused);
    RUN(details_cannot_pass_for_the_chain);
    RUN(a_reader_gets_what_is_about_its_sandbox);
    RUN(the_documented_script_agrees);
    scratch_remove();
}

int main(void)
{
    RUN(all);
    return 0;
}
