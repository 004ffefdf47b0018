// SPDX-License-Identifier: Apache-2.0
/* Output for a terminal as plain text. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/plain.h"
#include "check.h"

/* Adds the text in pieces of this many bytes. */
static void add_in_pieces(const char *text, size_t len, size_t piece, struct buf *out)
{
    cleanup_with(plain_done) struct plain_text plain = PLAIN_TEXT_INIT;

    for (size_t i = 0; i < len; i += piece)
        CHECK(plain_add(&plain, text + i, len - i < piece ? len - i : piece, out) == 0);
    CHECK(plain_end(&plain, out) == 0);
}

static void rows_become_plain(void)
{
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        { "", "" },
        { "plain\ttext\n", "plain\ttext\n" },
        { "without an end", "without an end" },
        { "\x1b[1;31mred\x1b[0m\n", "red\n" },
        { "\x1b]0;title\x07"
          "a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n",
          "alink\n" },
        { "\x1b(B\x1b)0\x1b=\x1b>\x1b"
          "7x\x1b"
          "8\n",
          "x\n" },
        { "\x1bP1$r0m\x1b\\x\n", "x\n" },
        { "dos\r\nlines\r\n", "dos\nlines\n" },
        { "10%\r50%\r100%\n", "100%\n" },
        { "10%\r\x1b[K50%\r\x1b[K\n", "\n" },
        { "10%\x1b[1G20%\x1b[2K\x1b[1G30%\n", "30%\n" },
        { "kept\r", "kept" },
        { "a\nb\rc\nd", "a\nc\nd" },
        { "abc\b\bX\n", "aX\n" },
        { "\xc3\xa4\b\n", "\n" },
        { "\x07\x0c\x01x\x7f\n", "x\n" },
        { "\xc2\x9b\xc2\x80x\xc2\xa9\n", "x\xc2\xa9\n" },
        { "\xe2\x82\xac\xf0\x9f\x98\x80\n", "\xe2\x82\xac\xf0\x9f\x98\x80\n" },
        { "\x1b[38;5;1\nnext\n", "\nnext\n" },
        { "\x1b]never ended\nnext\n", "\nnext\n" },
        { "\x1b", "" },
        { "\x1b[", "" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        for (size_t piece = 1; piece < 8; piece++) {
            cleanup_with(buf_done) struct buf out = BUF_INIT(4096);

            add_in_pieces(rows[i].text, strlen(rows[i].text), piece, &out);
            CHECK(out.len == strlen(rows[i].wanted) &&
                      (out.len == 0 || memcmp(out.data, rows[i].wanted, out.len) == 0),
                  "(row %zu, pieces of %zu: '%.*s')", i, piece, (int)out.len,
                  out.data ? out.data : "");
        }
}

/* Neither a line nor a sequence without an end takes more memory than it may, or hides the rest. */
static void what_has_no_end_is_bounded(void)
{
    const size_t size = (size_t)3 * PLAIN_LINE_MAX + 17;
    cleanup_with(buf_done) struct buf out = BUF_INIT(size + 16);
    cleanup_free char *text = malloc(size);

    memset(text, 'x', size);
    add_in_pieces(text, size, 1000, &out);
    CHECK(out.len == size);
    buf_clear(&out);
    memcpy(text, "\x1b]", 2);
    add_in_pieces(text, size, 1000, &out);
    CHECK(out.len > size - 8192 && out.len < size);
}

int main(void)
{
    RUN(rows_become_plain);
    RUN(what_has_no_end_is_bounded);
    return 0;
}
