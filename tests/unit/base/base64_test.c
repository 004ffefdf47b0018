// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/base64.h"
#include "check.h"

static void the_vectors_of_rfc_4648_hold(void)
{
    static const char *const vectors[][2] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
        cleanup_with(buf_done) struct buf text = BUF_INIT(64), bytes = BUF_INIT(64);

        CHECK(base64_encode(&text, vectors[i][0], strlen(vectors[i][0])) == 0);
        CHECK_TEXT(text.data, vectors[i][1]);
        CHECK(base64_decode(&bytes, text.data, text.len) == 0);
        CHECK(bytes.len == strlen(vectors[i][0]) &&
              memcmp(bytes.data, vectors[i][0], bytes.len) == 0);
    }
}

static void every_byte_survives_the_round_trip(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(1024), bytes = BUF_INIT(1024);
    unsigned char all[256];

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (unsigned char)i;
    for (size_t len = 0; len <= sizeof(all); len++) {
        buf_clear(&text);
        buf_clear(&bytes);
        CHECK(base64_encode(&text, all, len) == 0);
        CHECK(text.len == (len + 2) / 3 * 4);
        CHECK(base64_decode(&bytes, text.data, text.len) == 0);
        CHECK(bytes.len == len && memcmp(bytes.data, all, len) == 0, "(length %zu)", len);
    }
}

static void what_is_not_canonical_is_refused(void)
{
    static const char *const bad[] = { "Z",        "Zg",   "Zg=",     "Zg===", "====",
                                       "=g==",     "Z===", "Zh==",    "Zm9=",  "Zm9v\n",
                                       "Zg==Zg==", "Zm-_", "Zm9\x80", " m9v" };
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(64);

    CHECK(buf_add_str(&bytes, "kept") == 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK(base64_decode(&bytes, bad[i], strlen(bad[i])) == -EINVAL, "('%s')", bad[i]);
        CHECK(bytes.len == 4 && memcmp(bytes.data, "kept", 4) == 0, "(after '%s')", bad[i]);
    }
}

static void a_bad_character_is_found_wherever_it_is(void)
{
    static const char bad[] = { '=', '-', ' ', '\0', '\x7f', '\x80', '\xff' };
    char text[] = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNk";
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(64);

    for (size_t i = 0; i < sizeof(text) - 2; i++) {
        for (size_t j = 0; j < sizeof(bad); j++) {
            char good = text[i];

            text[i] = bad[j];
            CHECK(base64_decode(&bytes, text, sizeof(text) - 1) == -EINVAL, "(%x at %zu)",
                  (unsigned)bad[j], i);
            text[i] = good;
        }
    }
    CHECK(base64_decode(&bytes, text, sizeof(text) - 1) == 0);
    CHECK_TEXT(bytes.data, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcd");
}

static void a_full_buffer_is_an_error_not_an_overrun(void)
{
    cleanup_with(buf_done) struct buf small = BUF_INIT(3);

    CHECK(base64_encode(&small, "x", 1) == -ENOBUFS);
    CHECK(base64_decode(&small, "Zm9vYmFy", 8) == -ENOBUFS);
    CHECK(small.len == 0);
}

int main(void)
{
    RUN(the_vectors_of_rfc_4648_hold);
    RUN(every_byte_survives_the_round_trip);
    RUN(what_is_not_canonical_is_refused);
    RUN(a_bad_character_is_found_wherever_it_is);
    RUN(a_full_buffer_is_an_error_not_an_overrun);
    return 0;
}
