// SPDX-License-Identifier: Apache-2.0
/* The file is base64 between two lines. Decoded, it is "openssh-key-v1" and a NUL; strings: cipher,
 * key derivation and its options; u32 number of keys; string: the public key; string: the private
 * part. That is, without a cipher, twice the same random u32, the type, numbers that depend on the
 * type, a comment, and bytes 1, 2, 3... up to a multiple of 8. */
#include <errno.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/base64.h"
#include "ssh/key.h"
#include "ssh/ssh_internal.h"

#define BEGIN_LINE "-----BEGIN OPENSSH PRIVATE KEY-----"
#define END_LINE "-----END OPENSSH PRIVATE KEY-----"
#define MAGIC "openssh-key-v1"

enum { ED25519_SEED = 32, ED25519_PRIVATE = 64, NUMBERS_MAX = 6 };

static void buf_wipe(struct buf *buf)
{
    if (buf->data)
        OPENSSL_cleanse(buf->data, buf->cap);
    buf_done(buf);
}

/* Decodes what is between the two lines. */
static int armour_decode(const char *text, size_t len, struct buf *ret)
{
    cleanup_with(buf_wipe) struct buf joined = BUF_INIT(SSH_KEY_TEXT_MAX);
    const char *start = memmem(text, len, BEGIN_LINE, strlen(BEGIN_LINE)), *end;

    if (!start)
        return -ENOENT;
    start += strlen(BEGIN_LINE);
    end = memmem(start, len - (size_t)(start - text), END_LINE, strlen(END_LINE));
    if (!end || buf_reserve(&joined, (size_t)(end - start)) < 0 ||
        buf_reserve(ret, (size_t)(end - start)) < 0) /* once: nothing is left unwiped by growing */
        return -EBADMSG;
    for (const char *each = start; each < end; each++)
        if (!strchr(" \t\r\n", *each))
            (void)buf_add(&joined, each, 1);
    return base64_decode(ret, joined.data ? joined.data : "", joined.len) < 0 ? -EBADMSG : 0;
}

static int ed25519_read(struct ssh_reader *reader, EVP_PKEY **ret)
{
    struct ssh_bytes private;

    (void)ssh_get_string(reader); /* the public part */
    private = ssh_get_string(reader);
    if (private.len != ED25519_PRIVATE)
        return -EBADMSG;
    *ret = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, private.data, ED25519_SEED);
    return *ret ? 0 : -EBADMSG;
}

static int ecdsa_read(const struct ssh_curve *curve, struct ssh_reader *reader, EVP_PKEY **ret)
{
    struct ssh_bytes name = ssh_get_string(reader), point = ssh_get_string(reader);
    struct ssh_bytes scalar = ssh_get_number(reader);
    OSSL_PARAM_BLD *builder;
    BIGNUM *number;

    if (!reader->ok || !ssh_bytes_are(name, curve->name) || scalar.len == 0)
        return -EBADMSG;
    builder = OSSL_PARAM_BLD_new();
    number = BN_secure_new();
    *ret = ssh_pkey_build(
        "EC", EVP_PKEY_KEYPAIR, builder,
        BN_bin2bn(scalar.data, (int)scalar.len, number) &&
            OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, curve->group, 0) &&
            OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point.data,
                                             point.len) &&
            OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, number));
    BN_clear_free(number);
    return *ret ? 0 : -EBADMSG;
}

static int rsa_read(struct ssh_reader *reader, EVP_PKEY **ret)
{
    /* In the order of the file; the coefficient is computed from the factors anew. */
    static const char *const names[NUMBERS_MAX] = {
        OSSL_PKEY_PARAM_RSA_N,       OSSL_PKEY_PARAM_RSA_E,       OSSL_PKEY_PARAM_RSA_D, NULL,
        OSSL_PKEY_PARAM_RSA_FACTOR1, OSSL_PKEY_PARAM_RSA_FACTOR2,
    };
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    BIGNUM *numbers[NUMBERS_MAX] = { NULL };
    bool is_whole = true;

    for (size_t i = 0; i < NUMBERS_MAX; i++) {
        struct ssh_bytes number = ssh_get_number(reader);

        if (!names[i])
            continue;
        numbers[i] = number.len > 0 && number.len <= SSH_BLOB_MAX
                         ? BN_bin2bn(number.data, (int)number.len, NULL)
                         : NULL;
        is_whole = is_whole && numbers[i] && OSSL_PARAM_BLD_push_BN(builder, names[i], numbers[i]);
    }
    *ret = ssh_pkey_build("RSA", EVP_PKEY_KEYPAIR, builder, is_whole && reader->ok);
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        BN_clear_free(numbers[i]);
    return *ret ? 0 : -EBADMSG;
}

static int private_read(struct ssh_bytes bytes, EVP_PKEY **ret)
{
    struct ssh_reader reader = ssh_reader_of(bytes.data, bytes.len);
    uint32_t first = ssh_get_u32(&reader), second = ssh_get_u32(&reader);
    struct ssh_bytes type = ssh_get_string(&reader);
    const struct ssh_curve *curve = ssh_curve_find(type);

    if (!reader.ok || first != second)
        return -EBADMSG;
    if (ssh_bytes_are(type, "ssh-ed25519"))
        return ed25519_read(&reader, ret);
    if (ssh_bytes_are(type, "ssh-rsa"))
        return rsa_read(&reader, ret);
    return curve ? ecdsa_read(curve, &reader, ret) : -ENOTSUP;
}

int openssh_key_read(const char *text, size_t len, EVP_PKEY **ret)
{
    cleanup_with(buf_wipe) struct buf file = BUF_INIT(SSH_KEY_TEXT_MAX);
    int r = armour_decode(text, len, &file);
    struct ssh_reader reader;
    struct ssh_bytes cipher;

    if (r < 0)
        return r;
    if (file.len < sizeof(MAGIC) || memcmp(file.data, MAGIC, sizeof(MAGIC)) != 0)
        return -EBADMSG;
    reader = ssh_reader_of(file.data + sizeof(MAGIC), file.len - sizeof(MAGIC));
    cipher = ssh_get_string(&reader);
    (void)ssh_get_string(&reader); /* key derivation */
    (void)ssh_get_string(&reader);
    if (ssh_get_u32(&reader) != 1)
        return -EBADMSG;
    (void)ssh_get_string(&reader); /* the public key */
    if (!ssh_bytes_are(cipher, "none"))
        return reader.ok ? -EACCES : -EBADMSG;
    return private_read(ssh_get_string(&reader), ret);
}
