// SPDX-License-Identifier: Apache-2.0
/* Object storage in a directory: what holds for every backend, and for directories alone. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/files/tree.h"
#include "check.h"
#include "unit/remote/suite.h"

enum { ROUNDS = 300 };

static char top[] = "/tmp/holt-remote-XXXXXX";

static struct remote *open_at(const char *folder)
{
    char url[128];
    struct remote *opened = NULL;

    (void)snprintf(url, sizeof(url), "file://%s", folder);
    CHECK(remote_open(&(struct remote_config){ .url = url }, &opened, &err) == 0, "(%s)", err.msg);
    return opened;
}

static bool has_file(const char *name)
{
    char path[256];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%s/%s", top, name);
    return lstat(path, &st) == 0;
}

static void a_key_is_no_folder_of_another(void)
{
    put("file", "x");
    CHECK(remote_put(remote, "file/below", "x", 1, &err) < 0 && err.kind == ERR_INVALID, "(%s)",
          err.msg);
    put("folder/below", "x");
    CHECK(remote_put(remote, "folder", "x", 1, &err) < 0 && err.kind == ERR_INVALID, "(%s)",
          err.msg);
}

static void threads_leave_no_folders(void)
{
    threads_do_not_disturb_each_other();
    CHECK(!has_file("folder"));
}

static void empty_folders_are_removed(void)
{
    put("a/b/one", "1");
    put("a/c", "2");
    CHECK(remote_remove(remote, "a/b/one", &err) == 0, "(%s)", err.msg);
    CHECK(!has_file("a/b") && has_file("a"));
    CHECK(remote_remove(remote, "a/c", &err) == 0);
    CHECK(!has_file("a"));
}

static void other_files_of_the_directory_are_no_objects(void)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/link", top);
    CHECK(symlink("/etc/passwd", path) == 0);
    (void)snprintf(path, sizeof(path), "%s/out", top);
    CHECK(symlink("/etc", path) == 0);
    (void)snprintf(path, sizeof(path), "%s/pipe", top);
    CHECK(mkfifo(path, 0600) == 0);
    (void)snprintf(path, sizeof(path), "%s/~other", top);
    CHECK(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
    CHECK(list("").count == 0);
    CHECK(is_missing("pipe"));
    for (int i = 0; i < 2; i++) {
        cleanup_with(buf_done) struct buf got = BUF_INIT(REMOTE_OBJECT_MAX);

        CHECK(remote_get(remote, i ? "link" : "out/passwd", &got, &err) < 0 && got.len == 0);
    }
    CHECK(remote_put(remote, "out/holt-test", "x", 1, &err) < 0);
    CHECK(access("/etc/holt-test", F_OK) < 0);
}

static void what_a_crash_left_goes_a_day_later(void)
{
    const struct timespec old[2] = { { .tv_sec = 1700000000 }, { .tv_sec = 1700000000 } };
    char path[256];

    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/~new/%d", top, i);
        CHECK(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
        CHECK(i == 1 || utimensat(AT_FDCWD, path, old, 0) == 0);
    }
    remote_close(open_at(top));
    CHECK(!has_file("~new/0") && has_file("~new/1"));
    CHECK(list("").count == 0);
}

static void a_storage_that_is_none_is_refused(void)
{
    static const char *const refused[] = { "",
                                           "/tmp",
                                           "file://",
                                           "file://relative",
                                           "ftp://x/y",
                                           "file:///nonexistent/holt",
                                           "file:///etc/passwd" };
    struct remote *opened = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        CHECK(remote_open(&(struct remote_config){ .url = refused[i] }, &opened, &err) < 0, "(%s)",
              refused[i]);
        CHECK((err.kind == ERR_INVALID || err.kind == ERR_NOT_FOUND) && !opened);
    }
}

static void around(test_fn *test)
{
    CHECK(mkdtemp(top));
    remote = open_at(top);
    test();
    CHECK_TEXT(remote_where(remote) + strlen("file://"), top);
    remote_close(remote);
    CHECK(tree_remove_at(AT_FDCWD, top) == 0);
}

#define RUN_IN_DIRECTORY(test) test_run(#test, test, around)

int main(void)
{
    suite_rounds = ROUNDS;
    suite_run(around);
    RUN_IN_DIRECTORY(threads_leave_no_folders);
    RUN_IN_DIRECTORY(one_of_several_claims_wins);
    RUN_IN_DIRECTORY(a_key_is_no_folder_of_another);
    RUN_IN_DIRECTORY(empty_folders_are_removed);
    RUN_IN_DIRECTORY(other_files_of_the_directory_are_no_objects);
    RUN_IN_DIRECTORY(what_a_crash_left_goes_a_day_later);
    RUN_IN_DIRECTORY(a_storage_that_is_none_is_refused);
    return 0;
}
