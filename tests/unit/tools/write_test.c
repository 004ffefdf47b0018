// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "unit/tools/world.h"

static const char *write_path(const char *path, const char *content, bool creates_dirs)
{
    const struct tool_value values[] = { TEXT(path), TEXT(content), FLAG(creates_dirs) };

    return run(tool_write_file, values, ARRAY_SIZE(values));
}

static const char *write_name(const char *name, const char *content)
{
    return write_path(in_dir(name), content, false);
}

static struct stat stat_of(const char *name)
{
    struct stat st;

    CHECK(lstat(name, &st) == 0, "(%s)", name);
    return st;
}

static void a_new_file_is_written(void)
{
    CHECK_REPLY(write_name("new", "text"), about("Created '%s' (4 bytes).", "new"));
    CHECK_TEXT(content_of("new"), "text");
    CHECK((stat_of("new").st_mode & 07777) == 0644);
    CHECK_TEXT(changed_at(0), about("A %s", "new"));
    CHECK_TEXT(changed_at(1), "");
    CHECK_REPLY(write_name("empty", ""), about("Created '%s' (0 bytes).", "empty"));
    CHECK(stat_of("empty").st_size == 0);
    CHECK_REPLY(write_name("..dots", "x"), about("Created '%s' (1 byte).", "..dots"));
    CHECK(!has_leftovers());
}

static void a_file_is_replaced_with_its_mode_and_owner(void)
{
    ino_t before;

    put_into("old", "old text that is longer");
    CHECK(chmod("old", 04751) == 0);
    before = stat_of("old").st_ino;
    CHECK_REPLY(write_name("old", "new"), about("Wrote '%s' (3 bytes).", "old"));
    CHECK_TEXT(content_of("old"), "new");
    CHECK((stat_of("old").st_mode & 07777) == 04751);
    CHECK(stat_of("old").st_ino != before); /* a reader of the old file keeps it */
    CHECK_TEXT(changed_at(0), about("M %s", "old"));
    CHECK(chmod("old", 0400) == 0);
    if (geteuid() == 0)
        CHECK(chown("old", 1234, 5678) == 0);
    CHECK_REPLY(write_name("old", "again"), about("Wrote '%s' (5 bytes).", "old"));
    CHECK((stat_of("old").st_mode & 07777) == 0400);
    if (geteuid() == 0)
        CHECK(stat_of("old").st_uid == 1234 && stat_of("old").st_gid == 5678);
}

static void a_file_is_replaced_with_its_attributes(void)
{
    /* Version 2; then tag, permissions and id of the owner, user 1234, group, mask, others. */
    static const char acl[] =
        "\2\0\0\0\1\0\6\0\xff\xff\xff\xff\2\0\4\0\xd2\4\0\0\4\0\4\0"
        "\xff\xff\xff\xff\x10\0\4\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff";
    static const char acl_name[] = "system.posix_acl_access";
    char value[sizeof(acl)];

    put_into("tagged", "old");
    CHECK(setxattr("tagged", "user.note", "kept\0too", 8, 0) == 0);
    CHECK(setxattr("tagged", "user.empty", "", 0, 0) == 0);
    CHECK(setxattr("tagged", acl_name, acl, sizeof(acl) - 1, 0) == 0);
    CHECK_REPLY(write_name("tagged", "new"), about("Wrote '%s' (3 bytes).", "tagged"));
    CHECK_TEXT(content_of("tagged"), "new");
    CHECK(getxattr("tagged", "user.note", value, sizeof(value)) == 8);
    CHECK(memcmp(value, "kept\0too", 8) == 0);
    CHECK(getxattr("tagged", "user.empty", value, sizeof(value)) == 0);
    CHECK(getxattr("tagged", acl_name, value, sizeof(value)) == sizeof(acl) - 1);
    CHECK(memcmp(value, acl, sizeof(acl) - 1) == 0);
    CHECK(!has_leftovers());
}

static void nul_and_any_byte_are_written(void)
{
    const struct tool_value values[] = { TEXT(in_dir("bytes")),
                                         { .type = TOOL_TEXT, .text = { "a\0\xff", 3 } },
                                         FLAG(false) };

    CHECK(values[0].text.len > 0);
    (void)run(tool_write_file, values, ARRAY_SIZE(values));
    CHECK(!is_error() && stat_of("bytes").st_size == 3);
    CHECK(memcmp(content_of("bytes"), "a\0\xff", 3) == 0);
}

/* The target of a link is written, also if it does not exist yet. */
static void links_are_followed(void)
{
    CHECK(mkdir("deep", 0755) == 0);
    put_into("deep/target", "old");
    CHECK(chmod("deep/target", 0600) == 0);
    CHECK(symlink("deep/target", "link") == 0 && symlink("link", "link-to-link") == 0);
    CHECK_REPLY(write_name("link-to-link", "new"), about("Wrote '%s' (3 bytes).", "link-to-link"));
    CHECK_TEXT(content_of("deep/target"), "new");
    CHECK(S_ISLNK(stat_of("link").st_mode) && S_ISLNK(stat_of("link-to-link").st_mode));
    CHECK((stat_of("deep/target").st_mode & 07777) == 0600);
    CHECK_TEXT(changed_at(0), about("M %s", "deep/target"));
    CHECK(symlink("deep/not-yet", "dangling") == 0);
    CHECK(!strstr(write_name("dangling", "made"), "Wrote") && !is_error());
    CHECK_TEXT(content_of("deep/not-yet"), "made");
    CHECK(S_ISLNK(stat_of("dangling").st_mode));
    CHECK(symlink(in_dir("deep/target"), "absolute") == 0);
    (void)write_name("absolute", "by an absolute link");
    CHECK_TEXT(content_of("deep/target"), "by an absolute link");
    CHECK(symlink("deep", "dir-link") == 0);
    (void)write_name("dir-link/../deep/./in", "in");
    CHECK_TEXT(content_of("deep/in"), "in");
    CHECK_TEXT(changed_at(0), about("A %s", "deep/in")); /* without links and dots */
    CHECK(symlink("circle", "circle") == 0);
    CHECK_ERROR(write_name("circle", "x"),
                about("Cannot write '%s': too many levels of symbolic links.", "circle"));
    CHECK(symlink("nowhere/x", "dangling-dir") == 0);
    CHECK_CONTAINS(write_name("dangling-dir", "x"), "does not exist. Set create_dirs");
}

static void directories_are_created_on_request(void)
{
    CHECK_ERROR(write_name("a/b/c", "x"),
                about("The directory of '%s' does not exist. Set create_dirs to create it, or "
                      "check the path.",
                      "a/b/c"));
    CHECK(access("a", F_OK) < 0);
    CHECK_REPLY(write_path(in_dir("a/b/c"), "x", true), about("Created '%s' (1 byte).", "a/b/c"));
    CHECK_TEXT(content_of("a/b/c"), "x");
    CHECK((stat_of("a/b").st_mode & 07777) == 0755);
    CHECK_TEXT(changed_at(0), about("A %s", "a"));
    CHECK_TEXT(changed_at(1), about("A %s", "a/b"));
    CHECK_TEXT(changed_at(2), about("A %s", "a/b/c"));
    CHECK_TEXT(changed_at(3), "");
    CHECK_REPLY(write_path(in_dir("a/b/d"), "x", true), about("Created '%s' (1 byte).", "a/b/d"));
    CHECK_TEXT(changed_at(1), "");
    CHECK_ERROR(write_path(in_dir("a/b/c/d"), "x", true),
                about("Cannot write '%s': a component of the path is not a directory.", "a/b/c/d"));
}

static void only_files_are_written(void)
{
    CHECK(mkdir("sub", 0755) == 0 && mkfifo("fifo", 0644) == 0);
    CHECK_ERROR(write_name("sub", "x"), about("'%s' is a directory, not a file.", "sub"));
    CHECK_ERROR(write_name("sub/", "x"), about("'%s' is a directory, not a file.", "sub/"));
    CHECK_ERROR(write_name("fifo", "x"), about("'%s' is a pipe, not a file.", "fifo"));
    CHECK_ERROR(write_path("/dev/null", "x", false), "'/dev/null' is a device, not a file.");
    CHECK_ERROR(write_path("/", "x", false), "'/' is a directory, not a file.");
    CHECK(!has_leftovers());
}

/* Links in /proc have no path, and files in it are written in place. */
static void files_in_proc_are_written_in_place(void)
{
    char name[32] = "";

    CHECK_ERROR(write_path("/proc/self/exe", "x", true),
                "Cannot write '/proc/self/exe': operation not permitted.");
    CHECK_ERROR(write_path("/proc/self/fd/0", "x", true),
                "Cannot write '/proc/self/fd/0': operation not permitted.");
    CHECK_REPLY(write_path("/proc/self/comm", "renamed", false),
                "Wrote '/proc/self/comm' (7 bytes).");
    CHECK(prctl(PR_GET_NAME, name, 0, 0, 0) == 0);
    CHECK_TEXT(name, "renamed");
    CHECK_CONTAINS(write_path("/proc/self/nothing", "x", false), "'/proc/self/nothing'");
    CHECK(is_error());
}

static void a_failed_write_keeps_the_old_content(void)
{
    const struct rlimit none = { .rlim_cur = 100, .rlim_max = RLIM_INFINITY };
    const struct rlimit all = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };
    static char large[1000];

    memset(large, 'x', sizeof(large) - 1);
    put_into("kept", "kept");
    (void)signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    CHECK_ERROR(write_name("kept", large),
                about("Cannot write '%s': the file would be too large.", "kept"));
    CHECK(setrlimit(RLIMIT_FSIZE, &all) == 0);
    CHECK_TEXT(content_of("kept"), "kept");
    CHECK_TEXT(changed_at(0), "");
    CHECK(!has_leftovers());
}

static void permissions_are_respected(void)
{
    const char *path = in_dir("mine");
    const struct tool_value values[] = { TEXT(path), TEXT("x"), FLAG(false) };

    if (geteuid() != 0)
        SKIP("needs root");
    put_into("mine", "mine");
    CHECK_ERROR(run_as_nobody(tool_write_file, values, 3),
                about("Cannot write '%s': permission denied.", "mine"));
    CHECK_TEXT(content_of("mine"), "mine");
}

/* In a mount namespace: a full and a read-only file system, and a file that is a mount point. */
static int in_mounts(void)
{
    static char large[100000];

    if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 77;
    CHECK(mkdir("small", 0755) == 0 && mount("none", "small", "tmpfs", 0, "size=64k") == 0);
    memset(large, 'x', sizeof(large) - 1);
    CHECK_ERROR(
        write_name("small/f", large),
        about("Cannot write '%s': no space left; remove files that are not needed.", "small/f"));
    CHECK(rmdir("small/f") < 0 && errno == ENOENT);
    CHECK(mount("none", "small", NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CHECK_ERROR(write_name("small/f", "x"),
                about("Cannot write '%s': the file system is read-only; use /workspace or "
                      "/tmp.",
                      "small/f"));
    put_into("mounted", "one");
    put_into("point", "two");
    CHECK(mount("mounted", "point", NULL, MS_BIND, NULL) == 0);
    CHECK_REPLY(write_name("point", "3"), about("Wrote '%s' (1 byte).", "point"));
    CHECK_TEXT(content_of("mounted"), "3");
    return has_leftovers();
}

static void full_and_read_only_file_systems_are_reported(void)
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        int r = in_mounts();

        (void)fflush(stdout);
        _exit(r);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        SKIP("cannot mount here");
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(rmdir("small") == 0);
}

static void all(void)
{
    world_open();
    RUN(a_new_file_is_written);
    RUN(a_file_is_replaced_with_its_mode_and_owner);
    RUN(a_file_is_replaced_with_its_attributes);
    RUN(nul_and_any_byte_are_written);
    RUN(links_are_followed);
    RUN(directories_are_created_on_request);
    RUN(only_files_are_written);
    RUN(files_in_proc_are_written_in_place);
    RUN(a_failed_write_keeps_the_old_content);
    RUN(permissions_are_respected);
    RUN(full_and_read_only_file_systems_are_reported);
    world_close();
}

int main(void)
{
    RUN(all);
    return 0;
}
