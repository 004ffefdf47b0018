// SPDX-License-Identifier: Apache-2.0
/* Torn ends, many threads, kills and full disks. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "unit/host/audit_test.h"

enum { THREADS = 8, ADDS_PER_THREAD = 200, KILL_ROUNDS = 100, KILLS_PER_FILE = 5 };

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

static void *append_rest(void *rest)
{
    static const struct timespec pause = { .tv_nsec = 20 * 1000000L };
    cleanup_close int fd = openat(state_fd, "audit.jsonl", O_WRONLY | O_APPEND | O_CLOEXEC);

    (void)nanosleep(&pause, NULL);
    CHECK(fd >= 0 && write_all(fd, rest, strlen(rest)) == 0);
    return NULL;
}

/* A write may be seen before all of it is there. */
static void a_reader_waits_for_the_rest_of_a_line(void)
{
    char *begins[11], rest[1024];
    struct buf *text = ten_lines(begins);
    pthread_t thread;

    (void)snprintf(rest, sizeof(rest), "%s", begins[9] + 50);
    begins[9][50] = '\0';
    set_content(text->data);
    CHECK(pthread_create(&thread, NULL, append_rest, rest) == 0);
    CHECK(lines() == 10);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void *add_many(void *context)
{
    for (unsigned i = 0; i < ADDS_PER_THREAD; i++)
        add(context, "s1", details_of(i % 4 == 0 ? 5 * PAGE_BYTES : 10));
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

static void all(void)
{
    scratch_make();
    srandom((unsigned)time(NULL));
    RUN(a_torn_end_is_moved_aside_and_said_so);
    RUN(a_long_torn_end_is_moved_aside_too);
    RUN(blanks_at_the_end_are_nothing);
    RUN(no_line_crosses_a_page_unless_it_is_longer);
    RUN(a_reader_waits_for_the_rest_of_a_line);
    RUN(threads_keep_the_chain_and_readers_see_whole_lines);
    RUN(a_kill_never_leaves_half_a_line);
    RUN(a_full_disk_leaves_whole_lines_and_passes);
    scratch_remove();
}

int main(void)
{
    RUN(all);
    return 0;
}
