// SPDX-License-Identifier: Apache-2.0
/* The totals of progress lines: of files and trees. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../src/cli/options/source_size.c" // NOLINT(bugprone-suspicious-include)
#include "base/cleanup.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "check.h"

static char directory[] = "/tmp/holt-size-XXXXXX";

static char *path_of(const char *name)
{
    return xasprintf("%s/%s", directory, name);
}

static void file_make(const char *name, const char *text)
{
    cleanup_free char *path = path_of(name);

    CHECK(file_create_at(AT_FDCWD, path, 0600, text) == 0);
}

static uint64_t total_of(const char *name, bool is_shown)
{
    struct progress progress = { .total = 7, .is_shown = is_shown };
    cleanup_free char *path = path_of(name);

    source_size_set(&progress, path);
    return progress.total;
}

static void a_tree_is_the_sum_of_its_files(void)
{
    cleanup_free char *below = path_of("tree"), *link = path_of("tree/link");

    CHECK(mkdir(below, 0700) == 0);
    file_make("tree/a", "12345");
    file_make("tree/b", "123");
    CHECK(symlink("/etc/passwd", link) == 0);
    CHECK(total_of("tree", true) == 8);
}

static void a_file_counts_as_it_is(void)
{
    file_make("plain", "not compressed");
    CHECK(total_of("plain", true) == strlen("not compressed"));
}

static void a_missing_file_has_no_total(void)
{
    CHECK(total_of("none", true) == 0);
}

static void nothing_is_counted_for_a_pipe(void)
{
    CHECK(total_of("tree", false) == 0);
}

int main(void)
{
    CHECK(mkdtemp(directory));
    RUN(a_tree_is_the_sum_of_its_files);
    RUN(a_file_counts_as_it_is);
    RUN(a_missing_file_has_no_total);
    RUN(nothing_is_counted_for_a_pipe);
    CHECK(tree_remove_at(AT_FDCWD, directory) == 0);
    return 0;
}
