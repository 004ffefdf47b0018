// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"
#include "base/text/hex.h"
#include "check.h"

static void bytes_become_digits(void)
{
    char text[HEX_SIZE(4)];

    hex_encode("\x00\x0f\xa5\xff", 4, text);
    CHECK_TEXT(text, "000fa5ff");
    hex_encode("", 0, text);
    CHECK_TEXT(text, "");
}

static void digits_are_told_from_other_text(void)
{
    CHECK(hex_is_text("00ff", 4));
    CHECK(!hex_is_text("00ff", 3) && !hex_is_text("00ff", 5));
    CHECK(!hex_is_text("00FF", 4) && !hex_is_text("00fg", 4) && !hex_is_text("", 4));
    CHECK(hex_is_text("", 0));
}

static void digits_become_bytes(void)
{
    unsigned char bytes[4];

    CHECK(hex_decode("000fa5ff", bytes, 4) && memcmp(bytes, "\x00\x0f\xa5\xff", 4) == 0);
    CHECK(!hex_decode("000fa5f", bytes, 4) && !hex_decode("000fa5ff0", bytes, 4));
    CHECK(!hex_decode("000fA5ff", bytes, 4) && !hex_decode("000fa5f ", bytes, 4));
    CHECK(hex_decode("", bytes, 0));
}

static void random_text_differs_each_time(void)
{
    char one[HEX_SIZE(16)], other[HEX_SIZE(16)], large[HEX_SIZE(65)];

    CHECK(random_hex(one, 16) == 0 && random_hex(other, 16) == 0);
    CHECK(hex_is_text(one, 32) && hex_is_text(other, 32));
    CHECK(strcmp(one, other) != 0);
    CHECK(random_hex(large, 65) < 0, "(more than the function has room for)");
    CHECK(random_u64() != random_u64());
}

static void large_buffers_are_filled_to_their_end(void)
{
    static unsigned char bytes[1024 * 1024];
    size_t zeros = 0;

    CHECK(random_bytes(bytes, sizeof(bytes)) == 0);
    for (size_t i = 0; i < sizeof(bytes); i++)
        zeros += bytes[i] == 0;
    CHECK(zeros > 3000 && zeros < 5500, "(%zu)", zeros);
}

int main(void)
{
    RUN(bytes_become_digits);
    RUN(digits_are_told_from_other_text);
    RUN(digits_become_bytes);
    RUN(random_text_differs_each_time);
    RUN(large_buffers_are_filled_to_their_end);
    return 0;
}
