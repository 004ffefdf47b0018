// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/control.h"
#include "base/text/utf8.h"
#include "check.h"

static void characters_are_what_the_standard_says(void)
{
    static const struct {
        const char *bytes;
        size_t wanted;
    } rows[] = {
        { "a", 1 },
        { "\xc3\xa4", 2 },
        { "\xe2\x82\xac", 3 },
        { "\xf0\x9f\x98\x80", 4 },
        { "\x80", 0 },
        { "\xc0\xaf", 0 },
        { "\xc1\xbf", 0 },
        { "\xe0\x9f\xbf", 0 },
        { "\xed\xa0\x80", 0 },
        { "\xee\x80\x80", 3 },
        { "\xf0\x8f\xbf\xbf", 0 },
        { "\xf4\x8f\xbf\xbf", 4 },
        { "\xf4\x90\x80\x80", 0 },
        { "\xf5\x80\x80\x80", 0 },
        { "\xff", 0 },
        { "\xc3", 0 },
        { "\xe2\x82", 0 },
        { "\xf0\x9f\x98", 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK(utf8_char(rows[i].bytes, strlen(rows[i].bytes)) == rows[i].wanted, "(row %zu)", i);
    CHECK(utf8_char("", 0) == 0);
}

/* A special byte at each position of a word of eight. */
static void the_first_bad_byte_is_found_wherever_it_is(void)
{
    static const char bad[] = { '\0', '\x80', '\xff' };
    char text[40];

    for (size_t at = 0; at < sizeof(text); at++)
        for (size_t i = 0; i < sizeof(bad); i++) {
            memset(text, at % 2 ? 'x' : '\x01', sizeof(text));
            text[at] = bad[i];
            CHECK(utf8_valid(text, sizeof(text)) == at);
            CHECK(utf8_valid(text, at) == at);
        }
}

static void a_cut_does_not_break_a_character(void)
{
    CHECK(utf8_cut("abc", 3, 5) == 3);
    CHECK(utf8_cut("abc", 3, 2) == 2);
    CHECK(utf8_cut("a\xe2\x82\xacz", 5, 1) == 1);
    CHECK(utf8_cut("a\xe2\x82\xacz", 5, 2) == 1);
    CHECK(utf8_cut("a\xe2\x82\xacz", 5, 3) == 1);
    CHECK(utf8_cut("a\xe2\x82\xacz", 5, 4) == 4);
    CHECK(utf8_cut("\x80\x80\x80\x80\x80\x80\x80\x80", 8, 6) == 6); /* no character at all */
}

static void what_is_none_is_replaced(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64);

    CHECK(utf8_add(&out,
                   "a\xff"
                   "b\0\xe2\x82",
                   6) == 4);
    CHECK_TEXT(out.data, "a\xef\xbf\xbd"
                         "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    CHECK(utf8_add(&out, "\xc3\xa4", 2) == 0);
    CHECK(utf8_add(&out, "0123456789012345678901234567890123456789012345678901234567890", 61) < 0);
}

/* The result does not depend on how the input is cut. */
static void pieces_are_as_the_whole(void)
{
    static const char text[] =
        "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xff\xe2\x82z\xf0\x9f\xc3\xa4\xe2";
    size_t len = sizeof(text) - 1;
    cleanup_with(buf_done) struct buf whole = BUF_INIT(256);

    CHECK(utf8_add(&whole, text, len) > 0);
    for (size_t first = 0; first <= len; first++)
        for (size_t second = first; second <= len; second++) {
            cleanup_with(buf_done) struct buf out = BUF_INIT(256);
            struct utf8_cleaner cleaner = { .len = 0 };

            CHECK(utf8_clean(&cleaner, text, first, &out) == 0);
            CHECK(utf8_clean(&cleaner, text + first, second - first, &out) == 0);
            CHECK(utf8_clean(&cleaner, text + second, len - second, &out) == 0);
            CHECK(utf8_clean_end(&cleaner, &out) == 0);
            CHECK_TEXT(out.data, whole.data);
        }
}

static void characters_that_control_a_terminal_are_dropped(void)
{
    static const char *const rows[][2] = {
        { "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
          "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80" },
        { "a\x1b[31m\x7f", "a?[31m?" },
        { "\xc2\x80 \xc2\x9b"
          "31m \xc2\x9f \xc2\xa0",
          "? ?31m ? \xc2\xa0" },
        { "\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f", "\xe2\x80\x8d??" },
        { "\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf", "\xe2\x80\xa9??\xe2\x80\xaf" },
        { "\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", "\xe2\x81\xa5??\xe2\x81\xaa" },
        { "\xc2", "\xc2" },
        { "\xe2\x80", "\xe2\x80" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[64];

        (void)snprintf(text, sizeof(text), "%s", rows[i][0]);
        text_drop_controls(text);
        CHECK_TEXT(text, rows[i][1]);
    }
}

int main(void)
{
    RUN(characters_are_what_the_standard_says);
    RUN(the_first_bad_byte_is_found_wherever_it_is);
    RUN(a_cut_does_not_break_a_character);
    RUN(what_is_none_is_replaced);
    RUN(pieces_are_as_the_whole);
    RUN(characters_that_control_a_terminal_are_dropped);
    return 0;
}
