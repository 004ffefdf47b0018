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

static void a_string_is_replaced(void)
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
    (void)edit_name("a", "aa", "a", true); /* replacements are not searched again */
    CHECK_TEXT(content_of("a"), "aa");
    CHECK(!has_leftovers());
}

static void other_bytes_are_not_changed(void)
{
    static const char odd[] = "\xff\xfe latin \xe9\r\nno newline at the end";
    char wanted[64];

    put_into("odd", odd);
    CHECK(!strstr(edit_name("odd", "latin", "x", false), "not found"));
    (void)snprintf(wanted, sizeof(wanted), "\xff\xfe x \xe9\r\nno newline at the end");
    CHECK_TEXT(content_of("odd"), wanted);
}

/* read_file does not show CRLF; an edit keeps it. */
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
    (void)edit_name("mixed", "lf\nlf\n", "x\ny\n", false); /* matches exactly */
    CHECK_TEXT(content_of("mixed"), "x\ny\ncrlf\r\ncrlf\r\n");
    (void)edit_name("mixed", "crlf\ncrlf", "z\nz", false);
    CHECK_TEXT(content_of("mixed"), "x\ny\nz\r\nz\r\n");
    put_into("lf", "a\nb\n");
    (void)edit_name("lf", "a\r\nb", "c", false);
    CHECK(is_error());
}

static void several_occurrences_are_refused_with_their_lines(void)
{
    put_into("twice", "x\ny\nx\n");
    CHECK_ERROR(edit_name("twice", "x", "z", false),
                about("old_string occurs 2 times in '%s' (lines 1, 3). Include more surrounding "
                      "lines to make it unique, or set replace_all. Nothing was changed.",
                      "twice"));
    put_into("many", "x\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\n");
    CHECK_CONTAINS(edit_name("many", "x", "z", false), "occurs 12 times in '");
    CHECK_CONTAINS(reply.content.data, "(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...)");
    CHECK_TEXT(content_of("twice"), "x\ny\nx\n");
    CHECK_TEXT(changed_at(0), "");
}

static void invalid_edits_are_refused(void)
{
    put_into("a", "text");
    CHECK_ERROR(edit_name("a", "text", "text", false),
                "old_string and new_string are the same. Nothing was changed.");
    CHECK_ERROR(edit_name("a", "", "x", false),
                "old_string is empty. Use write_file to write a whole file. Nothing was changed.");
    put_bytes_into("binary", "a\0b", 3);
    CHECK_ERROR(
        edit_name("binary", "a", "b", false),
        about("'%s' is a binary file; only text can be edited. Use bash instead.", "binary"));
    CHECK(mkdir("sub", 0755) == 0 && mkfifo("fifo", 0644) == 0);
    CHECK_CONTAINS(edit_name("sub", "a", "b", false), "is a directory.");
    CHECK_CONTAINS(edit_name("fifo", "a", "b", false), "is a pipe, not a file.");
    CHECK_CONTAINS(edit_name("missing", "a", "b", false), "does not exist.");
    put_into("large", "a");
    CHECK(truncate("large", 64 * 1024 * 1024 + 1) == 0);
    CHECK_ERROR(edit_name("large", "a", "b", false),
                about("'%s' has 67108865 bytes; the limit for edits is 67108864. Use bash with sed "
                      "instead.",
                      "large"));
}

static void a_file_cannot_grow_beyond_the_limit(void)
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

static void links_are_followed(void)
{
    put_into("target", "old");
    CHECK(symlink("target", "link") == 0);
    CHECK_REPLY(edit_name("link", "old", "new", false),
                about("Replaced 1 occurrence in '%s' (line 1).", "link"));
    CHECK_TEXT(content_of("target"), "new");
    CHECK(S_ISLNK(mode_of("link")));
}

/* --- a string that is not found --------------------------------------------------------------- */

static void a_small_file_is_shown_completely(void)
{
    put_into("small", "one\ntwo\nthree\n");
    CHECK_ERROR(edit_name("small", "four", "x", false),
                about("old_string was not found in '%s', and nothing was changed. The whole file "
                      "is:\n" NUMBERS,
                      "small"));
    put_into("empty", "");
    CHECK_ERROR(edit_name("empty", "four", "x", false),
                about("old_string was not found in '%s', and nothing was changed. The file is "
                      "empty.\n",
                      "empty"));
}

static void different_whitespace_and_case_are_reported(void)
{
    put_into("space", "int f(void)\n{\n\treturn  1;\n}\n");
    CHECK_ERROR(edit_name("space", "{\n    return 1;\n}", "x", false),
                about("old_string was not found in '%s', and nothing was changed. The file has it "
                      "with different whitespace. Copy it exactly:\n"
                      "     1\tint f(void)\n     2\t{\n     3\t\treturn  1;\n     4\t}\n",
                      "space"));
    CHECK_CONTAINS(edit_name("space", "INT F(void)", "x", false),
                   "The file has it with different upper and lower case.");
    CHECK_CONTAINS(edit_name("space", "     2\t{\n     3\t\treturn  1;", "x", false),
                   "It contains line numbers; leave them out.");
}

static void the_most_similar_text_of_a_large_file_is_shown(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(1 << 20);

    for (int i = 1; i <= 200; i++)
        CHECK(buf_printf(&text, i == 100 ? "    if (count > limit)\n" : "line number %d is here\n",
                         i) == 0);
    put_bytes_into("large", text.data, text.len);
    CHECK_ERROR(edit_name("large", "if (count >= limit)", "x", false),
                about("old_string was not found in '%s', and nothing was changed. The most similar "
                      "text is:\n"
                      "    98\tline number 98 is here\n    99\tline number 99 is here\n"
                      "   100\t    if (count > limit)\n   101\tline number 101 is here\n"
                      "   102\tline number 102 is here\n   103\tline number 103 is here\n"
                      "   104\tline number 104 is here\n",
                      "large"));
    /* Most of several lines are there. */
    (void)edit_name("large", "other\nline number 50 is here\nline number 51 is here\nother\n", "x",
                    false);
    CHECK_CONTAINS(reply.content.data, "The most similar text is:\n    47\tline number 47");
    CHECK_CONTAINS(reply.content.data, "    52\tline number 52");
    (void)edit_name("large", "0123456789", "x", false);
    CHECK_CONTAINS(reply.content.data, "The file has nothing similar. Read it again, or search "
                                       "with grep.\n");
    (void)edit_name("large", "line number 7 is   here", "x", false);
    CHECK_CONTAINS(reply.content.data, "different whitespace");
    CHECK_CONTAINS(reply.content.data, "     7\tline number 7 is here\n");
}

/* The explanation ends for any string, and does not read past the text. */
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

/* --- several edits ---------------------------------------------------------------------------- */

static void several_edits_are_made_in_order(void)
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
                                       "(shown with the preceding edits applied)\n");
    CHECK(!strstr(edit_all("m", edits + 1, 2), "preceding edits"));
    CHECK_CONTAINS(edit_all("m", twice, ARRAY_SIZE(twice)),
                   "Edit 2 of 2: old_string occurs 2 times in '");
    CHECK_CONTAINS(edit_all("m", same, ARRAY_SIZE(same)),
                   "Edit 2 of 2: old_string and new_string are the same.");
    CHECK_TEXT(content_of("m"), "one\ntwo\nthree\n");
    CHECK_TEXT(changed_at(0), "");
    CHECK_ERROR(edit_all("m", edits, 0), "edits is empty. Give at least one edit.");
    CHECK_CONTAINS(edit_all("m", edits, 1), "(line 1)."); /* as edit_file */
}

/* --- concurrent edits ------------------------------------------------------------------------- */

enum { EDITORS = 4, EDITS_EACH = 50 };

/* Each runs in its own process, as a worker does. */
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

static void concurrent_edits_are_all_made(void)
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
    RUN(a_string_is_replaced);
    RUN(other_bytes_are_not_changed);
    RUN(crlf_is_kept);
    RUN(several_occurrences_are_refused_with_their_lines);
    RUN(invalid_edits_are_refused);
    RUN(a_file_cannot_grow_beyond_the_limit);
    RUN(links_are_followed);
    RUN(a_small_file_is_shown_completely);
    RUN(different_whitespace_and_case_are_reported);
    RUN(the_most_similar_text_of_a_large_file_is_shown);
    RUN(any_bytes_are_explained);
    RUN(several_edits_are_made_in_order);
    RUN(all_edits_are_made_or_none);
    RUN(concurrent_edits_are_all_made);
    world_close();
}

int main(void)
{
    RUN(all);
    return 0;
}
