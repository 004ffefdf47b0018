// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "unit/tools/world.h"

enum { MANY = 300 * 1024 };

static const char *read_part(const char *path, int64_t offset, int64_t limit)
{
    const struct tool_value values[] = { TEXT(path), NUMBER(offset), NUMBER(limit) };

    return run(tool_read_file, values, ARRAY_SIZE(values));
}

static const char *read_all(const char *name)
{
    return read_part(in_dir(name), 0, 2000);
}

static void lines_have_numbers(void)
{
    put_into("a", "one\n\nthree\n");
    CHECK_REPLY(read_all("a"), "     1\tone\n     2\t\n     3\tthree\n");
    CHECK(reply.outcome.flags == 0);
    put_into("b", "no newline at the end");
    CHECK_REPLY(read_all("b"), "     1\tno newline at the end\n");
    put_into("c", "\n");
    CHECK_REPLY(read_all("c"), "     1\t\n");
    put_into("..odd", "x\n");
    CHECK_REPLY(read_all("..odd"), "     1\tx\n");
    CHECK_CONTAINS(read_all("../../../../..//proc/self/../self/status"), "     1\tName:\t");
}

static void a_part_has_a_footer(void)
{
    put_into("p", "1\n2\n3\n4\n5\n");
    CHECK_REPLY(read_part(in_dir("p"), 0, 2),
                "     1\t1\n     2\t2\n(lines 1-2 of 5; continue with offset 2)\n");
    CHECK(reply.outcome.flags == TOOL_IS_CUT);
    CHECK_REPLY(read_part(in_dir("p"), 2, 2),
                "     3\t3\n     4\t4\n(lines 3-4 of 5; continue with offset 4)\n");
    CHECK_REPLY(read_part(in_dir("p"), 4, INT64_MAX), "     5\t5\n(lines 5-5 of 5)\n");
    CHECK(reply.outcome.flags == 0);
    CHECK_REPLY(read_part(in_dir("p"), 0, 5),
                "     1\t1\n     2\t2\n     3\t3\n     4\t4\n     5\t5\n");
    CHECK_ERROR(read_part(in_dir("p"), 5, 2),
                about("'%s' has 5 lines; offset 5 is past the end.", "p"));
    CHECK_ERROR(read_part(in_dir("p"), INT64_MAX, INT64_MAX),
                about("'%s' has 5 lines; offset 9223372036854775807 is past the end.", "p"));
}

/* Also with lines that span chunks. */
static void the_default_limit_is_2000_lines(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(8 << 20);

    for (int i = 1; i <= MANY / 10; i++)
        CHECK(buf_printf(&text, "line %d\n", i) == 0);
    put_bytes_into("long", text.data, text.len);
    for (int64_t limit = -1; limit <= 0; limit++) {
        const char *said = read_part(in_dir("long"), 0, limit);

        CHECK(!is_error());
        CHECK_CONTAINS(said,
                       "  2000\tline 2000\n(lines 1-2000 of 30720; continue with offset 2000)\n");
    }
    CHECK_CONTAINS(read_part(in_dir("long"), 30718, 10),
                   " 30719\tline 30719\n 30720\tline 30720\n(lines 30719-30720 of 30720)\n");
    CHECK_CONTAINS(
        read_part(in_dir("long"), 20000, 1),
        " 20001\tline 20001\n(lines 20001-20001 of 30720; continue with offset 20001)\n");
}

/* For any line, and any position of the chunk boundaries. */
static void any_line_can_be_read(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(4 << 20);
    char wanted[128];
    int lines = 0;

    while (text.len < 3 * 256 * 1024) {
        lines++;
        CHECK(buf_printf(&text, "%d%.*s%s", lines, lines % 97,
                         "................................................................"
                         "................................",
                         lines % 3 ? "\n" : "\n\n") == 0);
        lines += lines % 3 == 0;
    }
    CHECK(buf_add_str(&text, "the end") == 0);
    lines++;
    put_bytes_into("parts", text.data, text.len);
    for (int64_t offset = 0; offset < lines; offset += 997) {
        (void)read_part(in_dir("parts"), offset, 1);
        (void)snprintf(wanted, sizeof(wanted), "%6d\t", (int)offset + 1);
        CHECK(strncmp(reply.content.data, wanted, strlen(wanted)) == 0);
        if (reply.content.data[7] != '\n')
            CHECK(strtol(reply.content.data + 7, NULL, 10) == offset + 1);
        (void)snprintf(wanted, sizeof(wanted), "(lines %d-%d of %d; continue with offset %d)\n",
                       (int)offset + 1, (int)offset + 1, lines, (int)offset + 1);
        CHECK_CONTAINS(reply.content.data, wanted);
    }
    (void)snprintf(wanted, sizeof(wanted), "%6d\tthe end\n(lines %d-%d of %d)\n", lines, lines,
                   lines, lines);
    CHECK_REPLY(read_part(in_dir("parts"), lines - 1, 10), wanted);
}

/* The cut is at a character boundary and gives the number of missing bytes. */
static void long_lines_are_cut(void)
{
    static char line[MANY];

    memset(line, 'x', sizeof(line));
    line[2000] = '\n';
    put_bytes_into("fits", line, 2001);
    CHECK(strlen(read_all("fits")) == 7 + 2001 && reply.content.data[7 + 1999] == 'x');
    line[2000] = 'x';
    line[2001] = '\n';
    put_bytes_into("longer", line, 2002);
    CHECK_CONTAINS(read_all("longer"), "xxx [... 1 more bytes in this line]\n");
    line[2001] = 'x';
    line[MANY - 3] = '\n';
    line[MANY - 2] = 'y';
    line[MANY - 1] = '\n';
    put_bytes_into("longest", line, sizeof(line)); /* longer than a chunk */
    CHECK_CONTAINS(read_all("longest"), "xxx [... 305197 more bytes in this line]\n     2\ty\n");
    memcpy(line + 1998, "\xe2\x82\xac", 3);
    put_bytes_into("euro", line, 4000);
    CHECK_CONTAINS(read_all("euro"), "xxx [... 2002 more bytes in this line]\n");
    CHECK(strspn(reply.content.data + 7, "x") == 1998);
}

static void the_result_is_bounded(void)
{
    int fd = open("huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    static char line[2001];

    memset(line, 'h', sizeof(line));
    line[2000] = '\n';
    for (int i = 0; i < 12 * 512; i++)
        CHECK(write(fd, line, sizeof(line)) == sizeof(line));
    (void)close(fd);
    CHECK_CONTAINS(read_part(in_dir("huge"), 0, INT64_MAX), " of 6144; continue with offset ");
    CHECK(reply.outcome.flags == TOOL_IS_CUT && reply.content.len <= 10 << 20);
    CHECK(reply.content.len > 9 << 20);
}

/* Only the requested part of a very large file is read. */
static void a_part_of_a_very_large_file_is_read(void)
{
    put_into("sparse", "first\nsecond\nthird");
    CHECK(truncate("sparse", 1LL << 40) == 0);
    CHECK_ERROR(read_all("sparse"), about("'%s' is a binary file of 1099511627776 bytes, not text. "
                                          "Use bash with file, strings or xxd to inspect it.",
                                          "sparse"));
    {
        cleanup_with(buf_done) struct buf text = BUF_INIT(1 << 20);

        while (text.len < 64 * 1024)
            CHECK(buf_printf(&text, "%zu\n", text.len) == 0);
        put_bytes_into("large", text.data, text.len);
        CHECK(truncate("large", 1LL << 40) == 0);
    }
    CHECK_REPLY(read_part(in_dir("large"), 1, 2),
                "     2\t2\n     3\t4\n(lines 2-3 of a file of 1099511627776 bytes; continue with "
                "offset 3)\n");
}

static void crlf_is_reported_and_not_shown(void)
{
    put_into("crlf", "a\r\nb\r\n");
    CHECK_REPLY(read_all("crlf"),
                "     1\ta\n     2\tb\n(lines end with CRLF; edit_file keeps this)\n");
    put_into("cr", "a\rb\n");
    CHECK_REPLY(read_all("cr"), "     1\ta\rb\n");
    put_into("cr-at-end", "a\r");
    CHECK_REPLY(read_all("cr-at-end"), "     1\ta\r\n");
}

static void invalid_utf8_is_replaced(void)
{
    put_into("latin1", "caf\xe9\n");
    CHECK_REPLY(read_all("latin1"), "     1\tcaf\xef\xbf\xbd\n");
    put_into("utf8", "caf\xc3\xa9 \xf0\x9f\x98\x80\n");
    CHECK_REPLY(read_all("utf8"), "     1\tcaf\xc3\xa9 \xf0\x9f\x98\x80\n");
}

static void other_types_are_named(void)
{
    put_into("empty", "");
    CHECK_REPLY(read_all("empty"), about("(the file '%s' is empty)\n", "empty"));
    put_bytes_into("binary",
                   "\x7f"
                   "ELF\0\0",
                   6);
    CHECK_ERROR(read_all("binary"), about("'%s' is a binary file of 6 bytes, not text. Use bash "
                                          "with file, strings or xxd to inspect it.",
                                          "binary"));
    CHECK(mkdir("sub", 0755) == 0);
    CHECK_ERROR(read_all("sub"), about("'%s' is a directory. Use list_dir to list it.", "sub"));
    CHECK(mkfifo("fifo", 0644) == 0); /* the open must not block */
    CHECK_ERROR(read_all("fifo"), about("'%s' is a pipe, not a file.", "fifo"));
    CHECK_ERROR(read_part("/dev/null", 0, 0), "'/dev/null' is a device, not a file.");
}

static void images_are_returned_unchanged(void)
{
    static const struct {
        const char *magic;
        size_t len;
        const char *type;
    } rows[] = {
        { "\x89PNG\r\n\x1a\n\0\0", 10, "image/png" },
        { "\xff\xd8\xff\xe0\0", 5, "image/jpeg" },
        { "GIF87a\0", 7, "image/gif" },
        { "GIF89a\0", 7, "image/gif" },
        { "RIFF\0\0\0\0WEBPVP8 ", 16, "image/webp" },
    };
    static char large[5 * 1024 * 1024 + 1];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        put_bytes_into("image", rows[i].magic, rows[i].len);
        (void)read_all("image");
        CHECK(reply.outcome.flags == TOOL_IS_IMAGE);
        CHECK_TEXT(reply.outcome.mime, rows[i].type);
        CHECK(reply.content.len == rows[i].len);
        CHECK(memcmp(reply.content.data, rows[i].magic, rows[i].len) == 0);
    }
    memcpy(large, rows[0].magic, rows[0].len);
    put_bytes_into("image", large, sizeof(large) - 1);
    (void)read_all("image");
    CHECK(reply.outcome.flags == TOOL_IS_IMAGE && reply.content.len == sizeof(large) - 1);
    CHECK(memcmp(reply.content.data, large, sizeof(large) - 1) == 0);
    put_bytes_into("image", large, sizeof(large));
    CHECK_ERROR(read_all("image"),
                about("'%s' is an image (image/png) of 5242881 bytes; the limit is 5242880. Make "
                      "the image smaller first.",
                      "image"));
    put_bytes_into("riff", "RIFF\0\0\0\0WAVE", 12);
    CHECK_CONTAINS(read_all("riff"), "is a binary file of 12 bytes");
}

static void files_without_a_size_are_read(void)
{
    CHECK_CONTAINS(read_part("/proc/self/status", 0, 1), "     1\tName:\t");
    CHECK(!is_error());
}

static void a_missing_file_is_explained(void)
{
    char path[PATH_MAX + 8];

    put_into("main.c", "x\n");
    CHECK_ERROR(read_all("mian.c"), ({
                    static char wanted[PATH_MAX];
                    (void)snprintf(wanted, sizeof(wanted),
                                   "'%s' does not exist. Did you mean '%s'?", in_dir("mian.c"),
                                   in_dir("main.c"));
                    wanted;
                }));
    CHECK_CONTAINS(read_all("MAIN.C"), "/main.c'?");
    CHECK_ERROR(
        read_all("nothing-like-it"),
        about("'%s' does not exist. Use list_dir or glob to find files.", "nothing-like-it"));
    (void)read_all("no/such/file");
    CHECK(is_error());
    CHECK_CONTAINS(reply.content.data, "/no/such/file' does not exist: there is no directory '");
    CHECK_CONTAINS(reply.content.data, "/no'.");
    CHECK_ERROR(read_all("main.c/x"),
                about("Cannot read '%s': a component of the path is not a directory.", "main.c/x"));
    CHECK(symlink("loop", "loop") == 0);
    CHECK_ERROR(read_all("loop"),
                about("Cannot read '%s': too many levels of symbolic links.", "loop"));
    CHECK(symlink("gone", "dangling") == 0);
    CHECK_CONTAINS(read_all("dangling"), "does not exist.");
    memset(path, 'p', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    CHECK_ERROR(read_part(path, 0, 0), "The path has 4103 bytes; the limit is 4095.");
    path[300] = '\0';
    CHECK_CONTAINS(read_part(path, 0, 0), "a component of the path is too long.");
    CHECK_CONTAINS(read_part("/", 0, 0), "'/' is a directory.");
    CHECK_CONTAINS(read_part("/no-such-name-at-all", 0, 0),
                   "'/no-such-name-at-all' does not exist.");
    CHECK_CONTAINS(read_part("relative-to-nothing/x", 0, 0), "'/workspace");
}

static void permissions_are_respected(void)
{
    const char *path = in_dir("secret");
    const struct tool_value values[] = { TEXT(path), NUMBER(0), NUMBER(0) };

    if (geteuid() != 0)
        SKIP("needs root");
    put_into("secret", "x");
    CHECK(chmod("secret", 0600) == 0);
    CHECK_ERROR(run_as_nobody(tool_read_file, values, 3),
                about("Cannot read '%s': permission denied.", "secret"));
}

static void links_are_followed(void)
{
    put_into("target", "text\n");
    CHECK(symlink("target", "link") == 0);
    CHECK_REPLY(read_all("link"), "     1\ttext\n");
}

static void all(void)
{
    world_open();
    RUN(lines_have_numbers);
    RUN(a_part_has_a_footer);
    RUN(the_default_limit_is_2000_lines);
    RUN(any_line_can_be_read);
    RUN(long_lines_are_cut);
    RUN(the_result_is_bounded);
    RUN(a_part_of_a_very_large_file_is_read);
    RUN(crlf_is_reported_and_not_shown);
    RUN(invalid_utf8_is_replaced);
    RUN(other_types_are_named);
    RUN(images_are_returned_unchanged);
    RUN(files_without_a_size_are_read);
    RUN(a_missing_file_is_explained);
    RUN(permissions_are_respected);
    RUN(links_are_followed);
    world_close();
}

int main(void)
{
    RUN(all);
    return 0;
}
