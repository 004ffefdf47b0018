// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "check.h"

static char scratch[] = "/tmp/holt-tree-test.XXXXXX";
static int scratch_fd = -EBADF;

static bool exists(const char *name)
{
    return faccessat(scratch_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make(const char *name)
{
    cleanup_free char *path = xasprintf("%s/%s", scratch, name);

    CHECK(tree_make(path, 0755) == 0, "(%s)", name);
}

static void every_missing_directory_is_made(void)
{
    make("a/b/c");
    CHECK(exists("a/b/c"));
    make("a/b/c");
    make("a/b/c/d/");
    CHECK(exists("a/b/c/d"));
}

static void a_file_in_the_way_is_an_error(void)
{
    cleanup_free char *path = xasprintf("%s/file/below", scratch);

    CHECK(file_create_at(scratch_fd, "file", 0600, "x") == 0);
    CHECK(tree_make(path, 0755) < 0);
}

static void a_tree_goes_with_all_that_is_in_it(void)
{
    if (geteuid() != 0)
        SKIP("only root may remove from a directory without permissions");
    make("gone/with/depth");
    CHECK(file_create_at(scratch_fd, "gone/with/file", 0000, "x") == 0);
    CHECK(mkfifoat(scratch_fd, "gone/fifo", 0600) == 0);
    CHECK(fchmodat(scratch_fd, "gone/with", 0500, 0) == 0);
    CHECK(tree_remove_at(scratch_fd, "gone") == 0);
    CHECK(!exists("gone"));
}

static void a_missing_name_is_fine(void)
{
    CHECK(tree_remove_at(scratch_fd, "never-was") == 0);
}

static void a_single_file_goes_too(void)
{
    CHECK(file_create_at(scratch_fd, "single", 0600, "x") == 0);
    CHECK(tree_remove_at(scratch_fd, "single") == 0);
    CHECK(!exists("single"));
}

static void a_symlink_is_removed_and_never_followed(void)
{
    make("kept");
    make("links");
    CHECK(file_create_at(scratch_fd, "kept/file", 0600, "x") == 0);
    CHECK(symlinkat("../kept", scratch_fd, "links/relative") == 0);
    CHECK(symlinkat(scratch, scratch_fd, "links/absolute") == 0);
    CHECK(symlinkat("kept", scratch_fd, "top") == 0);
    CHECK(tree_remove_at(scratch_fd, "links") == 0);
    CHECK(tree_remove_at(scratch_fd, "top") == 0);
    CHECK(!exists("links") && !exists("top"));
    CHECK(exists("kept/file"));
}

static void depth_beyond_path_max_is_no_obstacle(void)
{
    enum { DEPTH = 3000 };
    cleanup_close int fd = -EBADF;

    CHECK(mkdirat(scratch_fd, "deep", 0755) == 0);
    fd = openat(scratch_fd, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEPTH; i++) {
        int next;

        CHECK(mkdirat(fd, "level", 0755) == 0);
        next = openat(fd, "level", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        (void)fd_close(fd);
        fd = next;
    }
    CHECK(tree_remove_at(scratch_fd, "deep") == 0);
    CHECK(!exists("deep"));
}

static void a_tree_can_be_removed_in_parts(void)
{
    enum { FILES = 25, PART = 10 };
    char name[32];
    int parts = 1;

    make("parts/below");
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof(name), "parts/below/%d", i);
        CHECK(file_create_at(scratch_fd, name, 0600, "x") == 0);
    }
    for (int r; (r = tree_remove_some_at(scratch_fd, "parts", PART)) != 0; parts++)
        CHECK(r == -EAGAIN && parts <= FILES && exists("parts"));
    CHECK(parts == FILES / PART + 1, "(%d)", parts);
    CHECK(!exists("parts"));
}

static void remove_scratch(void)
{
    (void)tree_remove_at(AT_FDCWD, scratch);
}

static void all(void)
{
    CHECK(mkdtemp(scratch));
    scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(scratch_fd >= 0);
    CHECK(atexit(remove_scratch) == 0);

    RUN(every_missing_directory_is_made);
    RUN(a_file_in_the_way_is_an_error);
    RUN(a_tree_goes_with_all_that_is_in_it);
    RUN(a_missing_name_is_fine);
    RUN(a_single_file_goes_too);
    RUN(a_symlink_is_removed_and_never_followed);
    RUN(depth_beyond_path_max_is_no_obstacle);
    RUN(a_tree_can_be_removed_in_parts);
}

int main(void)
{
    RUN(all);
    return 0;
}
