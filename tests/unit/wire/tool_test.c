// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "wire/file.h"
#include "wire/tool.h"

static void values_come_back_as_they_were(void)
{
    struct tool_text texts[] = { { "", 0 }, { "a\0b", 3 } };
    struct tool_edit edits[] = { { .old_text = { "x", 1 }, .new_text = { "", 0 }, .all = true },
                                 { .old_text = { "\n", 1 }, .new_text = { "yy", 2 } } };
    const struct tool_value values[] = {
        { .type = TOOL_TEXT, .text = { "path", 4 } },
        { .type = TOOL_NUMBER, .number = INT64_MIN },
        { .type = TOOL_FLAG, .number = 1 },
        { .type = TOOL_CHOICE, .number = 2 },
        { .type = TOOL_TEXTS, .texts = texts, .count = 2 },
        { .type = TOOL_EDITS, .edits = edits, .count = 2 },
        { .type = TOOL_TEXTS },
    };
    cleanup_with(buf_done) struct buf out = BUF_INIT(4096);
    struct tool_values got = { .count = 0 };

    CHECK(tool_put_values(&out, values, ARRAY_SIZE(values)) == 0);
    CHECK(tool_get_values(out.data, out.len, &got) == 0 && got.count == ARRAY_SIZE(values));
    CHECK_TEXT(got.at[0].text.data, "path");
    CHECK(got.at[1].number == INT64_MIN && got.at[2].number == 1 && got.at[3].number == 2);
    CHECK(got.at[4].count == 2 && got.at[4].texts[0].len == 0 && got.at[4].texts[1].len == 3);
    CHECK(memcmp(got.at[4].texts[1].data, "a\0b", 4) == 0);
    CHECK(got.at[5].count == 2 && got.at[5].edits[0].all && !got.at[5].edits[1].all);
    CHECK_TEXT(got.at[5].edits[1].new_text.data, "yy");
    CHECK(got.at[6].count == 0);
    tool_values_done(&got);
    /* Every proper prefix is invalid. */
    for (size_t len = 0; len < out.len; len++)
        CHECK(tool_get_values(out.data, len, &got) == -EPROTO);
}

static void what_is_too_much_is_refused(void)
{
    static struct tool_text texts[TOOL_LIST_MAX + 1];
    static struct tool_value values[TOOL_VALUES_MAX + 1];
    cleanup_with(buf_done) struct buf out = BUF_INIT(2 * TOOL_PARAMS_MAX);
    cleanup_free char *large = calloc(1, TOOL_PARAMS_MAX);
    struct tool_values got = { .count = 0 };

    CHECK(large);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        texts[i].data = "";
    values[0] = (struct tool_value){ .type = TOOL_TEXTS, .texts = texts, .count = TOOL_LIST_MAX };
    CHECK(tool_put_values(&out, values, 1) == 0);
    CHECK(tool_get_values(out.data, out.len, &got) == 0);
    tool_values_done(&got);
    values[0].count++;
    CHECK(tool_put_values(&out, values, 1) == -EMSGSIZE);
    values[0] = (struct tool_value){ .type = TOOL_TEXT, .text = { large, TOOL_PARAMS_MAX - 64 } };
    buf_clear(&out);
    CHECK(tool_put_values(&out, values, 1) == 0 && out.len <= TOOL_PARAMS_MAX);
    CHECK(tool_get_values(out.data, out.len, &got) == 0);
    tool_values_done(&got);
    values[0].text.len = TOOL_PARAMS_MAX;
    CHECK(tool_put_values(&out, values, 1) == -EMSGSIZE);
    values[0] = (struct tool_value){ .type = TOOL_NUMBER };
    CHECK(tool_put_values(&out, values, TOOL_VALUES_MAX + 1) == -EMSGSIZE);
    out.max = out.len + 8;
    CHECK(tool_put_values(&out, values, 1) == -ENOBUFS);
}

static bool is_taken(uint32_t flags, const char *mime)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(4096);
    struct tool_outcome outcome = { .flags = flags }, got = { .flags = ~0U };
    struct file_parser parser = { 0 };
    struct file_piece piece;

    (void)snprintf(outcome.mime, sizeof(outcome.mime), "%s", mime);
    CHECK(file_put_outcome(&out, &outcome) == 0);
    CHECK(file_next(&parser, out.data, out.len, &piece) == (ssize_t)out.len);
    if (!file_get_outcome(&piece, &got))
        return false;
    CHECK(got.flags == flags);
    CHECK_TEXT(got.mime, mime);
    return true;
}

static void an_outcome_is_one_that_can_be(void)
{
    CHECK(is_taken(0, "") && is_taken(TOOL_IS_ERROR, "") && is_taken(TOOL_IS_CUT, ""));
    CHECK(is_taken(TOOL_IS_IMAGE, "image/png") && is_taken(TOOL_IS_IMAGE, "image/svg+xml"));
    CHECK(!is_taken(TOOL_ALL_FLAGS + 1, "") && !is_taken(0, "image/png"));
    CHECK(!is_taken(TOOL_IS_IMAGE, "") && !is_taken(TOOL_IS_IMAGE, "text/plain"));
    CHECK(!is_taken(TOOL_IS_IMAGE | TOOL_IS_ERROR, "image/png"));
    CHECK(!is_taken(TOOL_IS_IMAGE, "image/\r\n") && !is_taken(TOOL_IS_IMAGE, "image/PNG"));
}

int main(void)
{
    RUN(values_come_back_as_they_were);
    RUN(what_is_too_much_is_refused);
    RUN(an_outcome_is_one_that_can_be);
    return 0;
}
