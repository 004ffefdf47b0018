// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "unit/tools/world.h"

enum { HUGE_COUNT = 100000 };

static const char *list_path(const char *path, int64_t depth, int64_t max)
{
    const struct tool_value values[] = { TEXT(path), NUMBER(depth), NUMBER(max) };

    return run(tool_list_dir, values, ARRAY_SIZE(values));
}

static const char *list_name(const char *name, int64_t depth)
{
    return list_path(in_dir(name), depth, 1000);
}

/* Makes a directory with an entry of each kind, if there is none yet. */
static void kinds_make(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "kinds/socket" };
    int fd;

    if (mkdir("kinds", 0755) < 0)
        return;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(mkdir("kinds/sub", 0755) == 0);
    put_into("kinds/b", "12345");
    put_into("kinds/..dots", "");
    put_into("kinds/.hidden", "1");
    put_into("kinds/sub/not-shown", "");
    CHECK(symlink("../b", "kinds/link") == 0 && mkfifo("kinds/fifo", 0644) == 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    (void)close(fd);
}

static void entries_are_sorted_and_have_a_type(void)
{
    kinds_make();
    CHECK_REPLY(list_name("kinds", 1), "..dots\t0\n.hidden\t1\nb\t5\nfifo\t(pipe)\nlink -> ../b\n"
                                       "socket\t(socket)\nsub/\n");
    CHECK(reply.outcome.flags == 0);
}

static void depth_includes_subdirectories(void)
{
    CHECK(mkdir("deep", 0755) == 0 && mkdir("deep/a", 0755) == 0 && mkdir("deep/a/b", 0755) == 0);
    put_into("deep/a/b/c", "1");
    put_into("deep/z", "");
    CHECK(symlink("..", "deep/a/up") == 0); /* not followed */
    CHECK_REPLY(list_name("deep", 2), "a/\na/b/\na/up -> ..\nz\t0\n");
    CHECK_REPLY(list_name("deep", 64), "a/\na/b/\na/b/c\t1\na/up -> ..\nz\t0\n");
    CHECK_REPLY(list_name("deep/a/up/a/../", 1), "a/\nz\t0\n");
}

static void unprintable_names_are_escaped(void)
{
    CHECK(mkdir("odd", 0755) == 0);
    put_into("odd/\xff\xfe", "");
    put_into("odd/a\nb\tc\x1b[0m\x7f", "");
    put_into("odd/caf\xc3\xa9", "");
    CHECK(mkdir("odd/d\n", 0755) == 0);
    put_into("odd/d\n/x", "");
    CHECK(symlink("t\n\xfe", "odd/l") == 0);
    CHECK_REPLY(list_name("odd", 2), "a\\nb\\tc\\x1b[0m\\x7f\t0\ncaf\xc3\xa9\t0\nd\\n/\nd\\n/x\t0\n"
                                     "l -> t\\n\\xfe\n\\xff\\xfe\t0\n");
}

static void long_lists_are_truncated(void)
{
    kinds_make();
    CHECK_REPLY(
        list_path(in_dir("kinds"), 1, 2),
        "..dots\t0\n.hidden\t1\n(truncated after 2 entries; increase max_results, or list a "
        "subdirectory)\n");
    CHECK(reply.outcome.flags == TOOL_IS_CUT);
    (void)list_path(in_dir("kinds"), 1, 7);
    CHECK(reply.outcome.flags == 0);
}

static void errors_name_the_reason(void)
{
    CHECK(mkdir("empty", 0755) == 0);
    put_into("file", "");
    CHECK_REPLY(list_name("empty", 1), about("(the directory '%s' is empty)\n", "empty"));
    CHECK_ERROR(list_name("file", 1),
                about("'%s' is not a directory. Use read_file to read a file.", "file"));
    CHECK_CONTAINS(list_name("emtpy", 1), "Did you mean '");
    CHECK_CONTAINS(list_name("no/such", 1), "/no'.");
    CHECK_ERROR(list_name("file/x", 1),
                about("Cannot list '%s': a component of the path is not a directory.", "file/x"));
}

static void an_unreadable_directory_is_reported(void)
{
    const char *path = in_dir("some");
    const struct tool_value values[] = { TEXT(path), NUMBER(9), NUMBER(100) };

    if (geteuid() != 0)
        SKIP("needs root");
    CHECK(mkdir("some", 0755) == 0 && mkdir("some/a", 0700) == 0 && mkdir("some/b", 0755) == 0);
    put_into("some/a/hidden", "");
    put_into("some/b/shown", "");
    CHECK_REPLY(run_as_nobody(tool_list_dir, values, 3),
                "a/\n(cannot read a/: Permission denied)\nb/\nb/shown\t0\n");
    CHECK(chmod("some", 0700) == 0);
    CHECK_ERROR(run_as_nobody(tool_list_dir, values, 3),
                about("Cannot list '%s': permission denied.", "some"));
}

/* In a tmpfs, for speed. */
static void a_directory_of_100000_entries_is_listed(void)
{
    char huge[] = "/dev/shm/holt-tools-test-XXXXXX", name[32];
    unsigned lines = 0;
    int fd;

    CHECK(mkdtemp(huge));
    fd = open(huge, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    for (int i = HUGE_COUNT; i > 0; i--) {
        (void)snprintf(name, sizeof(name), "file-%06d", i - 1);
        CHECK(mknodat(fd, name, S_IFREG | 0644, 0) == 0);
    }
    (void)list_path(huge, 1, HUGE_COUNT);
    CHECK(!is_error() && reply.outcome.flags == 0);
    for (const char *at = reply.content.data; (at = strchr(at, '\n')); at++) {
        (void)snprintf(name, sizeof(name), "file-%06u\t0\n", lines);
        CHECK(strncmp(at + 1 - strlen(name), name, strlen(name)) == 0);
        lines++;
    }
    CHECK(lines == HUGE_COUNT);
    CHECK_CONTAINS(list_path(huge, 1, 1000), "file-000999\t0\n(truncated after 1000 entries");
    (void)close(fd);
    CHECK(tree_remove_at(AT_FDCWD, huge) == 0);
}

static void all(void)
{
    world_open();
    RUN(entries_are_sorted_and_have_a_type);
    RUN(depth_includes_subdirectories);
    RUN(unprintable_names_are_escaped);
    RUN(long_lists_are_truncated);
    RUN(errors_name_the_reason);
    RUN(an_unreadable_directory_is_reported);
    RUN(a_directory_of_100000_entries_is_listed);
    world_close();
}

int main(void)
{
    RUN(all);
    return 0;
}
