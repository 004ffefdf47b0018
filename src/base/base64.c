// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <errno.h>
#include <stdint.h>

#include "base/buf.h"

static const char alphabet[64] __attribute__((nonstring)) =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode_group(char out[4], const unsigned char *in, size_t len)
{
    uint32_t bits = (uint32_t)in[0] << 16 | (len > 1 ? (uint32_t)in[1] << 8 : 0) |
                    (len > 2 ? (uint32_t)in[2] : 0);

    out[0] = alphabet[bits >> 18];
    out[1] = alphabet[bits >> 12 & 63];
    out[2] = '=';
    out[3] = '=';
    if (len > 1)
        out[2] = alphabet[bits >> 6 & 63];
    if (len > 2)
        out[3] = alphabet[bits & 63];
}

int base64_encode(struct buf *out, const void *data, size_t len)
{
    const unsigned char *in = data;
    char *next;
    int r = buf_reserve(out, (len + 2) / 3 * 4);

    if (r < 0)
        return r;
    next = out->data + out->len;
    for (size_t i = 0; i < len; i += 3, next += 4)
        encode_group(next, in + i, len - i);
    out->len = (size_t)(next - out->data);
    out->data[out->len] = '\0';
    return 0;
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

/* Four characters to one to three bytes; padding only where `last`. */
static int decode_group(const char *in, int last, unsigned char out[3])
{
    int padding = last ? (in[3] == '=') + (in[3] == '=' && in[2] == '=') : 0;
    uint32_t bits = 0;

    for (int i = 0; i < 4 - padding; i++) {
        int value = value_of(in[i]);

        if (value < 0)
            return -EINVAL;
        bits |= (uint32_t)value << (18 - 6 * i);
    }
    if ((padding == 1 && bits & 0xff) || (padding == 2 && bits & 0xffff))
        return -EINVAL;
    out[0] = (unsigned char)(bits >> 16);
    out[1] = (unsigned char)(bits >> 8);
    out[2] = (unsigned char)bits;
    return 3 - padding;
}

int base64_decode(struct buf *out, const char *text, size_t len)
{
    size_t start = out->len;
    int r;

    if (len % 4 != 0)
        return -EINVAL;
    r = buf_reserve(out, len / 4 * 3);
    if (r < 0)
        return r;
    for (size_t i = 0; i < len; i += 4) {
        unsigned char group[3];
        int bytes = decode_group(text + i, i + 4 == len, group);

        if (bytes < 0) {
            out->len = start;
            return bytes;
        }
        (void)buf_add(out, group, (size_t)bytes);
    }
    return 0;
}
