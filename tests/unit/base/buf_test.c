// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"

static void what_is_added_is_kept_and_terminated(void)
{
    cleanup_with(buf_done) struct buf buf = BUF_INIT(100);

    CHECK(buf_add_str(&buf, "one ") == 0);
    CHECK(buf_add(&buf, "two", 3) == 0);
    CHECK(buf_printf(&buf, " %d", 3) == 0);
    CHECK_TEXT(buf.data, "one two 3");
    CHECK(buf.len == 9);
}

static void the_limit_is_reached_but_never_passed(void)
{
    cleanup_with(buf_done) struct buf buf = BUF_INIT(8);

    CHECK(buf_add(&buf, "12345678", 8) == 0);
    CHECK(buf_add(&buf, "9", 1) == -ENOBUFS);
    CHECK(buf_printf(&buf, "%s", "9") == -ENOBUFS);
    CHECK_TEXT(buf.data, "12345678");
}

static void a_refused_addition_adds_nothing(void)
{
    cleanup_with(buf_done) struct buf buf = BUF_INIT(4);

    CHECK(buf_add_str(&buf, "ab") == 0);
    CHECK(buf_add_str(&buf, "cde") == -ENOBUFS);
    CHECK_TEXT(buf.data, "ab");
}

static void a_huge_request_does_not_wrap_around(void)
{
    cleanup_with(buf_done) struct buf buf = BUF_INIT(1000);

    CHECK(buf_add_str(&buf, "abc") == 0);
    CHECK(buf_reserve(&buf, SIZE_MAX) == -ENOBUFS);
    CHECK(buf_reserve(&buf, SIZE_MAX - 2) == -ENOBUFS);
    CHECK(buf.len == 3);
}

static void it_grows_past_its_first_capacity(void)
{
    cleanup_with(buf_done) struct buf buf = BUF_INIT(100000);

    for (int i = 0; i < 10000; i++)
        CHECK(buf_add(&buf, "0123456789", 10) == 0);
    CHECK(buf.len == 100000);
    CHECK(memcmp(buf.data + 99990, "0123456789", 11) == 0);
}

static void consuming_keeps_the_rest(void)
{
    cleanup_with(buf_done) struct buf buf = BUF_INIT(100);

    CHECK(buf_add_str(&buf, "headrest") == 0);
    buf_consume(&buf, 4);
    CHECK_TEXT(buf.data, "rest");
    buf_consume(&buf, 0);
    CHECK_TEXT(buf.data, "rest");
    buf_consume(&buf, 1000);
    CHECK(buf.len == 0);
    CHECK_TEXT(buf.data, "");
}

static void an_untouched_buffer_may_be_cleared_and_consumed(void)
{
    struct buf buf = BUF_INIT(10);

    buf_clear(&buf);
    buf_consume(&buf, 1);
    CHECK(buf.len == 0 && !buf.data);
    buf_done(&buf);
    buf_done(&buf);
}

static void bytes_with_nul_inside_are_kept_whole(void)
{
    cleanup_with(buf_done) struct buf buf = BUF_INIT(10);

    CHECK(buf_add(&buf, "a\0b", 3) == 0);
    CHECK(buf_add(&buf, NULL, 0) == 0);
    CHECK(buf.len == 3 && memcmp(buf.data, "a\0b", 4) == 0);
}

int main(void)
{
    RUN(what_is_added_is_kept_and_terminated);
    RUN(the_limit_is_reached_but_never_passed);
    RUN(a_refused_addition_adds_nothing);
    RUN(a_huge_request_does_not_wrap_around);
    RUN(it_grows_past_its_first_capacity);
    RUN(consuming_keeps_the_rest);
    RUN(an_untouched_buffer_may_be_cleared_and_consumed);
    RUN(bytes_with_nul_inside_are_kept_whole);
    return 0;
}
