// SPDX-License-Identifier: Apache-2.0
/* Requests to a terminal are hidden wherever a piece ends; everything else stays as it is. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/terminal_query.h"
#include "check.h"

enum { TEXT_MAX = 4096 };

/* Passes a text in pieces of this size, as a reader does. */
static void hide_in_pieces(const char *text, size_t len, size_t piece, char *ret)
{
    struct terminal_query_filter filter = { .string = STRING_NONE };
    char data[TEXT_MAX + TERMINAL_QUERY_MAX];
    size_t held = 0, out = 0;

    for (size_t at = 0; at < len; at += piece) {
        size_t part = len - at < piece ? len - at : piece, done;

        memcpy(data + held, text + at, part);
        done = terminal_query_hide(&filter, data, held + part, at + part == len);
        CHECK(done <= held + part);
        memcpy(ret + out, data, done);
        out += done;
        held = held + part - done;
        CHECK(held < TERMINAL_QUERY_MAX);
        memmove(data, data + done, held);
    }
    CHECK(held == 0 && out == len);
}

static void check_hidden(const char *text, size_t len, const char *wanted)
{
    char out[TEXT_MAX];

    for (size_t piece = 1; piece <= len; piece++) {
        hide_in_pieces(text, len, piece, out);
        CHECK(memcmp(out, wanted, len) == 0, "(%s in pieces of %zu)", text + 1, piece);
    }
}

static void requests_are_hidden(void)
{
    static const char *const rows[] = {
        "\033[c",
        "\033[0c",
        "\033[>c",
        "\033[=c",
        "\033[6n",
        "\033[5n",
        "\033[?6n",
        "\033[?2004$p",
        "\033[4$p",
        "\033[>0q",
        "\033[18t",
        "\033[14;2t",
        "\033[?u",
        "\033[x",
        "\033[1;1;1;1;5;5*y",
        "\033]11;?\007",
        "\033]10;?;?\007",
        "\033]4;1;?;2;?\033\\",
        "\033]52;c;?\007",
        "\033Z",
        "\033[6\rn",
        "\033[?996n",
        "\033[?4m",
        "\033[?1;1;0S",
        "\005",
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        size_t len = strlen(rows[i]);
        char text[128] = "a", wanted[128] = "a";

        memcpy(text + 1, rows[i], len);
        memcpy(text + 1 + len, "b", 2);
        wanted[1 + len] = 'b';
        check_hidden(text, len + 2, wanted);
    }
}

/* A string goes up to its end, which itself does nothing. */
static void settings_are_not_asked_for(void)
{
    check_hidden("a\033P$qm\033\\b", 9, "a\0\0\0\0\0\033\\b");
    check_hidden("\033_Gi=31,s=1,a=q,t=d;AA\033\\b", 25,
                 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\033\\b");
    check_hidden("\033_Ga=q\033\\", 8, "\0\0\0\0\0\0\033\\");
    check_hidden("\033P+q544e\033\\", 10, "\0\0\0\0\0\0\0\0\033\\");
}

static void other_output_stays(void)
{
    static const char *const rows[] = {
        "plain \303\244 text\r\n",
        "\033[31;1mred\033[0m",
        "\033[?25l\033[?6c",
        "\033[2J\033[H",
        "\033]0;is this a title;?\007",
        "\033]11;#ffffff\007",
        "\033]8;;http://x/?q\033\\text",
        "\033P1$r0m\033\\",
        "\033Pq#0;2;0\033\\",
        "\033[8;24;80t",
        "\033[22;0t",
        "\033[>4;1m",
        "\033[1 q",
        "\033[!p",
        "\033(B",
        "\0337\0338",
        "\033[u",
        "\033[>1u",
        "\033[1;2;3$x",
        "\033[>4n",
        "\033_Gsomething\033\\",
        "\033_Ga=t,i=1;a=q,\033\\",
        "\033_Xa=q\033\\",
        "\033_Gaa=q;\033\\",
        "\033_Ga=q",
        "\033[6",
        "\033",
        "\033]11;?",
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        check_hidden(rows[i], strlen(rows[i]), rows[i]);
}

/* Without CAN, a terminal would read "ESC [" and "6n" as one sequence. */
static void what_was_broken_does_not_become_a_request(void)
{
    check_hidden("\033[\033[6n6n", 8,
                 "\033[\030\0\0\0"
                 "6n");
    check_hidden("\033_text\033[6n6n", 12,
                 "\033_text\030\0\0\0"
                 "6n");
    check_hidden("\033\033[cc", 5,
                 "\033\030\0\0"
                 "c");
}

static void long_sequences_are_passed_on(void)
{
    char text[1200] = "\033]52;c;", out[TEXT_MAX];

    memset(text + 7, 'A', 1000);
    memcpy(text + 1007, "\007\033[6nend", 9);
    hide_in_pieces(text, 1015, 100, out);
    CHECK(memcmp(out, text, 1008) == 0 && memcmp(out + 1008, "\0\0\0\0end", 7) == 0);
    memcpy(text, "\033[", 2);
    memset(text + 2, ';', 1000);
    hide_in_pieces(text, 1002, 7, out);
    CHECK(memcmp(out, text, 1002) == 0);
}

int main(void)
{
    RUN(requests_are_hidden);
    RUN(settings_are_not_asked_for);
    RUN(other_output_stays);
    RUN(what_was_broken_does_not_become_a_request);
    RUN(long_sequences_are_passed_on);
    return 0;
}
