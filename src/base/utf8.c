// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

static const char replacement[] = "\xEF\xBF\xBD";

static bool is_more(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* How many bytes a character has that begins so; 0: none does. */
static size_t length_of(unsigned char first)
{
    if (first < 0x80)
        return first > 0;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* Overlong forms, surrogates and what is beyond Unicode are told by the second byte. */
static bool is_second(unsigned char first, unsigned char second)
{
    if (!is_more(second))
        return false;
    if (first == 0xE0)
        return second >= 0xA0;
    if (first == 0xED)
        return second < 0xA0;
    if (first == 0xF0)
        return second >= 0x90;
    return first != 0xF4 || second < 0x90;
}

/* The character at the front: its length, 0 when it is not whole, -1 when it is none. */
static int look(const char *data, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)data;
    size_t wanted = length_of(bytes[0]);

    if (wanted == 0)
        return -1;
    for (size_t i = 1; i < wanted; i++) {
        if (i == len)
            return 0;
        if (i == 1 ? !is_second(bytes[0], bytes[1]) : !is_more(bytes[i]))
            return -1;
    }
    return (int)wanted;
}

/* What is good from the front on. */
static size_t good_run(const char *data, size_t len)
{
    size_t at = 0;

    while (at < len) {
        int n = look(data + at, len - at);

        if (n <= 0)
            break;
        at += (size_t)n;
    }
    return at;
}

static int add_all(const char *data, size_t len, size_t *ret_left, struct buf *out)
{
    size_t at = 0;
    int r = 0;

    while (r == 0 && at < len) {
        size_t good = good_run(data + at, len - at);

        r = buf_add(out, data + at, good);
        at += good;
        if (r < 0 || at == len || look(data + at, len - at) == 0)
            break;
        r = buf_add(out, replacement, strlen(replacement));
        at++;
    }
    *ret_left = len - at;
    return r;
}

int utf8_clean(struct utf8_cleaner *cleaner, const char *data, size_t len, struct buf *out)
{
    size_t left = 0;
    int r = 0;

    /* A held beginning becomes whole, or is seen to be none, byte by byte. */
    while (r == 0 && cleaner->len > 0 && len > 0) {
        size_t had = cleaner->len;

        cleaner->held[cleaner->len++] = *data++;
        len--;
        r = add_all(cleaner->held, had + 1, &left, out);
        memmove(cleaner->held, cleaner->held + had + 1 - left, left);
        cleaner->len = left;
    }
    if (r < 0 || len == 0)
        return r;
    r = add_all(data, len, &left, out);
    if (r == 0) {
        memcpy(cleaner->held, data + len - left, left);
        cleaner->len = left;
    }
    return r;
}

int utf8_clean_end(struct utf8_cleaner *cleaner, struct buf *out)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < cleaner->len; i++)
        r = buf_add(out, replacement, strlen(replacement));
    cleaner->len = 0;
    return r;
}

size_t utf8_boundary(const char *text, size_t len, size_t at)
{
    if (at >= len)
        return len;
    while (at > 0 && is_more((unsigned char)text[at]))
        at--;
    return at;
}
