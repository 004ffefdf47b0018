// SPDX-License-Identifier: Apache-2.0
/* Diffs as text: line counts, and patches that other programs accept. */
#include "kernel/store/diff_world.h"

enum { FILES = 40, LINES_MAX = 60, LONG_TEXT = 1 << 20 };

static void pair_make(void)
{
    make_dir("old");
    make_dir("new");
}

/* Applies the whole patch to a copy of old with git, which must make it equal to new. */
static void check_applies(void)
{
    const char *patch = diff_patch("old", "new");

    put_file("patch", patch);
    CHECK(run_in(".", "cp", "-a", "old", "copy", NULL) == 0);
    CHECK(run_in("copy", "git", "apply", "--check", "--whitespace=nowarn", "../patch", NULL) == 0,
          "(%s)", patch);
    CHECK(run_in("copy", "git", "apply", "--whitespace=nowarn", "../patch", NULL) == 0);
    CHECK_TEXT(diff_names("new", "copy"), "");
    CHECK(tree_remove_at(AT_FDCWD, "copy") == 0);
}

static void lines_are_counted(void)
{
    pair_make();
    put_file("old/a", "1\n2\n3\n");
    put_file("new/a", "1\n3\n4\n5\n");
    put_file("new/b", "-- not a header\n++ nor this\n");
    put_file("old/c", "-- not a header\n++ nor this");
    put_file("old/d", "-- one\n");
    put_file("new/d", "++ two\n");
    put_file("new/e", "");
    CHECK(symlink("nowhere", "new/f") == 0);
    CHECK_TEXT(diff_lines("old", "new"),
               "M /a +2 -1\nA /b +2 -0\nD /c +0 -2\nM /d +1 -1\nA /e\nA /f\n");
    CHECK_TEXT(diff_names("old", "new"), "M /a\nA /b\nD /c\nM /d\nA /e\nA /f\n");
}

static void what_is_not_text_is_binary(void)
{
    static char text[LONG_TEXT + 1];

    pair_make();
    put_bytes("old/a", "a\0b", 3);
    put_bytes("new/a", "a\nb", 3);
    put_bytes("new/b", "\0", 1);
    (void)memset(text, '\n', sizeof(text));
    put_bytes("new/c", text, sizeof(text));
    put_bytes("new/d", text, sizeof(text) - 1);
    put_bytes("new/e", "\xff\xfe\x80", 3); /* not UTF-8, but valid in a patch */
    CHECK_TEXT(diff_lines("old", "new"),
               "M /a binary\nA /b binary\nA /c binary\nA /d +1048576 -0\nA /e +1 -0\n");
}

static void a_mode_alone_has_no_patch(void)
{
    pair_make();
    put_file("old/a", "a\n");
    put_file("new/a", "a\n");
    CHECK(chmod("new/a", 0755) == 0);
    CHECK_TEXT(diff_patch("old", "new"), "");
    CHECK_TEXT(diff_lines("old", "new"), "M /a\n");
}

static void patches_are_those_of_diff(void)
{
    pair_make();
    put_file("old/a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    put_file("new/a", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
    put_file("old/b", "gone\n");
    put_file("new/c", "two\nlines");
    CHECK_TEXT(diff_patch("old", "new"),
               "--- a/a\n+++ b/a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n"
               " 6\n 7\n 8\n"
               "--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
               "--- /dev/null\n+++ b/c\n@@ -0,0 +1,2 @@\n+two\n+lines\n"
               "\\ No newline at end of file\n");
    check_applies();
}

static char *read_all(const char *path)
{
    struct buf content = BUF_INIT(REPORT_MAX);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    CHECK(fd >= 0 && buf_reserve(&content, 1) == 0);
    do {
        char chunk[4096];

        n = read(fd, chunk, sizeof(chunk));
        CHECK(n >= 0 && buf_add(&content, chunk, (size_t)n) == 0);
    } while (n > 0);
    return content.data;
}

/* Patches written by Holt must equal those of diff(1). */
static void whole_files_are_as_diff_would_have_them(void)
{
    static const char *const texts[] = { "1\n", "1", "1\n2\n", "1\n2", "\n", "\n\n", "\r\n1" };

    pair_make();
    put_file("empty", "");
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        cleanup_free char *wanted = NULL;

        put_file("new/f", texts[i]);
        CHECK(run_in(".", "sh", "-c",
                     "diff -u --label /dev/null --label b/f empty new/f >wanted; "
                     "diff -u --label a/f --label /dev/null new/f empty >>wanted",
                     NULL) == 1);
        wanted = read_all("wanted");
        CHECK(strncmp(diff_patch("old", "new"), wanted, strlen(diff_patch("old", "new"))) == 0);
        CHECK(strlen(wanted) == 2 * strlen(diff_patch("new", "old")));
        CHECK_TEXT(diff_patch("new", "old"), wanted + strlen(diff_patch("old", "new")));
        check_applies();
    }
}

static void line_ends_are_kept(void)
{
    pair_make();
    put_file("old/crlf", "1\r\n2\r\n3\r\n");
    put_file("new/crlf", "1\r\ntwo\r\n3\r\n");
    put_file("old/from", "1\n2\n");
    put_file("new/from", "1\r\n2\r\n");
    put_file("old/loses", "1\n2\n");
    put_file("new/loses", "1\n2");
    put_file("old/gets", "1\n2");
    put_file("new/gets", "1\n2\n");
    put_file("old/neither", "1\n2");
    put_file("new/neither", "one\n2");
    put_file("new/fresh", "1\r\n2");
    CHECK(strstr(diff_patch("old", "new"), "-2\r\n+two\r\n"));
    check_applies();
}

static void strange_names_are_quoted(void)
{
    pair_make();
    put_file("new/a\nb", "1\n");
    put_file("old/with space", "1\n");
    put_file("new/with space", "2\n");
    put_file("new/\"q\" \\", "1\n");
    put_file("old/\xff\x01\t", "gone\n");
    put_file("new/plain-\xc3\xa4", "1\n");
    CHECK_TEXT(diff_patch("old", "new"),
               "--- /dev/null\n+++ \"b/\\\"q\\\" \\\\\"\n@@ -0,0 +1 @@\n+1\n"
               "--- /dev/null\n+++ \"b/a\\nb\"\n@@ -0,0 +1 @@\n+1\n"
               "--- /dev/null\n+++ \"b/plain-\\303\\244\"\n@@ -0,0 +1 @@\n+1\n"
               "--- a/with space\t\n+++ b/with space\t\n@@ -1 +1 @@\n-1\n+2\n"
               "--- \"a/\\377\\001\\t\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n");
    check_applies();
}

static void what_became_something_else_is_deleted_as_text(void)
{
    pair_make();
    put_file("old/a", "1\n");
    CHECK(symlink("x", "new/a") == 0);
    put_file("old/b", "1\n");
    make_dir("new/b");
    put_file("new/b/c", "2\n");
    CHECK_TEXT(diff_lines("old", "new"), "M /a +0 -1\nD /b +0 -1\nA /b/c +1 -0\n");
}

static void write_random(const char *path, unsigned *state, const char *like)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(REPORT_MAX);
    cleanup_free char *old = like ? read_all(like) : NULL;
    int count = rand_r(state) % LINES_MAX;

    if (!like) {
        for (int i = 0; i < count; i++)
            CHECK(buf_printf(&text, "%d\n", rand_r(state) % 7) == 0);
        if (rand_r(state) % 4 == 0)
            CHECK(buf_add_str(&text, "end") == 0);
    }
    for (char *rest = old, *line; like && (line = strsep(&rest, "\n"));) {
        const char *end = rest ? "\n" : "";

        if (rand_r(state) % 8 == 0)
            CHECK(buf_printf(&text, "%d%s", rand_r(state) % 7, "\n") == 0);
        if (rand_r(state) % 8 != 0)
            CHECK(buf_printf(&text, "%s%s", line, end) == 0);
    }
    put_bytes(path, text.len ? text.data : "", text.len);
}

static void random_edits_apply(void)
{
    unsigned state = 42;
    char old[32], new[32];

    pair_make();
    make_dir("old/d");
    make_dir("new/d");
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(old, sizeof(old), "old/d/%d", i);
        (void)snprintf(new, sizeof(new), "new/d/%d", i);
        write_random(old, &state, NULL);
        write_random(new, &state, old);
    }
    check_applies();
}

/* Such texts keep diff(1) busy for many seconds, so it is stopped; a very fast machine may finish.
 */
static void texts_that_take_too_long_stop_nothing_else(void)
{
    const char *report;
    struct buf text = BUF_INIT(LONG_TEXT);
    unsigned state = 1;

    pair_make();
    for (int side = 0; side < 2; side++) {
        buf_clear(&text);
        while (text.len < LONG_TEXT - 2)
            CHECK(buf_printf(&text, "%d\n", rand_r(&state) % 10) == 0);
        put_bytes(side ? "new/a" : "old/a", text.data, text.len);
    }
    put_file("old/b", "1\n");
    put_file("new/b", "2\n");
    buf_done(&text);
    report = diff_lines("old", "new");
    CHECK(strstr(report, "M /a binary\n") || strstr(report, "M /a +"));
    CHECK(strstr(report, "\nM /b +1 -1\n"), "(%s)", report);
}

static void long_paths_have_patches(void)
{
    char name[201];
    const char *patch;

    pair_make();
    (void)memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (int side = 0; side < 2; side++) {
        cleanup_close int fd = open(side ? "new" : "old", O_PATH | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int file_fd = -EBADF;

        for (int i = 0; i < 1000; i++) {
            int next;

            CHECK(mkdirat(fd, name, 0755) == 0);
            next = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
            CHECK(next >= 0);
            (void)close(fd);
            fd = next;
        }
        file_fd = openat(fd, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        CHECK(write(file_fd, side ? "2\n" : "1\n", 2) == 2);
    }
    patch = diff_patch("old", "new");
    CHECK(strlen(patch) > 2 * 1000 * sizeof(name) && strstr(patch, "\n@@ -1 +1 @@\n-1\n+2\n"));
}

static void all(void)
{
    world_begin();
    (void)setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    (void)setenv("HOME", world_dir, 1);
    RUN_STAGED(lines_are_counted);
    RUN_STAGED(what_is_not_text_is_binary);
    RUN_STAGED(a_mode_alone_has_no_patch);
    RUN_STAGED(patches_are_those_of_diff);
    RUN_STAGED(whole_files_are_as_diff_would_have_them);
    RUN_STAGED(line_ends_are_kept);
    RUN_STAGED(strange_names_are_quoted);
    RUN_STAGED(what_became_something_else_is_deleted_as_text);
    RUN_STAGED(random_edits_apply);
    RUN_STAGED(texts_that_take_too_long_stop_nothing_else);
    RUN_STAGED(long_paths_have_patches);
}

int main(void)
{
    RUN(all);
    return 0;
}
