// SPDX-License-Identifier: Apache-2.0
/* Edge cases of grep and glob. tests/system/toolbox/search_test compares them with other programs,
 * and uses this program to call the tools. */
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/xalloc.h"
#include "tools/search/search_path.h"
#include "unit/tools/call.h"

enum {
    MANY = 100000,
    LINKS = 1000,        /* to one file */
    DEEP = 300,          /* nested directories */
    NAME_LEN = 100,      /* bytes of their names */
    HUGE_LINE = 40 << 20 /* longer than the buffer */
};

static char top[] = "/tmp/holt-search-test-XXXXXX";
static struct tool_reply reply;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void tree_begin(void)
{
    CHECK(mkdtemp(memcpy(top, "/tmp/holt-search-test-XXXXXX", sizeof(top))), "(%m)");
}

static void tree_end(void)
{
    tools_reply_done(&reply);
    CHECK(nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, "(%m)");
}

static const char *at(const char *name)
{
    static char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", top, name);
    return path;
}

static void put_bytes(const char *name, const char *data, size_t len)
{
    cleanup_close int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0 && write_all(fd, data, len) == 0, "(%s: %m)", name);
}

static void put(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

static void make_dir(const char *name)
{
    CHECK(mkdir(at(name), 0755) == 0, "(%s: %m)", name);
}

/* Calls a tool on the test directory, or a path in it, with more parameters as JSON. */
static const char *call(const char *tool, const char *pattern, const char *more)
{
    cleanup_json json_t *params = json_loads(more, 0, NULL);
    const char *below = json_string_value(json_object_get(params, "path"));

    CHECK(params, "(not JSON: %s)", more);
    (void)json_object_set_new(params, "path", json_string(below ? at(below) : top));
    (void)json_object_set_new(params, "pattern", json_string(pattern));
    tools_reply_done(&reply);
    tools_call(tool, params, &reply);
    return reply.content.data ? reply.content.data : "";
}

static const char *grep(const char *pattern, const char *more)
{
    return call("grep", pattern, more);
}

static const char *glob_(const char *pattern, const char *more)
{
    return call("glob", pattern, more);
}

/* Returns the text with the path of the test directory for each @. */
static const char *text(const char *format)
{
    static char ret[8192];
    size_t to = 0;

    for (; *format; format++) {
        char one[2] = { *format, '\0' };

        to += (size_t)snprintf(ret + to, sizeof(ret) - to, "%s", *format == '@' ? top : one);
    }
    return ret;
}

#define CHECK_HAS(got, part) CHECK(strstr((got), (part)), "(got '%s', wanted '%s')", (got), (part))
#define IS_ERROR ((reply.outcome.flags & TOOL_IS_ERROR) != 0)
#define IS_CUT ((reply.outcome.flags & TOOL_IS_CUT) != 0)

static void lines_end_in_every_way(void)
{
    tree_begin();
    put("a", "");
    put("b", "one needle");
    put("c", "needle\r\n\r\nneedle two\r\n");
    put("d", "\n\nneedle\n\n");
    put("e", "\n");
    CHECK_TEXT(grep("needle", "{}"), text("Found 4 matches in 3 files\n@/b:1: one needle\n@/c:1: "
                                          "needle\n@/c:3: needle two\n@/d:3: needle\n"));
    CHECK_TEXT(grep("^$", "{}"),
               text("Found 4 matches in 2 files\n@/d:1: \n@/d:2: \n@/d:4: \n@/e:1: "
                    "\n"));
    CHECK_TEXT(grep("needle$", "{\"path\": \"b\"}"), text("Found 1 match in 1 file\n@/b:1: one "
                                                          "needle\n"));
    CHECK_HAS(grep("x", "{\"path\": \"a\"}"), "No matches for 'x' in ");
    CHECK(!IS_ERROR);
    tree_end();
}

static void modes_return_lines_files_or_counts(void)
{
    tree_begin();
    put("a", "x\nx\nx\n");
    put("b", "x\n");
    put("c", "y\n");
    CHECK_TEXT(grep("x", "{\"mode\": \"files\"}"), text("Found matches in 2 files\n@/a\n@/b\n"));
    CHECK_TEXT(grep("x", "{\"mode\": \"count\"}"),
               text("Found 4 matches in 2 files\n@/a:3\n@/b:1\n"));
    CHECK_TEXT(
        grep("x", "{\"mode\": \"files\", \"max_results\": 1}"),
        text("Found matches in at least 2 files; showing 1. Increase max_results, or narrow the "
             "search with path or include\n@/a\n"));
    CHECK(IS_CUT);
    tree_end();
}

static void limits_truncate_the_result(void)
{
    cleanup_free char *first = NULL;

    tree_begin();
    for (int i = 0; i < 300; i++) {
        cleanup_free char *name = xasprintf("f%03d", i);

        put(name, "x one\nnothing\nx two\n");
    }
    CHECK_HAS(grep("x", "{\"max_results\": 600}"), "Found 600 matches in 300 files\n");
    CHECK(!IS_CUT);
    first = xstrdup(grep("x", "{\"max_results\": 5}"));
    CHECK(IS_CUT);
    CHECK_TEXT(first,
               text("Found at least 6 matches in 3 files; showing 5. Increase max_results, or "
                    "narrow the search with path or include\n@/f000:1: x one\n@/f000:3: x "
                    "two\n@/f001:1: x one\n@/f001:3: x two\n@/f002:1: x one\n"));
    for (int i = 0; i < 50; i++)
        CHECK_TEXT(grep("x", "{\"max_results\": 5}"), first);
    CHECK_HAS(grep("x", "{\"max_results\": 600, \"max_bytes\": 1024}"), "Increase max_bytes");
    CHECK(IS_CUT && reply.content.len < 1024 + 200);
    tree_end();
}

static void context_ends_with_the_last_match(void)
{
    tree_begin();
    put("a", "1\n2\nx3\n4\n5\n6\n7\nx8\n9\n");
    CHECK_TEXT(
        grep("x", "{\"context_lines\": 1}"),
        text("Found 2 matches in 1 file\n@/a-2- 2\n@/a:3: x3\n@/a-4- 4\n--\n@/a-7- 7\n@/a:8: "
             "x8\n@/a-9- 9\n"));
    CHECK_HAS(
        grep("x", "{\"context_lines\": 2, \"max_results\": 1, \"path\": \"a\"}"),
        text("Found 2 matches in 1 file; showing 1. Increase max_results, or narrow the search "
             "with path or include\n@/a-1- 1\n@/a-2- 2\n@/a:3: x3\n@/a-4- 4\n@/a-5- 5\n"));
    CHECK(!strstr(reply.content.data, "/a-6-")); /* not "6": the name of the directory is random */
    tree_end();
}

static void binary_files_are_skipped_and_counted(void)
{
    char data[9000];

    tree_begin();
    put_bytes("a", "needle\0", 7);
    memset(data, 'x', sizeof(data));
    memcpy(data + 8900, "\nneedle\0z\n", 10);
    put_bytes("b", data, sizeof(data));
    CHECK_TEXT(grep("needle", "{}"), text("Found 1 match in 1 file\n@/b:2: needle\xef\xbf\xbdz\n"));
    CHECK_TEXT(grep("needle", "{\"path\": \"a\"}"),
               text("@/a is a binary file; grep searches text."));
    CHECK(IS_ERROR);
    CHECK_HAS(grep("nothing", "{}"), "1 binary file was skipped");
    tree_end();
}

static void invalid_utf8_is_replaced(void)
{
    tree_begin();
    put("a", "a\xff\xfe needle \xc3\xa9\xc3\n\xe9t\xe9\n");
    CHECK_TEXT(grep("needle", "{}"),
               text("Found 1 match in 1 file\n@/a:1: a\xef\xbf\xbd\xef\xbf\xbd "
                    "needle \xc3\xa9\xef\xbf\xbd\n"));
    CHECK_HAS(grep("a.*needle", "{}"), "No matches");
    CHECK_HAS(grep("^[^x]t", "{}"), "No matches");
    CHECK_HAS(grep("needle \xc3\xa9", "{}"), "Found 1 match");
    CHECK_HAS(grep("\\bt\\W?", "{}"), "Found 1 match");
    tree_end();
}

static void long_lines_are_cut_around_the_match(void)
{
    size_t len = 10 << 20;
    cleanup_free char *data = xcalloc(1, len + 1);
    const char *shown;

    tree_begin();
    for (size_t i = 0; i + 2 < len; i += 2)
        memcpy(data + i, "\xc3\xa9", 2);
    memcpy(data + len / 2, "needle", 6);
    put_bytes("a", data, len);
    shown = grep("needle", "{}");
    CHECK_HAS(shown, ":1: ...\xc3\xa9");
    CHECK_HAS(shown, "\xc3\xa9needle\xc3\xa9");
    CHECK(reply.content.len > 800 && reply.content.len < 1200, "(%zu)", reply.content.len);
    CHECK(!strstr(shown, "\xef\xbf\xbd"));
    shown = grep("^\xc3\xa9", "{}");
    CHECK(!strstr(shown, ": ...") && strstr(shown, "\xc3\xa9...\n"));
    tree_end();
}

static void lines_longer_than_the_buffer_are_searched_in_pieces(void)
{
    cleanup_free char *data = xcalloc(1, HUGE_LINE + 64);

    tree_begin();
    memset(data, '.', HUGE_LINE);
    memcpy(data, "first\n", 6);
    memcpy(data + HUGE_LINE - 100, "needle", 6);
    memcpy(data + HUGE_LINE, "\nlast needle\n", 13);
    put_bytes("a", data, HUGE_LINE + 13);
    CHECK_HAS(grep("needle", "{\"context_lines\": 1}"), "Found 2 matches in 1 file\n");
    CHECK_HAS(reply.content.data, text("@/a:2: ..."));
    CHECK_HAS(reply.content.data, text("@/a:3: last needle\n"));
    tree_end();
}

static void lines_are_numbered_across_reads(void)
{
    cleanup_with(buf_done) struct buf all = BUF_INIT(16 << 20);

    tree_begin();
    for (int i = 1; i <= 200000; i++)
        CHECK(buf_printf(&all, "line %d%s\n", i, i % 1000 == 0 ? " needle" : "") == 0);
    put_bytes("a", all.data, all.len);
    CHECK_HAS(grep("needle", "{\"context_lines\": 3, \"max_results\": 1000}"),
              "Found 200 matches in 1 file\n");
    for (int i = 1000; i <= 200000; i += 1000) {
        cleanup_free char *wanted =
            xasprintf("%s/a-%d- line %d\n%s/a:%d: line %d needle\n", top, i - 1, i - 1, top, i, i);

        CHECK_HAS(reply.content.data, wanted);
    }
    CHECK_HAS(grep("line 199999$", "{}"), "a:199999: line 199999\n");
    CHECK_HAS(grep("(?=x)x|line 199999$", "{}"), "a:199999: line 199999\n");
    tree_end();
}

static void invalid_patterns_are_explained(void)
{
    tree_begin();
    put("a", "foo(bar\n");
    CHECK_TEXT(
        grep("foo(bar", "{}"),
        "The pattern is not a valid regular expression: missing closing parenthesis (at offset "
        "7).\n  foo(bar\n         ^\nTo search for a plain string, set literal to true, or "
        "put a backslash before ( ) [ ] { } . * + ? ^ $ | \\.");
    CHECK(IS_ERROR);
    CHECK_HAS(grep("foo(bar", "{\"literal\": true}"), "Found 1 match");
    CHECK_HAS(grep("FOO(B", "{\"literal\": true, \"ignore_case\": true}"), "Found 1 match");
    CHECK_HAS(grep("foo\nbar", "{}"), "files are searched line by line");
    CHECK(IS_ERROR);
    CHECK_HAS(grep("foo.bar\n", "{}"), "Found 1 match");
    CHECK_HAS(grep("bar\\nx", "{}"), "a pattern with \\n matches nothing");
    CHECK_HAS(grep("x", "{\"include\": \"*.rs\"}"), "No file matches include '*.rs'.");
    CHECK_HAS(grep("x", "{\"path\": \"b\"}"), "does not exist.");
    CHECK(IS_ERROR);
    tree_end();
}

static void a_pattern_with_too_many_steps_is_ended(void)
{
    cleanup_with(buf_done) struct buf all = BUF_INIT(1 << 20);

    tree_begin();
    put("a", "fine\n");
    for (int i = 0; i < 40; i++)
        CHECK(buf_add_str(&all, i == 0 ? "fine\nxxxxxxxx" : "xxxxxxxxxxxx") == 0);
    put_bytes("b", all.data, all.len);
    CHECK_HAS(grep("(x+x+)+y", "{}"), "No matches"); /* the literal y is not in the file */
    CHECK_HAS(grep("(x+x+)+[yz]", "{}"),
              text("The pattern takes too many steps on line 2 of @/b."));
    CHECK(IS_ERROR);
    tree_end();
}

static void unreadable_files_are_counted(void)
{
    tree_begin();
    put("a", "needle\n");
    put("secret", "needle\n");
    make_dir("closed");
    put("closed/b", "needle\n");
    CHECK(chmod(top, 0755) == 0 && chmod(at("secret"), 0) == 0 && chmod(at("closed"), 0) == 0);
    CHECK(geteuid() != 0 || seteuid(65534) == 0);
    CHECK_HAS(grep("needle", "{}"), text("Found 1 match in 1 file\n@/a:1: needle\n2 files or "
                                         "directories could not be read (@/"));
    CHECK(!IS_ERROR);
    CHECK_HAS(glob_("**/*", "{}"),
              text("@/a\n@/secret\n1 directory could not be read (@/closed: "));
    CHECK_HAS(grep("needle", "{\"path\": \"secret\"}"), "ermission denied");
    CHECK(IS_ERROR);
    CHECK(getuid() != 0 || seteuid(0) == 0);
    CHECK(chmod(at("closed"), 0755) == 0);
    tree_end();
}

static void pipes_and_links_are_skipped(void)
{
    tree_begin();
    make_dir("d");
    put("d/a", "needle\n");
    CHECK(mkfifo(at("d/pipe"), 0644) == 0);
    CHECK(symlink("..", at("d/loop")) == 0);
    CHECK(symlink("a", at("d/link")) == 0);
    CHECK(symlink("link", at("d/nowhere2")) == 0 && symlink("nowhere", at("d/nowhere")) == 0);
    CHECK_TEXT(grep("needle", "{}"), text("Found 1 match in 1 file\n@/d/a:1: needle\n"));
    CHECK_TEXT(grep("needle", "{\"path\": \"d/loop/d/link\"}"),
               text("Found 1 match in 1 file\n@/d/loop/d/link:1: needle\n"));
    CHECK_TEXT(grep("needle", "{\"path\": \"d/loop/d\"}"),
               text("Found 1 match in 1 file\n@/d/loop/d/a:1: needle\n"));
    (void)grep("needle", "{\"path\": \"d/pipe\"}");
    CHECK(IS_ERROR);
    CHECK_TEXT(glob_("**", "{}"), text("@/d/a\n@/d/link\n@/d/nowhere2\n"));
    CHECK_TEXT(glob_("d/loop/d/loop/d/l*", "{}"), text("@/d/loop/d/loop/d/link\n"));
    CHECK_TEXT(glob_("*/*/*/a", "{}"), text("@/d/loop/d/a\n"));
    tree_end();
}

/* Truncates the file and makes it large again, repeatedly. */
static atomic_bool is_over;

static void *change_file(void *arg)
{
    cleanup_free char *data = xcalloc(1, 1 << 20);
    int fd = *(const int *)arg;

    memset(data, '\n', 1 << 20);
    memcpy(data, "needle", 6);
    while (!atomic_load(&is_over)) {
        CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
        for (int i = 0; i < 4; i++)
            CHECK(write_all(fd, data, 1 << 20) == 0);
    }
    return NULL;
}

static void a_file_may_change_while_it_is_read(void)
{
    pthread_t thread;
    int fd;

    tree_begin();
    fd = open(at("a"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    atomic_store(&is_over, false);
    CHECK(pthread_create(&thread, NULL, change_file, &fd) == 0);
    for (int i = 0; i < 100; i++) {
        const char *found = grep("needle", "{}");

        CHECK(!IS_ERROR && (strstr(found, "Found") || strstr(found, "No matches")), "(%s)", found);
    }
    atomic_store(&is_over, true);
    CHECK(pthread_join(thread, NULL) == 0);
    (void)close(fd);
    tree_end();
}

static void a_directory_may_have_many_entries(void)
{
    char name[32], first[32] = "";
    cleanup_close int dir = -EBADF;

    tree_begin();
    dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put("one", "needle\n");
    for (int i = 0; i < MANY; i++) { /* links cost less than files */
        (void)snprintf(name, sizeof(name), "f%05d", i);
        if (i % LINKS == 0) {
            (void)snprintf(first, sizeof(first), "%s", name);
            CHECK(file_create_at(dir, name, 0644, "") == 0);
        } else {
            CHECK(linkat(dir, first, dir, name, 0) == 0, "(%m)");
        }
    }
    CHECK_HAS(glob_("f*", "{}"),
              text("@/f00199\n(200 of 100000 files; increase max_results or narrow "
                   "the pattern to see the others)\n"));
    CHECK(IS_CUT);
    (void)glob_("**/f?????", "{\"max_results\": 100000}");
    CHECK(!IS_CUT && reply.content.len == MANY * (strlen(top) + 8), "(%zu)", reply.content.len);
    CHECK_TEXT(grep("needle", "{}"), text("Found 1 match in 1 file\n@/one:1: needle\n"));
    tree_end();
}

/* Creates or removes a tree that is deeper than PATH_MAX. */
static void deep_tree(bool is_made)
{
    char name[NAME_LEN + 1];
    int dirs[DEEP + 1];

    memset(name, 'd', NAME_LEN);
    name[NAME_LEN] = '\0';
    dirs[0] = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEEP; i++) {
        if (is_made)
            CHECK(mkdirat(dirs[i], name, 0755) == 0);
        dirs[i + 1] = openat(dirs[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(dirs[i + 1] >= 0);
    }
    for (int i = DEEP; i >= 0; i--) {
        if (is_made)
            CHECK(file_create_at(dirs[i], "z", 0644, "needle\n") == 0);
        else if (i < DEEP)
            CHECK(unlinkat(dirs[i + 1], "z", 0) == 0 && unlinkat(dirs[i], name, AT_REMOVEDIR) == 0);
        if (i < DEEP)
            (void)close(dirs[i + 1]);
    }
    (void)close(dirs[0]);
}

static void no_tree_is_too_deep(void)
{
    tree_begin();
    deep_tree(true);
    CHECK_HAS(
        grep("needle", "{\"mode\": \"count\", \"max_results\": 1000, \"max_bytes\": 8388608}"),
        "Found 301 matches in 301 files\n");
    (void)glob_("**/z", "{\"max_results\": 1000}");
    CHECK(!IS_CUT && !IS_ERROR);
    CHECK_HAS(glob_("**/z", "{\"max_results\": 3}"), "(3 of 301 files;");
    deep_tree(false);
    tree_end();
}

static void files_are_sorted_as_requested(void)
{
    tree_begin();
    make_dir("a");
    make_dir("a.b");
    put("a/x", "");
    put("a.b/x", "");
    put("a-x", "");
    put("b", "");
    CHECK_TEXT(glob_("**", "{}"), text("@/a-x\n@/a.b/x\n@/a/x\n@/b\n"));
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = { "a.b/x", "b", "a/x", "a-x" };
        const struct timespec times[2] = { { .tv_sec = 1000 + i / 2 }, { .tv_sec = 1000 + i / 2 } };

        CHECK(utimensat(AT_FDCWD, at(names[i]), times, 0) == 0);
    }
    CHECK_TEXT(glob_("**", "{\"sort\": \"modified\"}"), text("@/a-x\n@/a/x\n@/a.b/x\n@/b\n"));
    CHECK_TEXT(
        glob_("**", "{\"sort\": \"modified\", \"max_results\": 2}"),
        text("@/a-x\n@/a/x\n(2 of 4 files; increase max_results or narrow the pattern to see the "
             "others)\n"));
    tree_end();
}

static void patterns_of_globs_have_bounds(void)
{
    char many[256] = "", stars[1024] = "";

    tree_begin();
    put("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaa",
        "");
    for (int i = 0; i < 100; i++)
        (void)strncat(stars, "a*", 3);
    CHECK_HAS(glob_(strncat(stars, "b", 2), "{}"), "No files match");
    for (int i = 0; i < 11; i++)
        (void)strncat(many, "{a,b}", 6);
    CHECK_HAS(glob_(many, "{}"), "more than 1024");
    CHECK(IS_ERROR);
    CHECK_HAS(glob_("**/**/**/**/**/**/**/**/b", "{}"), "No files match");
    CHECK_HAS(glob_("*/../b", "{}"), "'..' is allowed only at the start");
    CHECK_HAS(glob_("a*/", "{}"), "glob finds only files");
    CHECK_HAS(glob_("x*", "{}"), "**/x* also searches subdirectories");
    CHECK_HAS(glob_("missing/x*", "{}"), "does not exist.");
    tree_end();
}

static void hidden_and_ignored_files_are_skipped(void)
{
    tree_begin();
    make_dir(".git");
    make_dir("src");
    make_dir("src/.cache");
    make_dir("sub");
    make_dir("sub/.git");
    put(".gitignore", "*.o\n!keep.o\n/build\n");
    put("a.o", "needle\n");
    put("keep.o", "needle\n");
    put("build", "needle\n");
    put("src/build", "needle\n");
    put("src/.cache/x", "needle\n");
    put(".git/x", "needle\n");
    put("sub/a.o", "needle\n");
    CHECK_TEXT(glob_("**", "{\"gitignore\": true}"), text("@/keep.o\n@/src/build\n@/sub/a.o\n"));
    CHECK_TEXT(glob_("**", "{\"gitignore\": true, \"hidden\": true, \"path\": \"src\"}"),
               text("@/src/.cache/x\n@/src/build\n"));
    CHECK_TEXT(glob_("src/.cache/*", "{}"), text("@/src/.cache/x\n"));
    CHECK_TEXT(grep("needle", "{\"gitignore\": true, \"mode\": \"files\"}"),
               text("Found matches in 3 files\n@/keep.o\n@/src/build\n@/sub/a.o\n"));
    CHECK_TEXT(grep("needle", "{\"gitignore\": true, \"hidden\": true, \"mode\": \"files\", "
                              "\"exclude\": \"sub\"}"),
               text("Found matches in 3 files\n@/keep.o\n@/src/.cache/x\n@/src/build\n"));
    CHECK_HAS(grep("nothing", "{}"), "3 hidden directories were not searched");
    CHECK_TEXT(grep("needle", "{\"include\": \"src/**/b*\", \"mode\": \"files\"}"),
               text("Found matches in 1 file\n@/src/build\n"));
    tree_end();
}

static void paths_in_results_are_accepted_by_tools(void)
{
    static const struct {
        const char *path, *more, *wanted;
    } cases[] = {
        { "/workspace/.", "", "" },
        { "/workspace", "src/", "src/" },
        { "/workspace//src/./lib/", "", "src/lib/" },
        { "/workspace/..", "", "../" },
        { "/workspacex", "", "/workspacex/" },
        { "/usr", "include//", "/usr/include/" },
        { "/workspace/a", "/etc/", "/etc/" },
        { "/workspace/a", "/workspace/b/", "b/" },
        { "/", "", "/" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cleanup_free char *got = search_path_prefix(cases[i].path, cases[i].more);

        CHECK_TEXT(got, cases[i].wanted);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--answer") == 0)
        return tools_answer_lines();
    RUN(lines_end_in_every_way);
    RUN(modes_return_lines_files_or_counts);
    RUN(limits_truncate_the_result);
    RUN(context_ends_with_the_last_match);
    RUN(binary_files_are_skipped_and_counted);
    RUN(invalid_utf8_is_replaced);
    RUN(long_lines_are_cut_around_the_match);
    RUN(lines_longer_than_the_buffer_are_searched_in_pieces);
    RUN(lines_are_numbered_across_reads);
    RUN(invalid_patterns_are_explained);
    RUN(a_pattern_with_too_many_steps_is_ended);
    RUN(unreadable_files_are_counted);
    RUN(pipes_and_links_are_skipped);
    RUN(a_file_may_change_while_it_is_read);
    RUN(a_directory_may_have_many_entries);
    RUN(no_tree_is_too_deep);
    RUN(files_are_sorted_as_requested);
    RUN(patterns_of_globs_have_bounds);
    RUN(hidden_and_ignored_files_are_skipped);
    RUN(paths_in_results_are_accepted_by_tools);
    return 0;
}
