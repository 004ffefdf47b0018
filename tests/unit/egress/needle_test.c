// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/base64.h"
#include "check.h"
#include "egress/secret/needle.h"

static const char value[] = "sk-live/Zq8+7Yw2\"nB5vK1mR4tX9";

static struct needles *needles_make(void)
{
    struct needles *needles = needles_new();

    needles_add(needles, "another-value-of-text", 21, 3);
    needles_add(needles, value, strlen(value), 7);
    needles_ready(needles);
    return needles;
}

static void texts_are_found_at_every_place(void)
{
    struct needles *needles = needles_make();
    char data[300];

    for (size_t at = 0; at + strlen(value) <= sizeof(data); at++) {
        memset(data, 's', sizeof(data));
        CHECK(needles_find(needles, data, sizeof(data)) == -1);
        memcpy(data + at, value, strlen(value));
        CHECK(needles_find(needles, data, sizeof(data)) == 7);
        CHECK(needles_find(needles, data, at + strlen(value) - 1) == -1);
    }
    needles_free(needles);
}

static void encodings_are_found(void)
{
    struct needles *needles = needles_make();

    for (size_t before = 0; before < 7; before++) {
        struct buf raw = BUF_INIT(1000), coded = BUF_INIT(2000);

        CHECK(buf_add(&raw, "xxxxxxx", before) == 0 && buf_add_str(&raw, value) == 0);
        CHECK(buf_add_str(&raw, "and more") == 0);
        CHECK(base64_encode(&coded, raw.data, raw.len) == 0);
        CHECK(needles_find(needles, coded.data, coded.len) == 7);
        for (size_t i = 0; i < coded.len; i++) {
            if (coded.data[i] == '+')
                coded.data[i] = '-';
            else if (coded.data[i] == '/')
                coded.data[i] = '_';
        }
        CHECK(needles_find(needles, coded.data, coded.len) == 7);
        buf_done(&raw);
        buf_done(&coded);
    }
    CHECK(needles_find(needles, "k=sk-live%2FZq8%2B7Yw2%22nB5vK1mR4tX9&", 39) == 7);
    CHECK(needles_find(needles, "k=sk-live%2fZq8%2b7Yw2%22nB5vK1mR4tX9&", 39) == 7);
    CHECK(needles_find(needles, "{\"k\":\"sk-live/Zq8+7Yw2\\\"nB5vK1mR4tX9\"}", 39) == 7);
    needles_free(needles);
}

/* However a stream is cut, the text is found with its last byte, and no more than three of its
 * bytes would have been passed on before. */
static void borders_hide_nothing(void)
{
    struct needles *needles = needles_make();
    const size_t len = strlen(value);

    for (size_t step = 1; step < len; step++) {
        struct needle_stream stream = { .len = 0 };
        size_t passed = 0, fed = 0;
        long found = needles_feed(needles, &stream, "before ", 7);

        CHECK(found == -1);
        while (found < 0) {
            size_t part = len - fed < step ? len - fed : step;

            CHECK(part > 0);
            found = needles_feed(needles, &stream, value + fed, part);
            fed += part;
            if (found < 0)
                passed = fed - needles_partial(needles, &stream);
        }
        CHECK(found == 7 && fed == len && passed < NEEDLE_HOLD_MIN);
    }
    needles_free(needles);
}

static void long_texts_are_found_by_their_start(void)
{
    struct needles *needles = needles_new();
    char text[1000];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + (i * 7 + i / 26) % 26);
    needles_add(needles, text, sizeof(text), 1);
    needles_add(needles, "short", 5, 2);
    needles_ready(needles);
    CHECK(needles_find(needles, text, sizeof(text)) == 1);
    CHECK(needles_find(needles, "short", 5) == -1);
    needles_free(needles);
}

int main(void)
{
    RUN(texts_are_found_at_every_place);
    RUN(encodings_are_found);
    RUN(borders_hide_nothing);
    RUN(long_texts_are_found_by_their_start);
    return 0;
}
