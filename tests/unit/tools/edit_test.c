// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <sys/wait.h>

#include "unit/tools/world.h"

#define NUMBERS "     1\tone\n     2\ttwo\n     3\tthree\n"

static const char *edit_name(const char *name, const char *old_text, const char *new_text, bool all)
{
    const struct tool_value values[] = { TEXT(in_dir(name)), TEXT(old_text), TEXT(new_text),
                                         FLAG(all) };

    return run(tool_edit_file, values, ARRAY_SIZE(values));
}

static const char *edit_all(const char *name, struct tool_edit *edits, size_t count)
{
    const struct tool_value values[] = { TEXT(in_dir(name)),
                                         { .type = TOOL_EDITS, .edits = edits, .count = count } };

    return run(tool_multi_edit, values, ARRAY_SIZE(values));
}

static mode_t mode_of(const char *name)
{
    struct stat st;

    CHECK(lstat(name, &st) == 0);
    return st.st_mode;
}

static void a_text_is_replaced(void)
{
    put_into("a", "one\ntwo\nthree\n");
    CHECK(chmod("a", 0751) == 0);
    CHECK_REPLY(edit_name("a", "two\n", "2\n2\n", false),
                about("Replaced 1 occurrence in '%s' (line 2).", "a"));
    CHECK_TEXT(content_of("a"), "one\n2\n2\nthree\n");
    CHECK((mode_of("a") & 07777) == 0751);
    CHECK_TEXT(changed_at(0), about("M %s", "a"));
    CHECK_REPLY(edit_name("a", "2\n", "", true),
                about("Replaced 2 occurrences in '%s' (lines 2, 3).", "a"));
    CHECK_TEXT(content_of("a"), "one\nthree\n");
    CHECK_REPLY(edit_name("a", "one\nthree\n", "", false),
                about("Replaced 1 occurrence in '%s' (line 1).", "a"));
    CHECK_TEXT(content_of("a"), "");
    put_into("a", "aaaa");
    (void)edit_name("a", "aa", "a", true); /* what was put in is not looked at again */
    CHECK_TEXT(content_of("a"), "aa");
    CHECK(!has_leftovers());
}

static void bytes_stay_what_they_are(void)
{
    static const char odd[] = "\xff\xfe latin \xe9\r\nno newline at the end";
    char wanted[64];

    put_into("odd", odd);
    CHECK(!strstr(edit_name("odd", "latin", "x", false), "not found"));
    (void)snprintf(wanted, sizeof(wanted), "\xff\xfe x \xe9\r\nno newline at the end");
    CHECK_TEXT(content_of("odd"), wanted);
}

/* A model sees no CRLF; a file that has it keeps it. */
static void crlf_is_kept(void)
{
    put_into("crlf", "one\r\ntwo\r\nthree\r\n");
    (void)edit_name("crlf", "one\ntwo\n", "1\n2\n2\n", false);
    CHECK(!is_error(), "(%s)", reply.content.data);
    CHECK_TEXT(content_of("crlf"), "1\r\n2\r\n2\r\nthree\r\n");
    (void)edit_name("crlf", "three", "3\n4", false);
    CHECK_TEXT(content_of("crlf"), "1\r\n2\r\n2\r\n3\r\n4\r\n");
    (void)edit_name("crlf", "3\r\n4\r\n", "3\r\n", false);
    CHECK_TEXT(content_of("crlf"), "1\r\n2\r\n2\r\n3\r\n");
    (void)edit_name("crlf", "2\n2", "2", false);
    CHECK_TEXT(content_of("crlf"), "1\r\n2\r\n3\r\n");
    put_into("mixed", "lf\nlf\ncrlf\r\ncrlf\r\n");
    (void)edit_name("mixed", "lf\nlf\n", "x\ny\n", false); /* as it is there */
    CHECK_TEXT(content_of("mixed"), "x\ny\ncrlf\r\ncrlf\r\n");
    (void)edit_name("mixed", "crlf\ncrlf", "z\nz", false);
    CHECK_TEXT(content_of("mixed"), "x\ny\nz\r\nz\r\n");
    put_into("lf", "a\nb\n");
    (void)edit_name("lf", "a\r\nb", "c", false);
    CHECK(is_error());
}

static void more_than_one_is_refused_with_where_they_are(void)
{
    put_into("twice", "x\ny\nx\n");
    CHECK_ERROR(edit_name("twice", "x", "z", false),
                about("old_string occurs 2 times in '%s' (lines 1, 3). Give more of the lines "
                      "around the one that is meant, or set replace_all. Nothing was changed.",
                      "twice"));
    put_into("many", "x\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\n");
    CHECK_CONTAINS(edit_name("many", "x", "z", false), "occurs 12 times in '");
    CHECK_CONTAINS(reply.content.data, "(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...)");
    CHECK_TEXT(content_of("twice"), "x\ny\nx\n");
    CHECK_TEXT(changed_at(0), "");
}

static void what_cannot_be_meant_is_refused(void)
{
    put_into("a", "text");
    CHECK_ERROR(edit_name("a", "text", "text", false),
                "old_string and new_string are the same. Nothing was changed.");
    CHECK_ERROR(edit_name("a", "", "x", false),
                "old_string is empty. Use write_file to write a whole file. Nothing was changed.");
    put_bytes_into("binary", "a\0b", 3);
    CHECK_ERROR(
        edit_name("binary", "a", "b", false),
        about("'%s' is a binary file; only text can be edited. Use bash for it.", "binary"));
    CHECK(mkdir("sub", 0755) == 0 && mkfifo("fifo", 0644) == 0);
    CHECK_CONTAINS(edit_name("sub", "a", "b", false), "is a directory.");
    CHECK_CONTAINS(edit_name("fifo", "a", "b", false), "is a pipe, not a file.");
    CHECK_CONTAINS(edit_name("missing", "a", "b", false), "There is no '");
    put_into("large", "a");
    CHECK(truncate("large", 64 * 1024 * 1024 + 1) == 0);
    CHECK_ERROR(edit_name("large", "a", "b", false),
                about("'%s' has 67108865 bytes; files of up to 67108864 can be edited. Use bash "
                      "with sed instead.",
                      "large"));
}

static void a_file_grows_to_the_limit_and_no_further(void)
{
    cleanup_free char *text = calloc(1, 64 * 1024 * 1024 + 1);
    const size_t len = 64 * 1024 * 1024;

    CHECK(text);
    memset(text, 'x', len);
    memcpy(text + len - 3, "end", 3);
    put_bytes_into("full", text, len);
    CHECK_ERROR(edit_name("full", "end", "more", false),
                "The file would be larger than 64 MiB. Nothing was changed.");
    CHECK_CONTAINS(edit_name("full", "end", "END", false), "Replaced 1 occurrence");
    CHECK(!is_error());
    CHECK(truncate("full", 0) == 0);
}

static void links_are_edited_through(void)
{
    put_into("target", "old");
    CHECK(symlink("target", "link") == 0);
    CHECK_REPLY(edit_name("link", "old", "new", false),
                about("Replaced 1 occurrence in '%s' (line 1).", "link"));
    CHECK_TEXT(content_of("target"), "new");
    CHECK(S_ISLNK(mode_of("link")));
}

/* --- what a miss says ------------------------------------------------------------------------- */

static void a_small_file_is_shown_whole(void)
{
    put_into("small", "one\ntwo\nthree\n");
    CHECK_ERROR(
        edit_name("small", "four", "x", false),
        about("old_string was not found in '%s', and nothing was changed. This is the whole "
              "file:\n" NUMBERS,
              "small"));
    put_into("empty", "");
    CHECK_ERROR(edit_name("empty", "four", "x", false),
                about("old_string was not found in '%s', and nothing was changed. The file is "
                      "empty.\n",
                      "empty"));
}

static void other_whitespace_is_said(void)
{
    put_into("space", "int f(void)\n{\n\treturn  1;\n}\n");
    CHECK_ERROR(edit_name("space", "{\n    return 1;\n}", "x", false),
                about("old_string was not found in '%s', and nothing was changed. It is there with "
                      "other whitespace. Copy it exactly as it is:\n"
                      "     1\tint f(void)\n     2\t{\n     3\t\treturn  1;\n     4\t}\n",
                      "space"));
    CHECK_CONTAINS(edit_name("space", "INT F(void)", "x", false),
                   "It is there with other upper and lower case.");
    CHECK_CONTAINS(edit_name("space", "     2\t{\n     3\t\treturn  1;", "x", false),
                   "It has line numbers in front of its lines; leave them out.");
}

static void the_nearest_place_of_a_large_file_is_shown(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(1 << 20);

    for (int i = 1; i <= 200; i++)
        CHECK(buf_printf(&text, i == 100 ? "    if (count > limit)\n" : "line number %d is here\n",
                         i) == 0);
    put_bytes_into("large", text.data, text.len);
    CHECK_ERROR(edit_name("large", "if (count >= limit)", "x", false),
                about("old_string was not found in '%s', and nothing was changed. The nearest text "
                      "in it is:\n"
                      "    98\tline number 98 is here\n    99\tline number 99 is here\n"
                      "   100\t    if (count > limit)\n   101\tline number 101 is here\n"
                      "   102\tline number 102 is here\n   103\tline number 103 is here\n"
                      "   104\tline number 104 is here\n",
                      "large"));
    /* Of several lines most are there. */
    (void)edit_name("large", "other\nline number 50 is here\nline number 51 is here\nother\n", "x",
                    false);
    CHECK_CONTAINS(reply.content.data, "The nearest text in it is:\n    47\tline number 47");
    CHECK_CONTAINS(reply.content.data, "    52\tline number 52");
    (void)edit_name("large", "0123456789", "x", false);
    CHECK_CONTAINS(reply.content.data, "Nothing in it is like that. Read the file again, or find "
                                       "the place with grep.\n");
    (void)edit_name("large", "line number 7 is   here", "x", false);
    CHECK_CONTAINS(reply.content.data, "other whitespace");
    CHECK_CONTAINS(reply.content.data, "     7\tline number 7 is here\n");
}

/* Whatever is looked for, it ends, and nothing is read behind the text. */
static void any_bytes_are_explained(void)
{
    static const char *const odd[] = { "\n", "\r\n", "\n\n\n", " ",       "\xff",
                                       "\t", "x\n",  "\nx",    "\xe2\x82" };

    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        put_into("odd", odd[i]);
        for (size_t k = 0; k < ARRAY_SIZE(odd); k++) {
            put_into("odd", odd[i]);
            CHECK(strlen(edit_name("odd", odd[k], "y", true)) > 0);
        }
    }
}

/* --- several ---------------------------------------------------------------------------------- */

static void several_edits_are_made_one_after_the_other(void)
{
    struct tool_edit edits[] = { EDIT("one", "two", false), EDIT("two", "three", true),
                                 EDIT("\n", "", true) };

    put_into("m", "one\ntwo\n");
    CHECK_REPLY(edit_all("m", edits, ARRAY_SIZE(edits)),
                about("Replaced 5 occurrences in '%s' with 3 edits.", "m"));
    CHECK_TEXT(content_of("m"), "threethree");
}

static void all_edits_are_made_or_none(void)
{
    struct tool_edit edits[] = { EDIT("one", "1", false), EDIT("four", "4", false),
                                 EDIT("two", "2", false) };
    struct tool_edit twice[] = { EDIT("one", "two", false), EDIT("two", "2", false) };
    struct tool_edit same[] = { EDIT("one", "two", false), EDIT("x", "x", false) };

    put_into("m", "one\ntwo\nthree\n");
    (void)edit_all("m", edits, ARRAY_SIZE(edits));
    CHECK(is_error());
    CHECK(strncmp(reply.content.data, "Edit 2 of 3: old_string was not found in '", 42) == 0);
    CHECK_CONTAINS(reply.content.data, "     1\t1\n     2\ttwo\n     3\tthree\n"
                                       "(shown as the edits before it would have left it)\n");
    CHECK(!strstr(edit_all("m", edits + 1, 2), "before it"));
    CHECK_CONTAINS(edit_all("m", twice, ARRAY_SIZE(twice)),
                   "Edit 2 of 2: old_string occurs 2 times in '");
    CHECK_CONTAINS(edit_all("m", same, ARRAY_SIZE(same)),
                   "Edit 2 of 2: old_string and new_string are the same.");
    CHECK_TEXT(content_of("m"), "one\ntwo\nthree\n");
    CHECK_TEXT(changed_at(0), "");
    CHECK_ERROR(edit_all("m", edits, 0), "There are no edits. Give at least one.");
    CHECK_CONTAINS(edit_all("m", edits, 1), "(line 1)."); /* as edit_file */
}

/* --- at the same time ------------------------------------------------------------------------- */

enum { EDITORS = 4, EDITS_EACH = 50 };

/* As a worker: each in a process of its own. */
static _Noreturn void edit_own(int number)
{
    char old_text[32], new_text[32];

    for (int i = 0; i < EDITS_EACH; i++) {
        (void)snprintf(old_text, sizeof(old_text), "<%d:%d>", number, i);
        (void)snprintf(new_text, sizeof(new_text), "<%d:%d>", number, i + 1);
        (void)edit_name("shared", old_text, new_text, false);
        CHECK(!is_error(), "(%s)", reply.content.data);
    }
    _exit(0);
}

static void edits_at_the_same_time_are_all_made(void)
{
    put_into("shared", "<0:0>\n<1:0>\n<2:0>\n<3:0>\n");
    for (int i = 0; i < EDITORS; i++) {
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0)
            edit_own(i);
    }
    for (int i = 0; i < EDITORS; i++) {
        int status;

        CHECK(wait(&status) > 0 && status == 0);
    }
    CHECK_TEXT(content_of("shared"), "<0:50>\n<1:50>\n<2:50>\n<3:50>\n");
    CHECK(!has_leftovers());
}

static void all(void)
{
    world_open();
    RUN(a_text_is_replaced);
    RUN(bytes_stay_what_they_are);
    RUN(crlf_is_kept);
    RUN(more_than_one_is_refused_with_where_they_are);
    RUN(what_cannot_be_meant_is_refused);
    RUN(a_file_grows_to_the_limit_and_no_further);
    RUN(links_are_edited_through);
    RUN(a_small_file_is_shown_whole);
    RUN(other_whitespace_is_said);
    RUN(the_nearest_place_of_a_large_file_is_shown);
    RUN(any_bytes_are_explained);
    RUN(several_edits_are_made_one_after_the_other);
    RUN(all_edits_are_made_or_none);
    RUN(edits_at_the_same_time_are_all_made);
    world_close();
}

int main(void)
{
    RUN(all);
    return 0;
}
