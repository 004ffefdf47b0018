// SPDX-License-Identifier: Apache-2.0
#include "base/text/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define REPLACEMENT "\xef\xbf\xbd"

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t utf8_char(const char *data, size_t len)
{
    const unsigned char *at = (const unsigned char *)data;

    if (len == 0)
        return 0;
    if (at[0] < 0x80)
        return 1;
    if (at[0] < 0xc2 || at[0] > 0xf4 || len < 2 || !is_continuation(at[1]))
        return 0;
    if (at[0] < 0xe0)
        return 2;
    /* Excludes overlong encodings, surrogates and values above U+10FFFF. */
    if (len < 3 || !is_continuation(at[2]) || (at[0] == 0xe0 && at[1] < 0xa0) ||
        (at[0] == 0xed && at[1] > 0x9f))
        return 0;
    if (at[0] < 0xf0)
        return 3;
    if (len < 4 || !is_continuation(at[3]) || (at[0] == 0xf0 && at[1] < 0x90) ||
        (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return 4;
}

/* Returns whether one of eight bytes is 0 or above 0x7f; a false positive needs another such byte.
 */
static bool has_special(uint64_t eight)
{
    return (((eight - 0x0101010101010101ULL) & ~eight) | eight) & 0x8080808080808080ULL;
}

size_t utf8_valid(const char *data, size_t len)
{
    size_t at = 0;

    while (at < len) {
        uint64_t eight;
        size_t n;

        while (len - at >= sizeof(eight)) {
            memcpy(&eight, data + at, sizeof(eight));
            if (has_special(eight))
                break;
            at += sizeof(eight);
        }
        if (at == len)
            break;
        n = utf8_char(data + at, len - at);
        if (n == 0 || data[at] == '\0')
            break;
        at += n;
    }
    return at;
}

size_t utf8_cut(const char *data, size_t len, size_t max)
{
    size_t at;

    if (len <= max)
        return len;
    /* The last character that begins before the cut may extend beyond it. */
    for (at = max; at > 0 && max - at < 4 && is_continuation((unsigned char)data[at]); at--)
        continue;
    return utf8_char(data + at, len - at) > 0 ? at : max;
}

long utf8_add(struct buf *out, const char *data, size_t len)
{
    long replaced = 0;

    while (len > 0) {
        size_t good = utf8_valid(data, len);
        int r = buf_add(out, data, good);

        if (r == 0 && good < len)
            r = buf_add_str(out, REPLACEMENT);
        if (r < 0)
            return r;
        replaced += good < len;
        good += good < len;
        data += good;
        len -= good;
    }
    return replaced;
}

/* Returns the length of a character by its first byte; 0: invalid. */
static size_t char_length(unsigned char first)
{
    if (first < 0xc2 || first > 0xf4)
        return first < 0x80;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Returns how many bytes at the end may be the beginning of a character. */
static size_t incomplete_len(const char *data, size_t len)
{
    for (size_t n = 1; n < 4 && n <= len; n++) {
        unsigned char byte = (unsigned char)data[len - n];

        if (!is_continuation(byte))
            return char_length(byte) > n ? n : 0;
    }
    return 0;
}

int utf8_clean(struct utf8_cleaner *cleaner, const char *data, size_t len, struct buf *out)
{
    size_t left;
    long r = 0;

    /* A held character is completed, or found to be invalid, byte by byte. */
    while (r >= 0 && cleaner->len > 0 && len > 0) {
        cleaner->held[cleaner->len++] = *data++;
        len--;
        left = incomplete_len(cleaner->held, cleaner->len);
        r = utf8_add(out, cleaner->held, cleaner->len - left);
        memmove(cleaner->held, cleaner->held + cleaner->len - left, left);
        cleaner->len = left;
    }
    if (r < 0 || len == 0)
        return r < 0 ? (int)r : 0;
    left = incomplete_len(data, len);
    r = utf8_add(out, data, len - left);
    if (r < 0)
        return (int)r;
    memcpy(cleaner->held, data + len - left, left);
    cleaner->len = left;
    return 0;
}

int utf8_clean_end(struct utf8_cleaner *cleaner, struct buf *out)
{
    long r = utf8_add(out, cleaner->held, cleaner->len);

    cleaner->len = 0;
    return r < 0 ? (int)r : 0;
}
