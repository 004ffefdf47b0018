// SPDX-License-Identifier: Apache-2.0
/* A tree from untrusted entries never leaves its directory, and a reported tree is rebuilt
 * identically. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/file_entry.h"
#include "base/files/tree.h"
#include "base/files/tree_sink.h"
#include "base/files/tree_source.h"
#include "check.h"

static char dir[64];

/* Runs a shell command. Returns its status. */
static int shell(const char *line)
{
    pid_t pid = fork();
    int status = -1;

    CHECK(pid >= 0);
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", line, NULL);
        _exit(127);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

static struct file_entry entry(const char *path, enum entry_type type)
{
    return (struct file_entry){ .path = path,
                                .type = type,
                                .mode = type == ENTRY_DIRECTORY ? 0755 : 0644,
                                .target = "",
                                .same_as = "",
                                .user_name = "",
                                .group_name = "" };
}

static struct tree_sink *sink_new(void)
{
    static const struct tree_sink_options options = { .keeps_owner = false };
    char inside[80];
    int fd;

    (void)snprintf(inside, sizeof(inside), "%s/inside", dir);
    (void)mkdir(inside, 0755);
    fd = open(inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return tree_sink_new(fd, &options);
}

/* Returns the sink's result for the last of these entries. */
static int sink_result(const struct file_entry *entries, size_t count)
{
    struct tree_sink *sink = sink_new();
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = tree_sink_entry(sink, &entries[i]);
        if (r < 0)
            CHECK(i == count - 1, "(%s: %s)", entries[i].path, strerror(-r));
    }
    if (r == 0)
        r = tree_sink_finish(sink);
    tree_sink_free(sink);
    return r;
}

static void paths_that_lead_outside_are_refused(void)
{
    static const char *const paths[] = { "",          ".",    "..", "/x",  "../x", "a/../x",
                                         "a/../../x", "a//b", "a/", "x/y", "./x" };

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        const struct file_entry bad = entry(paths[i], ENTRY_FILE);

        CHECK(sink_result(&bad, 1) == -EBADMSG, "(%s)", paths[i]);
    }
}

static void nothing_goes_through_a_link(void)
{
    struct file_entry link = entry("link", ENTRY_LINK), below = entry("link/x", ENTRY_FILE);
    struct file_entry same = entry("link", ENTRY_DIRECTORY), deep = entry("deep", ENTRY_FILE);
    char outside[96];

    (void)snprintf(outside, sizeof(outside), "%s/outside", dir);
    CHECK(mkdir(outside, 0755) == 0);
    link.target = outside;
    CHECK(sink_result((struct file_entry[]){ link, below }, 2) == -EBADMSG);
    CHECK(sink_result((struct file_entry[]){ same }, 1) == -ENOTDIR);
    CHECK(sink_result((struct file_entry[]){ same, below }, 1) == -ENOTDIR);
    deep.same_as = "link/secret";
    CHECK(sink_result(&deep, 1) == -ENOTDIR);
    deep.same_as = "../outside";
    CHECK(sink_result(&deep, 1) == -EBADMSG);
    deep.same_as = "link";
    CHECK(sink_result(&deep, 1) ==
          -EBADMSG);            /* otherwise a link to a link would reach its target */
    CHECK(rmdir(outside) == 0); /* fails unless it is empty */
}

/* Returns the sink's result for an entry in the place of something, which must be there afterwards.
 */
static int in_place_of(const char *make, const char *type, const struct file_entry *new_entry)
{
    char command[256];
    int r;

    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s/inside && cd %s/inside && rm -f special && %s", dir, dir, make);
    CHECK(shell(command) == 0);
    r = sink_result(new_entry, 1);
    (void)snprintf(command, sizeof(command), "cd %s/inside && test -%s special && rm special", dir,
                   type);
    CHECK(shell(command) == 0, "(%s)", make);
    return r;
}

static void only_regular_files_are_replaced(void)
{
    struct file_entry file = entry("special", ENTRY_FILE), link = entry("special", ENTRY_LINK);

    link.target = "elsewhere";
    CHECK(in_place_of("mkfifo special", "p", &file) == -EEXIST);
    CHECK(in_place_of("mkfifo special", "p", &link) == -EEXIST);
    CHECK(in_place_of("ln -s nowhere special", "L", &file) == -EEXIST);
    CHECK(in_place_of("ln -s nowhere special", "L", &link) == 0);
    CHECK(in_place_of("echo >special", "f", &file) == 0);
    CHECK(in_place_of("echo >special", "L", &link) == 0);
}

static void a_skipped_entry_ends_no_copy(void)
{
    const struct file_entry file = entry("special", ENTRY_FILE), next = entry("third", ENTRY_FILE);
    struct tree_sink *sink = sink_new();
    char command[256];

    (void)snprintf(command, sizeof(command), "cd %s/inside && mkfifo special", dir);
    CHECK(shell(command) == 0);
    CHECK(tree_sink_entry(sink, &file) == -EEXIST);
    CHECK(tree_sink_data(sink, "x", 1) == -EBADMSG);
    CHECK(tree_sink_entry(sink, &next) == 0 && tree_sink_data(sink, "new", 3) == 0);
    CHECK(tree_sink_finish(sink) == 0);
    tree_sink_free(sink);
    (void)snprintf(command, sizeof(command),
                   "cd %s/inside && test \"$(cat third)\" = new && rm special third", dir);
    CHECK(shell(command) == 0);
}

static void a_directory_is_not_entered_again(void)
{
    const struct file_entry entries[] = { entry("a", ENTRY_DIRECTORY), entry("b", ENTRY_DIRECTORY),
                                          entry("a/x", ENTRY_FILE) };

    CHECK(sink_result(entries, 3) == -EBADMSG);
}

static void a_file_that_is_not_whole_leaves_nothing(void)
{
    const struct file_entry file = entry("file", ENTRY_FILE), pipe = entry("pipe", ENTRY_PIPE);
    struct tree_sink *sink = sink_new();
    char command[256];

    CHECK(tree_sink_entry(sink, &file) == 0 && tree_sink_data(sink, "old", 3) == 0);
    CHECK(tree_sink_entry(sink, &pipe) == -ENOTSUP);
    CHECK(tree_sink_data(sink, "x", 1) == -EBADMSG);
    CHECK(tree_sink_entry(sink, &file) == 0 && tree_sink_data(sink, "new", 3) == 0);
    tree_sink_free(sink);
    (void)snprintf(command, sizeof(command),
                   "cd %s/inside && test \"$(cat file)\" = old && "
                   "! ls -A | grep -q holt",
                   dir);
    CHECK(shell(command) == 0);
}

/* Even without a cleanup: a kill in the middle leaves no more than this. */
static void a_file_has_no_name_before_it_is_whole(void)
{
    const struct file_entry file = entry("whole", ENTRY_FILE), next = entry("zz", ENTRY_FILE);
    struct tree_sink *sink = sink_new();
    char command[256];

    CHECK(tree_sink_entry(sink, &file) == 0 && tree_sink_data(sink, "text", 4) == 0);
    (void)snprintf(command, sizeof(command), "cd %s/inside && ! ls -A | grep -E 'holt|whole'", dir);
    CHECK(shell(command) == 0);
    CHECK(tree_sink_entry(sink, &next) == 0);
    (void)snprintf(command, sizeof(command), "cd %s/inside && test \"$(cat whole)\" = text", dir);
    CHECK(shell(command) == 0);
    tree_sink_free(sink);
}

static int copy_entry(void *sink, const struct file_entry *each)
{
    return tree_sink_entry(sink, each);
}

static int copy_data(void *sink, const void *data, size_t len)
{
    return tree_sink_data(sink, data, len);
}

static int copy_trouble(void *sink, const char *path, int errnum)
{
    (void)sink;
    CHECK(false, "(%s: %s)", path, strerror(errnum));
    return -errnum;
}

static void what_is_told_of_a_tree_makes_the_same_tree(void)
{
    static const struct tree_source_ops ops = { copy_entry, copy_data, copy_trouble, NULL };
    const struct tree_source options = { .wants_data = true, .rename = "copy" };
    struct tree_sink *sink = sink_new();
    char command[512], from[96];

    (void)snprintf(command, sizeof(command),
                   "cd %s && mkdir -p from/a/b from/a-b && echo 1 >from/a/x && ln from/a/x from/y "
                   "&& ln -s a/x from/l && chmod 700 from/a && touch -d 2001-01-01 from/a/b from/y",
                   dir);
    CHECK(shell(command) == 0);
    (void)snprintf(from, sizeof(from), "%s/from", dir);
    CHECK(tree_source_run(AT_FDCWD, from, &options, &ops, sink) == 0);
    CHECK(tree_sink_finish(sink) == 0);
    tree_sink_free(sink);
    (void)snprintf(
        command, sizeof(command),
        "cd %s && f() { (cd $1 && find . -printf '%%P %%y %%m %%n %%T@ %%l\\n' | sort); } "
        "&& test \"$(f from)\" = \"$(f inside/copy)\" && diff -r from inside/copy",
        dir);
    CHECK(shell(command) == 0);
}

static void a_listing_is_ordered_as_it_is_walked(void)
{
    CHECK(tree_source_compare("a", "a") == 0);
    CHECK(tree_source_compare("a", "a/b") < 0 && tree_source_compare("a/b", "a-b") < 0);
    CHECK(tree_source_compare("a/b", "a\001") < 0 && tree_source_compare("a\001", "a/b") > 0);
    CHECK(tree_source_compare("a", "\377") < 0 && tree_source_compare("b", "a/z/z") > 0);
}

static void all(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/holt-sink-test-XXXXXX");
    CHECK(mkdtemp(dir));
    RUN(paths_that_lead_outside_are_refused);
    RUN(nothing_goes_through_a_link);
    RUN(only_regular_files_are_replaced);
    RUN(a_skipped_entry_ends_no_copy);
    RUN(a_directory_is_not_entered_again);
    RUN(a_file_that_is_not_whole_leaves_nothing);
    RUN(a_file_has_no_name_before_it_is_whole);
    RUN(what_is_told_of_a_tree_makes_the_same_tree);
    RUN(a_listing_is_ordered_as_it_is_walked);
    CHECK(tree_remove_at(AT_FDCWD, dir) == 0);
}

int main(void)
{
    RUN(all);
    return 0;
}
