// SPDX-License-Identifier: Apache-2.0
/* JKS of version 2: a magic number, the version and the number of entries, the entries, and SHA-1
 * of the password in UTF-16, a constant and all that is before. Numbers are big-endian. */
#include "guest/keystore.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/base64.h"

#define PEM_BEGIN "-----BEGIN CERTIFICATE-----"
#define PEM_END "-----END CERTIFICATE-----"
#define ALIAS "holt"
#define TYPE "X.509"

enum {
    MAGIC = 0xfeedfeed,
    VERSION = 2,
    HEAD_BYTES = 12,
    TRUSTED_CERTIFICATE = 2,
    DIGEST_BYTES = 20,
    BLOCK_BYTES = 64,
    DER_MAX = 16 * 1024,
};

/* "changeit", which protects nothing: the certificates are public. */
static const unsigned char password[] = { 0, 'c', 0, 'h', 0, 'a', 0, 'n',
                                          0, 'g', 0, 'e', 0, 'i', 0, 't' };
static const char constant[] = "Mighty Aphrodite";

/* --- SHA-1 ------------------------------------------------------------------------------------ */

struct sha1 {
    uint32_t state[5];
    uint64_t len;
    unsigned char block[BLOCK_BYTES];
};

static uint32_t rotated(uint32_t value, unsigned bits)
{
    return (value << bits) | (value >> (32 - bits));
}

static uint32_t number_at(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void number_to(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* The function and constant of a round (FIPS 180-4, 4.1.1 and 4.2.1). */
static uint32_t round_term(unsigned i, uint32_t b, uint32_t c, uint32_t d)
{
    if (i < 20)
        return ((b & c) | (~b & d)) + 0x5a827999;
    if (i < 40)
        return (b ^ c ^ d) + 0x6ed9eba1;
    if (i < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void sha1_block(struct sha1 *sha1)
{
    uint32_t w[80], v[5];

    memcpy(v, sha1->state, sizeof(v));
    for (unsigned i = 0; i < 80; i++) {
        uint32_t next;

        w[i] = i < 16 ? number_at(sha1->block + (size_t)4 * i)
                      : rotated(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        next = rotated(v[0], 5) + round_term(i, v[1], v[2], v[3]) + v[4] + w[i];
        v[4] = v[3];
        v[3] = v[2];
        v[2] = rotated(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (unsigned i = 0; i < 5; i++)
        sha1->state[i] += v[i];
}

static void sha1_add(struct sha1 *sha1, const void *data, size_t len)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < len; i++) {
        sha1->block[sha1->len++ % BLOCK_BYTES] = bytes[i];
        if (sha1->len % BLOCK_BYTES == 0)
            sha1_block(sha1);
    }
}

static void sha1_end(struct sha1 *sha1, unsigned char ret[static DIGEST_BYTES])
{
    const unsigned char one = 0x80, zero = 0;
    unsigned char bits[8];

    number_to(bits, (uint32_t)(sha1->len >> 29));
    number_to(bits + 4, (uint32_t)(sha1->len << 3));
    sha1_add(sha1, &one, 1);
    while (sha1->len % BLOCK_BYTES != BLOCK_BYTES - sizeof(bits))
        sha1_add(sha1, &zero, 1);
    sha1_add(sha1, bits, sizeof(bits));
    for (size_t i = 0; i < 5; i++)
        number_to(ret + 4 * i, sha1->state[i]);
}

/* --- the keystore ----------------------------------------------------------------------------- */

/* Decodes the first certificate of a PEM. */
static int der_read(const char *pem, struct buf *ret)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT((size_t)2 * DER_MAX);
    const char *at = strstr(pem, PEM_BEGIN);
    const char *end = at ? strstr(at, PEM_END) : NULL;
    int r = end ? 0 : -EINVAL;

    for (at = end ? at + strlen(PEM_BEGIN) : NULL; r == 0 && at < end; at++)
        if (*at != '\n' && *at != '\r')
            r = buf_add(&text, at, 1);
    return r == 0 ? base64_decode(ret, text.data ? text.data : "", text.len) : r;
}

static int number_add(struct buf *out, uint32_t value)
{
    unsigned char bytes[4];

    number_to(bytes, value);
    return buf_add(out, bytes, sizeof(bytes));
}

/* Texts have their length in two bytes in front. */
static int text_add(struct buf *out, const char *text)
{
    const unsigned char len[] = { 0, (unsigned char)strlen(text) };
    int r = buf_add(out, len, sizeof(len));

    return r == 0 ? buf_add_str(out, text) : r;
}

static int entry_add(struct buf *out, const struct buf *der)
{
    int r = number_add(out, TRUSTED_CERTIFICATE);

    if (r == 0)
        r = text_add(out, ALIAS);
    for (int i = 0; r == 0 && i < 2; i++) /* when it was added: never mind */
        r = number_add(out, 0);
    if (r == 0)
        r = text_add(out, TYPE);
    if (r == 0)
        r = number_add(out, (uint32_t)der->len);
    return r == 0 ? buf_add(out, der->data, der->len) : r;
}

static int digest_add(struct buf *out)
{
    struct sha1 sha1 = { .state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
    unsigned char digest[DIGEST_BYTES];

    sha1_add(&sha1, password, sizeof(password));
    sha1_add(&sha1, constant, strlen(constant));
    sha1_add(&sha1, out->data, out->len);
    sha1_end(&sha1, digest);
    return buf_add(out, digest, sizeof(digest));
}

int keystore_add(const struct buf *store, const char *pem, struct buf *ret)
{
    cleanup_with(buf_done) struct buf der = BUF_INIT(DER_MAX);
    const unsigned char *head = (const unsigned char *)store->data;
    int r = der_read(pem, &der);

    if (r < 0 || store->len < HEAD_BYTES + DIGEST_BYTES || number_at(head) != MAGIC ||
        number_at(head + 4) != VERSION)
        return -EINVAL;
    r = buf_add(ret, head, HEAD_BYTES - 4);
    if (r == 0)
        r = number_add(ret, number_at(head + 8) + 1);
    if (r == 0)
        r = buf_add(ret, head + HEAD_BYTES, store->len - HEAD_BYTES - DIGEST_BYTES);
    if (r == 0)
        r = entry_add(ret, &der);
    return r == 0 ? digest_add(ret) : r;
}
