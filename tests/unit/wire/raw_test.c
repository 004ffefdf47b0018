// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "wire/raw.h"

static void what_was_written_is_read(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(1024);
    struct raw_parser client = { 0 };
    struct raw_piece piece;
    ssize_t n;

    CHECK(raw_add(&out, RAW_EVENT, "{}", 2) == 0 && raw_add(&out, RAW_STDERR, "abc", 3) == 0);
    n = raw_next(&client, out.data, out.len, &piece);
    CHECK(n == RAW_HEADER_SIZE + 2 && piece.type == RAW_EVENT && piece.len == 2);
    n = raw_next(&client, out.data + n, out.len - (size_t)n, &piece);
    CHECK(n == RAW_HEADER_SIZE + 3 && piece.type == RAW_STDERR);
    CHECK(memcmp(piece.data, "abc", piece.len) == 0);
}

static void data_comes_in_pieces_and_the_rest_whole(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(1024);
    struct raw_parser client = { 0 };
    struct raw_piece piece;

    CHECK(raw_add(&out, RAW_STDOUT, "abc", 3) == 0);
    CHECK(raw_next(&client, out.data, RAW_HEADER_SIZE, &piece) == 0);
    CHECK(raw_next(&client, out.data, RAW_HEADER_SIZE + 1, &piece) == RAW_HEADER_SIZE + 1);
    CHECK(piece.len == 1 && *piece.data == 'a' && client.left == 2);
    CHECK(raw_next(&client, "bcX", 3, &piece) == 2 && piece.type == RAW_STDOUT && client.left == 0);
    buf_clear(&out);
    CHECK(raw_add(&out, RAW_END, "{}", 2) == 0);
    CHECK(raw_next(&client, out.data, out.len - 1, &piece) == 0);
    CHECK(raw_next(&client, out.data, out.len, &piece) == (ssize_t)out.len);
}

static void a_bad_header_is_refused(void)
{
    static const struct {
        bool is_daemon;
        unsigned char header[RAW_HEADER_SIZE];
    } bad[] = {
        { false, { RAW_NONE } },
        { false, { RAW_TYPES } },
        { false, { 0xff } },
        { false, { RAW_STDIN } },
        { false, { RAW_STDIN_EOF } },
        { true, { RAW_STDOUT } },
        { true, { RAW_END } },
        { true, { RAW_STDIN, 1 } },
        { true, { RAW_STDIN, 0, 1 } },
        { true, { RAW_STDIN, 0, 0, 1 } },
        { true, { RAW_STDIN, 0, 0, 0, 1, 0, 0x10 } },
        { true, { RAW_STDIN, 0, 0, 0, 0, 0, 0, 0x80 } },
        { true, { RAW_STDIN_EOF, 0, 0, 0, 1 } },
        { false, { RAW_EVENT, 0, 0, 0, 1, 0, 1 } },
        { false, { RAW_END, 0, 0, 0, 0xff, 0xff, 0xff, 0xff } },
    };
    struct raw_piece piece;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct raw_parser parser = { .is_daemon = bad[i].is_daemon };

        CHECK(raw_next(&parser, bad[i].header, RAW_HEADER_SIZE, &piece) == -EPROTO, "(header %zu)",
              i);
    }
}

static void no_frame_is_longer_than_it_may_be(void)
{
    static const char long_text[RAW_WHOLE_MAX + 1];
    cleanup_with(buf_done) struct buf out = BUF_INIT(2 * RAW_WHOLE_MAX);

    CHECK(raw_add(&out, RAW_EVENT, long_text, sizeof(long_text)) == -EMSGSIZE && out.len == 0);
    CHECK(raw_add(&out, RAW_EVENT, long_text, RAW_WHOLE_MAX) == 0);
    CHECK(raw_add(&out, RAW_STDIN_EOF, "x", 1) == -EMSGSIZE);
}

int main(void)
{
    RUN(what_was_written_is_read);
    RUN(data_comes_in_pieces_and_the_rest_whole);
    RUN(a_bad_header_is_refused);
    RUN(no_frame_is_longer_than_it_may_be);
    return 0;
}
