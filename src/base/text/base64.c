// SPDX-License-Identifier: Apache-2.0
#include "base/text/base64.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The value of each character plus one; 0: invalid. A table, because the output of all processes
 * passes through here. */
static const unsigned char values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

static void encode_tail(char out[4], const unsigned char *in, size_t len)
{
    uint32_t bits = (uint32_t)in[0] << 16 | (len > 1 ? (uint32_t)in[1] << 8 : 0);

    out[0] = alphabet[bits >> 18];
    out[1] = alphabet[bits >> 12 & 63];
    out[2] = '=';
    out[3] = '=';
    if (len > 1)
        out[2] = alphabet[bits >> 6 & 63];
}

int base64_encode(struct buf *out, const void *data, size_t len)
{
    const unsigned char *in = data;
    char *next;
    int r = buf_reserve(out, (len + 2) / 3 * 4);

    if (r < 0)
        return r;
    next = out->data + out->len;
    for (; len >= 3; len -= 3, in += 3, next += 4) {
        uint32_t bits = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];

        next[0] = alphabet[bits >> 18];
        next[1] = alphabet[bits >> 12 & 63];
        next[2] = alphabet[bits >> 6 & 63];
        next[3] = alphabet[bits & 63];
    }
    if (len > 0) {
        encode_tail(next, in, len);
        next += 4;
    }
    out->len = (size_t)(next - out->data);
    out->data[out->len] = '\0';
    return 0;
}

/* Decodes four characters without padding to 24 bits. An invalid one sets high bits in *bad. */
static inline uint32_t decode_group(const unsigned char *in, uint32_t *bad)
{
    uint32_t a = values[in[0]] - 1U, b = values[in[1]] - 1U, c = values[in[2]] - 1U,
             d = values[in[3]] - 1U;

    *bad |= a | b | c | d;
    return a << 18 | b << 12 | c << 6 | d;
}

static inline bool is_bad(uint32_t bad)
{
    return bad > 63;
}

static void put_group(unsigned char *out, uint32_t bits)
{
    out[0] = (unsigned char)(bits >> 16);
    out[1] = (unsigned char)(bits >> 8);
    out[2] = (unsigned char)bits;
}

/* Decodes the last four characters. Returns the number of bytes or -EINVAL. The bits that padding
 * cuts off must be 0, so that the encoding is unique. */
static int decode_tail(const unsigned char *in, unsigned char *out)
{
    int padding = (in[3] == '=') + (in[3] == '=' && in[2] == '=');
    const unsigned char filled[4] = {
        in[0],
        in[1],
        padding > 1 ? 'A' : in[2],
        padding > 0 ? 'A' : in[3],
    };
    uint32_t bad = 0;

    put_group(out, decode_group(filled, &bad));
    if (is_bad(bad) || (padding > 0 && out[2]) || (padding > 1 && out[1]))
        return -EINVAL;
    return 3 - padding;
}

int base64_decode(struct buf *out, const char *text, size_t len)
{
    const unsigned char *in = (const unsigned char *)text;
    unsigned char *next;
    uint32_t bad = 0;
    int r;

    if (len % 4 != 0)
        return -EINVAL;
    r = buf_reserve(out, len / 4 * 3);
    if (r < 0 || len == 0)
        return r;
    next = (unsigned char *)out->data + out->len;
    /* Decodes two groups into one store; its last two bytes are overwritten by the next groups. */
    for (; len > 8; len -= 8, in += 8, next += 6) {
        uint64_t first = decode_group(in, &bad), second = decode_group(in + 4, &bad);
        uint64_t bytes = htobe64(first << 40 | second << 16);

        memcpy(next, &bytes, sizeof(bytes));
    }
    for (; len > 4; len -= 4, in += 4, next += 3)
        put_group(next, decode_group(in, &bad));
    r = decode_tail(in, next);
    if (is_bad(bad) || r < 0)
        return -EINVAL;
    out->len = (size_t)(next + r - (unsigned char *)out->data);
    out->data[out->len] = '\0';
    return 0;
}
