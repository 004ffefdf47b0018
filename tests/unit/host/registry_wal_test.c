// SPDX-License-Identifier: Apache-2.0
/* The write-ahead log of the registry: missing, damaged, cut, exchanged. */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "unit/host/registry_test.h"

enum {
    ROWS = 8,
    PAGE_BYTES = 4096,
    HEADER_BYTES = 32,
    FRAME_BYTES = 24 + PAGE_BYTES,
    WAL_BYTES_MAX = 64 << 20
};

static char *beside(const char *suffix)
{
    return xasprintf("%s%s", path, suffix);
}

static bool is_there(const char *suffix)
{
    cleanup_free char *name = beside(suffix);

    return access(name, F_OK) == 0;
}

static void child_run(void (*body)(void))
{
    int status = -1;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        body();
        _exit(0); /* nothing is closed */
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void rows_write(void)
{
    start();
    for (unsigned i = 0; i < ROWS; i++) {
        struct sandbox_info info = numbered(i);

        put(&info);
    }
}

/* A registry whose daemon was killed after some rows. */
static void make_killed(void)
{
    clear();
    child_run(rows_write);
    CHECK(is_there("-wal") && is_there("-open"));
}

static void check_refused(const char *why)
{
    struct registry *refused = NULL;
    struct err err = { 0 };

    CHECK(registry_open(path, &refused, &err) < 0 && err.kind == ERR_INTERNAL, "it was opened");
    CHECK(strstr(err.msg, "holt.db-wal") && strstr(err.msg, why), "%s", err.msg);
    CHECK(strstr(err.remedy, "holt.db-open"), "%s", err.remedy);
}

static size_t rows(void)
{
    size_t count;

    start();
    (void)list(&count);
    return count;
}

static void an_orderly_end_leaves_no_mark(void)
{
    start_anew();
    CHECK(is_there("-open"));
    stop();
    CHECK(!is_there("-open") && !is_there("-wal"));
    CHECK(rows() == 0 && is_there("-open"));
}

static void a_killed_one_is_opened(void)
{
    make_killed();
    CHECK(rows() == ROWS);
    CHECK(registry_lost_frames(registry) == 0);
}

static void a_missing_log_is_refused(void)
{
    cleanup_free char *wal = beside("-wal"), *mark = beside("-open");

    make_killed();
    CHECK(unlink(wal) == 0);
    check_refused("is missing");
    CHECK(!is_there("-wal"));
    CHECK(file_create_at(AT_FDCWD, wal, 0600, "") == 0);
    check_refused("is empty");
    /* The remedy for somebody who accepts the loss. */
    CHECK(unlink(wal) == 0 && unlink(mark) == 0);
    CHECK(rows() < ROWS);
}

/* Whatever the byte: of the header, of a frame's header, of a page. */
static void a_damaged_log_is_refused(void)
{
    cleanup_free char *wal = beside("-wal");
    cleanup_close int fd = -EBADF;
    struct stat st;

    make_killed();
    fd = open(wal, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > HEADER_BYTES + ROWS * FRAME_BYTES);
    for (off_t at = 0; at < st.st_size; at += at < HEADER_BYTES ? 1 : 1021) {
        unsigned char was, now;

        CHECK(pread(fd, &was, 1, at) == 1);
        now = was ^ 0x10;
        CHECK(pwrite(fd, &now, 1, at) == 1);
        check_refused(at >= 16 && at < 24 ? "is " : "is damaged");
        CHECK(pwrite(fd, &was, 1, at) == 1);
    }
    CHECK(rows() == ROWS);
}

/* What the machine had not flushed when it crashed may be there in part. */
static void half_a_transaction_at_the_end_is_left_out(void)
{
    cleanup_free char *wal = beside("-wal");
    cleanup_close int fd = -EBADF;
    char frame[FRAME_BYTES];
    struct stat st;

    make_killed();
    fd = open(wal, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    CHECK(pread(fd, frame, sizeof(frame), st.st_size - FRAME_BYTES) == FRAME_BYTES);
    frame[FRAME_BYTES / 2] ^= 1;
    for (int i = 0; i < 3; i++)
        CHECK(pwrite(fd, frame, sizeof(frame), st.st_size + i * FRAME_BYTES) == FRAME_BYTES);
    CHECK(rows() == ROWS);
}

static void a_cut_log_is_opened_and_says_so(void)
{
    for (unsigned cut = 1; cut <= 12; cut++) {
        cleanup_free char *wal = beside("-wal");
        struct stat st;

        make_killed();
        CHECK(stat(wal, &st) == 0);
        CHECK(truncate(wal, st.st_size - (off_t)cut * FRAME_BYTES) == 0);
        CHECK(rows() < ROWS);
        CHECK(registry_lost_frames(registry) == cut, "%u", registry_lost_frames(registry));
    }
}

static void rows_write_many(void)
{
    start();
    for (unsigned i = 0; i < 2000; i++) { /* SQLite begins the log anew several times */
        struct sandbox_info info = numbered(i % ROWS);
        struct err err = { 0 };

        CHECK(registry_put_later(registry, &info, 1, &err) == 0, "%s", err.msg);
        if (i % 100 == 99)
            CHECK(registry_sync(registry, &err) == 0, "%s", err.msg);
    }
}

static void a_log_that_was_begun_anew_is_opened(void)
{
    cleanup_free char *wal = beside("-wal");
    struct stat st;

    clear();
    child_run(rows_write_many);
    CHECK(stat(wal, &st) == 0 && st.st_size < 2000 * FRAME_BYTES);
    CHECK(rows() == ROWS && registry_lost_frames(registry) == 0);
}

static void an_older_log_is_refused(void)
{
    cleanup_with(buf_done) struct buf old = BUF_INIT(WAL_BYTES_MAX);
    cleanup_close int dir_fd = -1;

    make_killed();
    dir_fd = open(scratch, O_DIRECTORY | O_CLOEXEC);
    CHECK(dir_fd >= 0 && file_read_at(dir_fd, "holt.db-wal", &old) == 0);
    child_run(rows_write_many);
    CHECK(file_replace_at(dir_fd, "holt.db-wal", old.data, old.len) == 0);
    check_refused("is older");
}

static void all(void)
{
    CHECK(mkdtemp(scratch));
    path = xasprintf("%s/holt.db", scratch);
    RUN(an_orderly_end_leaves_no_mark);
    RUN(a_killed_one_is_opened);
    RUN(a_missing_log_is_refused);
    RUN(a_damaged_log_is_refused);
    RUN(half_a_transaction_at_the_end_is_left_out);
    RUN(a_cut_log_is_opened_and_says_so);
    RUN(a_log_that_was_begun_anew_is_opened);
    RUN(an_older_log_is_refused);
    stop();
    CHECK(tree_remove_at(AT_FDCWD, scratch) == 0);
    free(path);
}

int main(void)
{
    RUN(all);
    return 0;
}
