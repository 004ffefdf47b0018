/* Characters that would control a terminal instead of being shown on it. Inline, because err.c is
 * linked everywhere. */
#pragma once

#include <stddef.h>

/* Returns the length of the control character at the start of a text that ends with NUL, or 0:
 * C0, DEL, C1 (U+0080 to U+009F), and those that change the direction of text around them (U+200E,
 * U+200F, U+202A to U+202E, U+2066 to U+2069). */
static inline size_t text_control(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    if (at[0] == '\0')
        return 0;
    if (at[0] < ' ' || at[0] == 0x7f)
        return 1;
    if (at[0] == 0xc2)
        return at[1] >= 0x80 && at[1] <= 0x9f ? 2 : 0;
    if (at[0] != 0xe2 || (at[1] != 0x80 && at[1] != 0x81))
        return 0;
    if (at[1] == 0x80)
        return at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xaa && at[2] <= 0xae) ? 3 : 0;
    return at[2] >= 0xa6 && at[2] <= 0xa9 ? 3 : 0;
}

/* Replaces each control character by '?'. */
static inline void text_drop_controls(char *text)
{
    char *to = text;

    while (*text) {
        size_t len = text_control(text);

        if (len > 0) {
            *to++ = '?';
            text += len;
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
}
