// SPDX-License-Identifier: Apache-2.0
/* Truncation of long texts, and directories of bounded size. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "check.h"
#include "toolbox/bounded_dir.h"
#include "toolbox/cut.h"

static void lines_stay_whole(void)
{
    static const char text[] = "one\ntwo\nthree\nfour\nfive\nsix\n";
    struct tool_cut cut = tool_cut(text, strlen(text), 18);
    cleanup_with(buf_done) struct buf out = BUF_INIT(1024);

    CHECK(cut.head == 8 && strcmp(text + cut.tail, "five\nsix\n") == 0, "(%zu, %zu)", cut.head,
          cut.tail);
    CHECK(cut.missing_lines == 2);
    CHECK(tool_cut_add(&out, text, strlen(text), &cut, "o7") == 0);
    CHECK_TEXT(out.data, "one\ntwo\n[... 11 bytes, 2 lines, are not shown; to read them: "
                         "read_output handle=o7 offset=8 ...]\nfive\nsix\n");
    buf_clear(&out);
    CHECK(tool_cut_add(&out, text, strlen(text), &cut, NULL) == 0);
    CHECK(!strstr(out.data, "read_output") && strstr(out.data, "are not shown ...]\n"));
}

static void one_long_line_is_cut_at_a_character(void)
{
    char text[3 * 1000];
    struct tool_cut cut;
    cleanup_with(buf_done) struct buf out = BUF_INIT(8192);

    for (size_t i = 0; i < sizeof(text); i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    cut = tool_cut(text, sizeof(text), 100);
    CHECK(cut.head == 48 && cut.tail == sizeof(text) - 48, "(%zu, %zu)", cut.head, cut.tail);
    CHECK(tool_cut_add(&out, text, sizeof(text), &cut, "o1") == 0);
    CHECK(memcmp(out.data + 48, "\n[... 2904 bytes, 0 lines", 25) == 0, "(%s)", out.data + 48);
}

static void a_short_line_in_front_of_a_long_one_does_not_take_all_the_room(void)
{
    char text[5000];
    struct tool_cut cut;

    memset(text, 'x', sizeof(text));
    text[2] = text[sizeof(text) - 3] = '\n';
    cut = tool_cut(text, sizeof(text), 1000);
    CHECK(cut.head == 500 && cut.tail == sizeof(text) - 500, "(%zu, %zu)", cut.head, cut.tail);
}

static void every_budget_is_kept_and_nothing_is_shown_twice(void)
{
    char text[400];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 7 == 3 ? '\n' : (char)('a' + i % 26);
    for (size_t budget = 0; budget < sizeof(text) + 3; budget++) {
        struct tool_cut cut = tool_cut(text, sizeof(text), budget);

        CHECK(cut.head <= cut.tail && cut.tail <= sizeof(text));
        if (budget >= sizeof(text))
            CHECK(cut.head == sizeof(text));
        else
            CHECK(cut.head + sizeof(text) - cut.tail <= budget, "(%zu)", budget);
    }
}

/* --- bounded directory ----------------------------------------------------------------------- */

static void put(struct bounded_dir *bounded_dir, const char *name, const char *text)
{
    struct bounded_dir_file file = BOUNDED_DIR_FILE_INIT;

    CHECK(bounded_dir_create(bounded_dir, &file) == 0);
    CHECK(write_all(file.fd, text, strlen(text)) == 0);
    CHECK(bounded_dir_put(bounded_dir, &file, name) == 0);
}

static bool has(struct bounded_dir *bounded_dir, const char *name)
{
    cleanup_close int fd = bounded_dir_open(bounded_dir, name);

    return fd >= 0;
}

static void the_oldest_go_first_also_after_a_restart(void)
{
    char dir[] = "/tmp/holt-bounded-dir-test-XXXXXX";
    cleanup_close int root = -EBADF;
    struct bounded_dir bounded_dir;
    struct bounded_dir_file half = BOUNDED_DIR_FILE_INIT;

    CHECK(mkdtemp(dir));
    root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bounded_dir_init(&bounded_dir, root, "a/b", 3, 100);
    CHECK(!has(&bounded_dir, "o1") && bounded_dir_next_number(&bounded_dir) == 1);
    put(&bounded_dir, "o1", "1");
    put(&bounded_dir, "o2", "2");
    put(&bounded_dir, "o3", "3");
    put(&bounded_dir, "o4", "4");
    CHECK(!has(&bounded_dir, "o1") && has(&bounded_dir, "o2") && has(&bounded_dir, "o4"));
    put(&bounded_dir, "o3", "3 again"); /* replaces the old one and is the newest */
    CHECK(bounded_dir_create(&bounded_dir, &half) == 0);
    (void)fd_close(half.fd);
    bounded_dir_done(&bounded_dir);

    bounded_dir_init(&bounded_dir, root, "a/b", 3, 100);
    CHECK(bounded_dir_next_number(&bounded_dir) == 5);
    CHECK(faccessat(root, "a/b/.new-6", F_OK, 0) < 0); /* incomplete files are removed */
    put(&bounded_dir, "o5", "5");
    CHECK(!has(&bounded_dir, "o2") && has(&bounded_dir, "o3") && has(&bounded_dir, "o4") &&
          has(&bounded_dir, "o5"));
    put(&bounded_dir, "big",
        "123456789012345678901234567890123456789012345678901234567890123456789012345"
        "6789012345678901234");
    CHECK(has(&bounded_dir, "big") && has(&bounded_dir, "o5") && !has(&bounded_dir, "o3"));
    CHECK(!has(&bounded_dir, "../b/o5") && !has(&bounded_dir, ""));

    bounded_dir_purge(&bounded_dir);
    CHECK(!has(&bounded_dir, "o5") && bounded_dir_create(&bounded_dir, &half) < 0);
    bounded_dir_done(&bounded_dir);
    CHECK(tree_remove_at(AT_FDCWD, dir) == 0);
}

int main(void)
{
    RUN(lines_stay_whole);
    RUN(one_long_line_is_cut_at_a_character);
    RUN(a_short_line_in_front_of_a_long_one_does_not_take_all_the_room);
    RUN(every_budget_is_kept_and_nothing_is_shown_twice);
    RUN(the_oldest_go_first_also_after_a_restart);
    return 0;
}
