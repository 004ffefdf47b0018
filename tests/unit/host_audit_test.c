// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/tree.h"
#include "check.h"
#include "host/audit.h"

enum {
    FILE_BYTES_MAX = 64 << 20,
    LINE_BYTES_MAX = 64 << 10,
    THREADS = 8,
    ADDS_PER_THREAD = 200,
    KILL_ROUNDS = 100,
    KILLS_PER_FILE = 5,
    PAGE_BYTES = 4096,
};

static char scratch[] = "/tmp/holt-audit-test.XXXXXX";
static int state_fd = -EBADF;
static struct audit *audit;

static void start(void)
{
    struct err err = { 0 };

    CHECK(audit_open(state_fd, &audit, &err) == 0, "%s", err.msg);
}

static void stop(void)
{
    audit_close(audit);
    audit = NULL;
}

static void clear(void)
{
    stop();
    (void)unlinkat(state_fd, "audit.jsonl", 0);
    (void)unlinkat(state_fd, "audit.torn", 0);
}

static void start_anew(void)
{
    clear();
    start();
}

static void add(const char *event, const char *sandbox, json_t *details)
{
    struct err err = { 0 };

    CHECK(audit_add(audit, event, sandbox, details, &err) == 0, "%s", err.msg);
}

static void add_numbered(unsigned number)
{
    add("exec", "s1", json_pack("{s:i}", "number", (int)number));
}

/* The content of a file; the next call frees it. */
static struct buf *content(const char *name)
{
    static struct buf text = BUF_INIT(FILE_BYTES_MAX);

    buf_done(&text);
    text = (struct buf)BUF_INIT(FILE_BYTES_MAX);
    CHECK(file_read_at(state_fd, name, &text) == 0, "%s", name);
    return &text;
}

static void set_content(const char *text)
{
    CHECK(file_create_at(state_fd, "audit.jsonl", 0600, text) == 0);
}

static int count_line(const char *line, void *context)
{
    CHECK(!strchr(line, '\n'));
    ++*(unsigned *)context;
    return 0;
}

/* Lines about the sandbox, in a file of which every line fits. */
static unsigned lines_about(const char *sandbox, uint64_t *ret_all)
{
    struct err err = { 0 };
    unsigned count = 0;

    CHECK(audit_read(state_fd, sandbox, count_line, &count, ret_all, &err) == 0, "%s", err.msg);
    return count;
}

static uint64_t lines(void)
{
    uint64_t all;

    CHECK(lines_about(NULL, &all) == all);
    return all;
}

/* The first line that does not fit is this one. */
static void check_bad_line(unsigned line)
{
    struct err err = { 0 };
    unsigned count = 0;
    uint64_t all = 77;
    char named[32];

    CHECK(audit_read(state_fd, "nobody", count_line, &count, &all, &err) == -EIO);
    CHECK(err.kind == ERR_INTERNAL && all == 77 && count == 0);
    (void)snprintf(named, sizeof(named), "line %u ", line);
    CHECK(strstr(err.msg, named), "(%s, not %u)", err.msg, line);
}

/* The content of a log of ten lines, and where each begins; [10] is the end. */
static struct buf *ten_lines(char *begins[static 11])
{
    struct buf *text;

    start_anew();
    for (unsigned i = 1; i <= 10; i++)
        add_numbered(i);
    stop();
    CHECK(lines() == 10);
    text = content("audit.jsonl");
    begins[0] = text->data;
    for (unsigned i = 1; i <= 10; i++) {
        begins[i] = strchr(begins[i - 1], '\n');
        CHECK(begins[i]);
        begins[i]++;
    }
    return text;
}

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

static void a_torn_end_is_moved_aside_and_said_so(void)
{
    static const int cuts[] = { 1, 2, 70, 150 };

    for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
        char *begins[11];
        struct buf *text = ten_lines(begins);
        cleanup_with(buf_done) struct buf piece = BUF_INIT(FILE_BYTES_MAX);

        text->data[text->len - (size_t)cuts[i]] = '\0';
        CHECK(buf_printf(&piece, "%s\n", begins[9]) == 0);
        set_content(text->data);
        check_bad_line(10);
        start();
        CHECK_TEXT(content("audit.torn")->data, piece.data);
        CHECK(lines() == 10);
        text = content("audit.jsonl");
        CHECK(strstr(text->data, "\"event\":\"audit.torn\""));
        CHECK(!strstr(text->data, "\"number\":10"));
        add_numbered(11);
        CHECK(lines() == 11);
    }
}

/* More than one chunk, and nothing whole in front of it; a second piece goes behind the first. */
static void a_long_torn_end_is_moved_aside_too(void)
{
    cleanup_with(buf_done) struct buf piece = BUF_INIT(FILE_BYTES_MAX);

    clear();
    while (piece.len < 200000)
        CHECK(buf_add_str(&piece, "torn ") == 0);
    set_content(piece.data);
    start();
    CHECK(content("audit.torn")->len == piece.len + 1 && lines() == 1);
    stop();
    set_content("again");
    start();
    CHECK(content("audit.torn")->len == piece.len + 1 + 6 && lines() == 1);
}

/* They were to bring a line to the next page, and it did not come: nothing is missing. */
static void blanks_at_the_end_are_nothing(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(FILE_BYTES_MAX);
    char *begins[11];

    CHECK(buf_printf(&text, "%s%*s", ten_lines(begins)->data, 500, "") == 0);
    set_content(text.data);
    CHECK(lines() == 10);
    start();
    CHECK(lines() == 10 && faccessat(state_fd, "audit.torn", F_OK, 0) < 0);
    add_numbered(11);
    CHECK(lines() == 11);
}

static void no_line_crosses_a_page_unless_it_is_longer(void)
{
    struct buf *text;
    size_t begin = 0;

    start_anew();
    for (unsigned i = 0; i < 500; i++)
        add_numbered(i);
    CHECK(lines() == 500);
    text = content("audit.jsonl");
    while (begin < text->len) {
        size_t end = begin + (size_t)(strchr(text->data + begin, '\n') - (text->data + begin));

        begin += strspn(text->data + begin, " ");
        CHECK(begin / PAGE_BYTES == end / PAGE_BYTES);
        begin = end + 1;
    }
}

static json_t *details_of(size_t len)
{
    cleanup_free char *text = calloc(1, len + 1);

    CHECK(text);
    memset(text, 'x', len);
    return json_pack("{s:s}", "text", text);
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

static void *add_many(void *context)
{
    for (unsigned i = 0; i < ADDS_PER_THREAD; i++)
        add(context, "s1", json_pack("{s:i}", "number", (int)i));
    return NULL;
}

static void threads_keep_the_chain_and_readers_see_whole_lines(void)
{
    static char event[] = "exec";
    pthread_t threads[THREADS];
    uint64_t seen = 0;

    start_anew();
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, add_many, event) == 0);
    while (seen < THREADS * ADDS_PER_THREAD) {
        uint64_t now = lines();

        CHECK(now >= seen);
        seen = now;
    }
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(lines() == THREADS * ADDS_PER_THREAD);
}

static void write_for_ever(int report_fd)
{
    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    start();
    for (unsigned i = 1;; i++) {
        add_numbered(i);
        if (write_all(report_fd, &i, sizeof(i)) < 0)
            _exit(1);
    }
}

static void a_kill_never_leaves_half_a_line(void)
{
    uint64_t before = 0;

    for (unsigned round = 0; round < KILL_ROUNDS; round++) {
        struct timespec pause = { .tv_nsec = 1000 * (random() % 5000) };
        unsigned reported = 0, number;
        struct buf *text;
        uint64_t after;
        int report[2];
        pid_t pid;

        if (round % KILLS_PER_FILE == 0) {
            clear();
            before = 0;
        }
        CHECK(pipe2(report, O_CLOEXEC) == 0);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            write_for_ever(report[1]);
        (void)close(report[1]);
        CHECK(read_full(report[0], &reported, sizeof(reported)) == sizeof(reported));
        (void)nanosleep(&pause, NULL);
        CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
        while (read_full(report[0], &number, sizeof(number)) == sizeof(number))
            reported = number;
        (void)close(report[0]);

        text = content("audit.jsonl");
        while (text->len > 0 && text->data[text->len - 1] == ' ')
            text->len--;
        CHECK(text->data[text->len - 1] == '\n', "(round %u)", round);
        after = lines();
        CHECK(after == before + reported || after == before + reported + 1);
        before = after;
    }
}

static void write_to_a_full_disk(void)
{
    static const char zeros[PAGE_BYTES];
    cleanup_close int filler = openat(state_fd, "filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct err err = { 0 };
    uint64_t added = 0;

    CHECK(filler >= 0);
    while (write(filler, zeros, sizeof(zeros)) > 0)
        continue;
    CHECK(ftruncate(filler, (off_t)PAGE_BYTES * 40) == 0);
    start();
    while (audit_add(audit, "long", NULL, details_of(PAGE_BYTES * 3), &err) == 0)
        added++;
    CHECK(err.errnum == ENOSPC && strstr(err.msg, "audit.jsonl"), "%s", err.msg);
    CHECK(lines() == added && added > 0);
    CHECK(ftruncate(filler, 0) == 0);
    add_numbered(1);
    CHECK(lines() == added + 1);
}

/* In a process with a small file system of its own. */
static void a_full_disk_leaves_whole_lines_and_passes(void)
{
    int status;
    pid_t pid;

    clear();
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("holt-test", scratch, "tmpfs", 0, "size=1m") < 0)
            _exit(errno == EPERM ? 77 : 1);
        state_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        write_to_a_full_disk();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("no mount namespace");
    CHECK(status == 0);
}

int main(void)
{
    CHECK(mkdtemp(scratch));
    state_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(state_fd >= 0);
    srandom((unsigned)time(NULL));

    RUN(a_record_says_what_when_and_about_whom);
    RUN(a_chain_goes_on_when_it_is_opened_again);
    RUN(each_byte_that_changes_is_found);
    RUN(a_removed_line_is_found);
    RUN(swapped_lines_are_found);
    RUN(an_inserted_line_is_found);
    RUN(what_is_no_log_is_refused);
    RUN(a_torn_end_is_moved_aside_and_said_so);
    RUN(a_long_torn_end_is_moved_aside_too);
    RUN(blanks_at_the_end_are_nothing);
    RUN(no_line_crosses_a_page_unless_it_is_longer);
    RUN(a_line_that_is_too_long_is_refused);
    RUN(details_cannot_pass_for_the_chain);
    RUN(a_reader_gets_what_is_about_its_sandbox);
    RUN(threads_keep_the_chain_and_readers_see_whole_lines);
    RUN(a_kill_never_leaves_half_a_line);
    RUN(a_full_disk_leaves_whole_lines_and_passes);

    start_anew();
    buf_done(content("audit.jsonl"));
    clear();
    (void)close(state_fd);
    CHECK(tree_remove_at(AT_FDCWD, scratch) == 0);
    return 0;
}
