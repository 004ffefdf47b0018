// SPDX-License-Identifier: Apache-2.0
#include "base/text/hex.h"

#include <string.h>

static const char digits_of[] = "0123456789abcdef";

void hex_encode(const void *bytes, size_t len, char *ret)
{
    const unsigned char *from = bytes;

    for (size_t i = 0; i < len; i++) {
        ret[2 * i] = digits_of[from[i] >> 4];
        ret[2 * i + 1] = digits_of[from[i] & 15];
    }
    ret[2 * len] = '\0';
}

static unsigned digit_value(char digit)
{
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

bool hex_decode(const char *text, void *ret, size_t len)
{
    unsigned char *to = ret;

    if (!hex_is_text(text, 2 * len))
        return false;
    for (size_t i = 0; i < len; i++)
        to[i] = (unsigned char)(digit_value(text[2 * i]) << 4 | digit_value(text[2 * i + 1]));
    return true;
}

bool hex_is_text(const char *text, size_t digits)
{
    return strspn(text, digits_of) == digits && text[digits] == '\0';
}
