// SPDX-License-Identifier: Apache-2.0
/* Diffs of trees that were made, or are changing, to cause as much trouble as possible. */
#include <pthread.h>
#include <stdatomic.h>

#include "kernel/store/diff_world.h"

enum {
    DEEP = 10000,
    DEEP_STEP = 100,
    RACE_ROUNDS = 300,
    GUESS_ROUNDS = 20000,
    BYSTANDERS = 200,
    WIDE = 20000
};

static void put_file_at(int dir_fd, const char *name, const char *text)
{
    cleanup_close int fd = openat(dir_fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Makes a chain of directories; at intervals with a file, and one in a side directory, to which
 * the walk returns from the full depth. */
static void deep_make(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (int i = 1; i <= DEEP; i++) {
        int next;

        CHECK(mkdirat(fd, "d", 0755) == 0);
        next = openat(fd, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        (void)close(fd);
        fd = next;
        if (i % DEEP_STEP == 0) {
            CHECK(mkdirat(fd, "a", 0755) == 0);
            put_file_at(fd, "a/file", text);
            put_file_at(fd, "file", text);
        }
    }
}

/* Checks the lines of a report, each of which must be about a file at a depth that has one. */
static size_t check_deep_report(const char *report, char kind)
{
    size_t lines = 0;

    for (const char *line = report, *next; *line; line = next) {
        const char *file = strstr(line, "/file");
        size_t len = (size_t)(file - line) - 2; /* length of "/d/d/d" or "/d/d/d/a" */

        next = strchr(line, '\n') + 1;
        CHECK(*line == kind && file < next);
        if (file[-1] == 'a')
            len -= 2;
        CHECK(len > 0 && len % (2 * (size_t)DEEP_STEP) == 0);
        lines++;
    }
    return lines;
}

static void deep_trees_are_compared(void)
{
    make_dir("old");
    make_dir("new");
    make_dir("none");
    deep_make("old", "old\n");
    deep_make("new", "new\n");
    CHECK(check_deep_report(diff_lines("old", "new"), 'M') == 2 * DEEP / DEEP_STEP);
    CHECK(check_deep_report(diff_names("none", "new"), 'A') == 2 * DEEP / DEEP_STEP);
    CHECK(check_deep_report(diff_names("new:none", "none"), 'D') == 2 * DEEP / DEEP_STEP);
}

static void too_deep_a_tree_is_refused(void)
{
    char name[NAME_MAX + 1];
    cleanup_with(view_close) struct volume_view old = { 0 }, new = { 0 };
    cleanup_close int fd = -EBADF;
    struct diff_options options = { 0 };
    struct err err = { 0 };

    (void)memset(name, 'x', NAME_MAX);
    name[NAME_MAX] = '\0';
    make_dir("old");
    make_dir("new");
    fd = open("new", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 1100; i++) {
        int next;

        CHECK(mkdirat(fd, name, 0755) == 0);
        next = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        (void)close(fd);
        fd = next;
    }
    old = view_open("/", "old", NULL);
    new = view_open("/", "new", NULL);
    CHECK(diff_run(&old, &new, &options, entry_print, NULL, &err) < 0);
    CHECK(err.kind == ERR_EXHAUSTED, "(%s)", err.msg);
}

static void wide_directories_are_compared(void)
{
    char path[64];
    const char *report;
    size_t lines = 0;

    make_dir("old");
    make_dir("new");
    for (int i = 0; i < WIDE; i++) {
        (void)snprintf(path, sizeof(path), "%s/%d", i % 2 ? "old" : "new", i);
        put_file(path, path);
    }
    report = diff_names("old", "new");
    for (const char *c = report; *c; c++)
        lines += *c == '\n';
    CHECK(lines == WIDE, "(%zu)", lines);
}

static void fifos_do_not_stop_anybody(void)
{
    make_dir("old");
    make_dir("new");
    CHECK(mkfifo("old/same", 0644) == 0 && mkfifo("new/same", 0644) == 0);
    CHECK(mkfifo("new/new", 0644) == 0 && mkfifo("old/mode", 0600) == 0);
    CHECK(mkfifo("new/mode", 0644) == 0);
    put_file("old/file", "text\n");
    CHECK(mkfifo("new/file", 0644) == 0);
    CHECK_TEXT(diff_lines("old", "new"), "M /file +0 -1\nM /mode\nA /new\n");
}

static atomic_bool is_over;

static void *swap_loop(void *unused)
{
    (void)unused;
    while (!is_over) {
        (void)renameat2(AT_FDCWD, "new/dir", AT_FDCWD, "new/swap", RENAME_EXCHANGE);
        (void)renameat2(AT_FDCWD, "new/file", AT_FDCWD, "new/link", RENAME_EXCHANGE);
        (void)renameat2(AT_FDCWD, "new/dir/sub", AT_FDCWD, "new/dir/to", RENAME_EXCHANGE);
    }
    return NULL;
}

/* Each kind of link leads to a secret, whose name and contents must not appear anywhere. */
static void links_swapped_in_lead_nowhere(void)
{
    pthread_t thread;
    size_t seen = 0;

    make_dir("outside");
    put_file("outside/secret", "secret\n");
    make_dir("outside/sub");
    put_file("outside/sub/secret", "secret\n");
    make_dir("old");
    make_dir("new");
    /* These add time between the stat of a directory and its opening. */
    for (int i = 0; i < BYSTANDERS; i++) {
        char path[32];

        (void)snprintf(path, sizeof(path), "new/x%d", i);
        CHECK(mkfifo(path, 0644) == 0);
    }
    make_dir("new/dir");
    put_file("new/dir/plain", "plain\n");
    make_dir("new/dir/sub");
    put_file("new/dir/sub/plain", "plain too\n");
    CHECK(symlink("../../outside", "new/dir/to") == 0 && symlink("../outside", "new/swap") == 0);
    put_file("new/file", "file\n");
    CHECK(symlink("../outside/secret", "new/link") == 0);
    is_over = false;
    CHECK(pthread_create(&thread, NULL, swap_loop, NULL) == 0);
    for (int i = 0; i < RACE_ROUNDS; i++) {
        seen += strstr(diff_patch("old", "new"), "plain") != NULL;
        CHECK(!strstr(diff_patch("old", "new"), "secret"));
        CHECK(!strstr(diff_names("old", "new"), "secret"));
    }
    is_over = true;
    CHECK(pthread_join(thread, NULL) == 0 && seen > 0);
}

static void *guess_loop(void *unused)
{
    (void)unused;
    while (!is_over)
        (void)renameat2(AT_FDCWD, "new/guess", AT_FDCWD, "new/link", RENAME_EXCHANGE);
    return NULL;
}

/* Otherwise one could guess the contents of any file and see whether a difference is reported. */
static void files_are_not_compared_through_a_link(void)
{
    pthread_t thread;

    put_file("outside", "right\n");
    make_dir("old");
    make_dir("new");
    put_file("old/guess", "right\n");
    put_file("new/guess", "wrong\n");
    CHECK(symlink("../outside", "new/link") == 0);
    is_over = false;
    CHECK(pthread_create(&thread, NULL, guess_loop, NULL) == 0);
    for (int i = 0; i < GUESS_ROUNDS; i++)
        CHECK(strstr(diff_names("old", "new"), "M /guess"));
    is_over = true;
    CHECK(pthread_join(thread, NULL) == 0);
}

static void *write_loop(void *seed)
{
    unsigned state = *(unsigned *)seed;
    char from[32], to[32];

    while (!is_over) {
        (void)snprintf(from, sizeof(from), "merged/%d", rand_r(&state) % 20);
        (void)snprintf(to, sizeof(to), "merged/%d/%d", rand_r(&state) % 20, rand_r(&state) % 5);
        switch (rand_r(&state) % 6) {
        case 0:
            (void)mkdir(from, 0755);
            break;
        case 1:
            (void)rename(to, from);
            break;
        case 2:
            (void)rename(from, to);
            break;
        case 3:
            (void)tree_remove_at(AT_FDCWD, from);
            break;
        default: {
            cleanup_close int fd = open(from, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0644);

            if (fd >= 0)
                (void)!write(fd, "more\n", 5);
        }
        }
    }
    return NULL;
}

static void a_live_tree_can_be_compared(void)
{
    unsigned seeds[2] = { 1, 2 };
    pthread_t threads[2];

    make_dir("lower");
    overlay_mount("upper", "lower");
    is_over = false;
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, write_loop, &seeds[i]) == 0);
    for (int i = 0; i < RACE_ROUNDS / 3; i++)
        (void)diff_patch("lower", "upper:lower");
    is_over = true;
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    overlay_umount();
}

static void all(void)
{
    world_begin();
    RUN_STAGED(deep_trees_are_compared);
    RUN_STAGED(too_deep_a_tree_is_refused);
    RUN_STAGED(wide_directories_are_compared);
    RUN_STAGED(fifos_do_not_stop_anybody);
    RUN_STAGED(links_swapped_in_lead_nowhere);
    RUN_STAGED(files_are_not_compared_through_a_link);
    RUN_STAGED(a_live_tree_can_be_compared);
}

int main(void)
{
    RUN(all);
    return 0;
}
