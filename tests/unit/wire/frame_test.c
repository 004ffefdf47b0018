// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "wire/frame.h"

enum { ANY = 4096 };

static void add_frame(struct buf *out, enum frame_type type, uint32_t process, const char *payload)
{
    size_t start = frame_begin(out, type, process, 0);

    CHECK(frame_end(out, start, buf_add_str(out, payload) == 0) == 0);
}

static void a_frame_comes_back_as_it_was(void)
{
    for (int type = FRAME_NONE + 1; type < FRAME_TYPES; type++) {
        cleanup_with(buf_done) struct buf out = BUF_INIT(ANY);
        struct frame frame;
        size_t start = frame_begin(&out, (enum frame_type)type, 0x12345678, 3);

        CHECK(frame_end(&out, start, buf_add(&out, "a\0b", 3) == 0) == 0);
        CHECK(out.len == FRAME_HEADER_SIZE + 3);
        CHECK(frame_parse(out.data, out.len, ANY, &frame) == FRAME_HEADER_SIZE + 3);
        CHECK(frame.type == (enum frame_type)type && frame.process == 0x12345678 && frame.fds == 3);
        CHECK(frame.size == 3 && memcmp(frame.payload, "a\0b", 3) == 0);
    }
}

static void the_layout_is_little_endian_as_documented(void)
{
    static const unsigned char wanted[] = {
        2, 0, 0, 0, FRAME_SIGNAL, 0, 1, 0, 4, 3, 2, 1, 'h', 'i'
    };
    cleanup_with(buf_done) struct buf out = BUF_INIT(ANY);
    size_t start = frame_begin(&out, FRAME_SIGNAL, 0x01020304, 1);

    CHECK(frame_end(&out, start, buf_add(&out, "hi", 2) == 0) == 0);
    CHECK(out.len == sizeof(wanted) && memcmp(out.data, wanted, sizeof(wanted)) == 0);
}

static void a_part_of_a_frame_asks_for_more(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(ANY);
    struct frame frame;

    add_frame(&out, FRAME_INPUT, 1, "payload");
    for (size_t len = 0; len < out.len; len++)
        CHECK(frame_parse(out.data, len, ANY, &frame) == 0, "(%zu bytes)", len);
}

static void what_follows_a_frame_is_left_alone(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(ANY);
    struct frame frame;
    long used;

    add_frame(&out, FRAME_INPUT, 1, "first");
    add_frame(&out, FRAME_READY, 2, "second");
    used = frame_parse(out.data, out.len, ANY, &frame);
    CHECK(used == FRAME_HEADER_SIZE + 5 && frame.process == 1);
    CHECK(frame_parse(out.data + used, out.len - (size_t)used, ANY, &frame) ==
          FRAME_HEADER_SIZE + 6);
    CHECK(frame.type == FRAME_READY && memcmp(frame.payload, "second", 6) == 0);
}

static void a_frame_beyond_the_maximum_is_refused_by_its_header(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(ANY);
    struct frame frame;

    add_frame(&out, FRAME_INPUT, 1, "12345678");
    CHECK(frame_parse(out.data, out.len, 8, &frame) > 0);
    CHECK(frame_parse(out.data, out.len, 7, &frame) == -EPROTO);
    CHECK(frame_parse(out.data, FRAME_HEADER_SIZE, 7, &frame) == -EPROTO);
    memset(out.data, 0xff, 4);
    CHECK(frame_parse(out.data, out.len, FRAME_FROM_DAEMON_MAX, &frame) == -EPROTO);
}

static void unknown_types_are_refused(void)
{
    static const uint16_t types[] = { FRAME_NONE, FRAME_TYPES, FRAME_TYPES + 1, 0x100 + FRAME_BOOT,
                                      0xffff };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        cleanup_with(buf_done) struct buf out = BUF_INIT(ANY);
        struct frame frame;

        add_frame(&out, FRAME_INPUT, 1, "x");
        out.data[4] = (char)(types[i] & 0xff);
        out.data[5] = (char)(types[i] >> 8);
        CHECK(frame_parse(out.data, out.len, ANY, &frame) == -EPROTO, "(type %u)", types[i]);
        CHECK(frame_parse(out.data, FRAME_HEADER_SIZE, ANY, &frame) == -EPROTO);
    }
}

static void too_many_descriptors_are_refused(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(ANY);
    struct frame frame;
    size_t start = frame_begin(&out, FRAME_ROOT, 0, FRAME_FDS_MAX);

    CHECK(frame_end(&out, start, true) == 0);
    CHECK(frame_parse(out.data, out.len, ANY, &frame) > 0);
    out.data[6] = FRAME_FDS_MAX + 1;
    CHECK(frame_parse(out.data, out.len, ANY, &frame) == -EPROTO);
}

static void a_frame_that_does_not_fit_is_undone(void)
{
    for (size_t max = 0; max < FRAME_HEADER_SIZE + 4; max++) {
        cleanup_with(buf_done) struct buf out = BUF_INIT(max + 3);
        size_t start;

        CHECK(buf_add(&out, "abc", 3) == 0);
        start = frame_begin(&out, FRAME_HELLO, 0, 0);
        CHECK(frame_end(&out, start, put_u32(&out, 1)) == -ENOBUFS, "(room for %zu bytes)", max);
        CHECK(out.len == 3 && memcmp(out.data, "abc", 3) == 0);
    }
}

static void fields_come_back_in_order(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(ANY);
    struct frame frame;
    struct reader reader;
    const char *bytes;
    size_t len, start = frame_begin(&out, FRAME_INPUT, 1, 0);

    CHECK(frame_end(&out, start,
                    put_u8(&out, 0xfe) && put_u16(&out, 0xfedc) && put_u32(&out, 0xfedcba98) &&
                        put_u64(&out, 0xfedcba9876543210) && put_bytes(&out, "x\0y", 3) &&
                        put_text(&out, "text") && put_bytes(&out, "", 0) && put_text(&out, "")) ==
          0);
    CHECK(frame_parse(out.data, out.len, ANY, &frame) > 0);
    reader = reader_of(&frame);
    CHECK(get_u8(&reader) == 0xfe && get_u16(&reader) == 0xfedc && get_u32(&reader) == 0xfedcba98);
    CHECK(get_u64(&reader) == 0xfedcba9876543210);
    bytes = get_bytes(&reader, &len);
    CHECK(len == 3 && memcmp(bytes, "x\0y", 3) == 0);
    CHECK_TEXT(get_text(&reader), "text");
    CHECK(get_bytes(&reader, &len) && len == 0);
    CHECK(!reader_is_done(&reader), "(one field is left)");
    CHECK_TEXT(get_text(&reader), "");
    CHECK(reader_is_done(&reader));
}

static void after_a_missing_field_all_are_zero(void)
{
    const struct frame frame = { .payload = "\1\2\3", .size = 3 };
    struct reader reader = reader_of(&frame);
    size_t len = 7;

    CHECK(get_u64(&reader) == 0 && !reader.ok);
    CHECK(get_u8(&reader) == 0 && get_u16(&reader) == 0 && get_u32(&reader) == 0);
    CHECK(!get_bytes(&reader, &len) && len == 0);
    CHECK_TEXT(get_text(&reader), "");
    CHECK(!reader_is_done(&reader));
}

static struct reader reader_over(const void *data, size_t len)
{
    return (struct reader){ .next = data, .left = len, .ok = true };
}

static void text_must_have_one_nul_at_its_end(void)
{
    struct reader good = reader_over("\3\0\0\0ab\0", 7);
    struct reader empty = reader_over("\0\0\0\0", 4);
    struct reader open = reader_over("\2\0\0\0ab", 6);
    struct reader inside = reader_over("\4\0\0\0a\0b\0", 8);
    struct reader twice = reader_over("\3\0\0\0a\0\0", 7);

    CHECK_TEXT(get_text(&good), "ab");
    CHECK_TEXT(get_text(&empty), "");
    CHECK_TEXT(get_text(&open), "");
    CHECK_TEXT(get_text(&inside), "");
    CHECK_TEXT(get_text(&twice), "");
    CHECK(good.ok && !empty.ok && !open.ok && !inside.ok && !twice.ok);
}

static void a_length_beyond_the_payload_is_refused(void)
{
    static const char *const lies[] = { "\4\0\0\0abc",
                                        "\xff\xff\xff\xff"
                                        "abc",
                                        "\0\0\0\x80"
                                        "abc" };

    for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
        struct reader reader = reader_over(lies[i], 7);
        size_t len;

        CHECK(!get_bytes(&reader, &len) && len == 0 && !reader.ok);
    }
}

int main(void)
{
    RUN(a_frame_comes_back_as_it_was);
    RUN(the_layout_is_little_endian_as_documented);
    RUN(a_part_of_a_frame_asks_for_more);
    RUN(what_follows_a_frame_is_left_alone);
    RUN(a_frame_beyond_the_maximum_is_refused_by_its_header);
    RUN(unknown_types_are_refused);
    RUN(too_many_descriptors_are_refused);
    RUN(a_frame_that_does_not_fit_is_undone);
    RUN(fields_come_back_in_order);
    RUN(after_a_missing_field_all_are_zero);
    RUN(text_must_have_one_nul_at_its_end);
    RUN(a_length_beyond_the_payload_is_refused);
    return 0;
}
