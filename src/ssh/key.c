// SPDX-License-Identifier: Apache-2.0
#include "ssh/key.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/base64.h"
#include "ssh/ssh_internal.h"

enum { SIGNATURE_MAX = 1100, ED25519_BYTES = 32, POINT_MAX = 140 };

void ssh_key_done(struct ssh_key *key)
{
    EVP_PKEY_free(key->pkey); /* wipes it */
    *key = (struct ssh_key){ .pkey = NULL };
}

/* --- the public part of a key that OpenSSL has read --- */

static bool put_big_number(struct buf *out, const EVP_PKEY *pkey, const char *name)
{
    unsigned char bytes[SSH_BLOB_MAX];
    BIGNUM *number = NULL;
    bool is_put = EVP_PKEY_get_bn_param(pkey, name, &number) == 1 &&
                  BN_num_bytes(number) <= (int)sizeof(bytes) &&
                  ssh_put_number(out, bytes, (size_t)BN_bn2bin(number, bytes));

    BN_free(number);
    return is_put;
}

static bool put_curve(struct buf *out, const EVP_PKEY *pkey)
{
    static const char *const types[] = { "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
                                         "ecdsa-sha2-nistp521" };
    static const char *const groups[] = { "prime256v1", "secp384r1", "secp521r1" };
    unsigned char point[POINT_MAX];
    char group[32];
    size_t len;

    if (EVP_PKEY_get_group_name(pkey, group, sizeof(group), &len) != 1 ||
        EVP_PKEY_get_octet_string_param(pkey, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point),
                                        &len) != 1)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (strcmp(group, groups[i]) == 0)
            return ssh_put_text(out, types[i]) && ssh_put_text(out, strrchr(types[i], '-') + 1) &&
                   ssh_put_string(out, point, len);
    return false;
}

static int public_of(const EVP_PKEY *pkey, struct ssh_public *ret)
{
    cleanup_with(buf_done) struct buf blob = BUF_INIT(SSH_BLOB_MAX);
    unsigned char raw[ED25519_BYTES];
    size_t len = sizeof(raw);
    bool is_whole = false;

    if (EVP_PKEY_is_a(pkey, "ED25519"))
        is_whole = EVP_PKEY_get_raw_public_key(pkey, raw, &len) == 1 &&
                   ssh_put_text(&blob, "ssh-ed25519") && ssh_put_string(&blob, raw, len);
    else if (EVP_PKEY_is_a(pkey, "EC"))
        is_whole = put_curve(&blob, pkey);
    else if (EVP_PKEY_is_a(pkey, "RSA"))
        is_whole = ssh_put_text(&blob, "ssh-rsa") &&
                   put_big_number(&blob, pkey, OSSL_PKEY_PARAM_RSA_E) &&
                   put_big_number(&blob, pkey, OSSL_PKEY_PARAM_RSA_N);
    if (!is_whole)
        return -ENOTSUP;
    return ssh_public_init(ret, (struct ssh_bytes){ (const unsigned char *)blob.data, blob.len });
}

/* --- reading --- */

/* OpenSSL must not ask for a passphrase on a terminal. */
static int no_passphrase(char *buffer, int size, int for_writing, void *data)
{
    (void)buffer;
    (void)size;
    (void)for_writing;
    (void)data;
    return -1;
}

static EVP_PKEY *pem_read(const char *text, size_t len)
{
    BIO *bio = BIO_new_mem_buf(text, (int)len);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;

    BIO_free(bio);
    return pkey;
}

int ssh_key_read(struct ssh_key *ret, const char *text, size_t len, struct err *err)
{
    struct ssh_key key = { .pkey = NULL };
    int r = len > SSH_KEY_TEXT_MAX ? -EBADMSG : openssh_key_read(text, len, &key.pkey);

    if (r == -ENOENT) { /* it has another format */
        key.pkey = pem_read(text, len);
        r = key.pkey ? 0 : -EBADMSG;
    }
    if (r == 0)
        r = public_of(key.pkey, &key.public);
    if (r == 0) {
        *ret = key;
        return 0;
    }
    ssh_key_done(&key);
    if (r == -EACCES)
        return err_set(err, ERR_INVALID,
                       "the key has a passphrase; remove it from a copy with 'ssh-keygen -p'");
    if (r == -ENOTSUP)
        return err_set(err, ERR_INVALID, "the key is neither Ed25519, ECDSA nor RSA of 2048 bits");
    return err_set(err, ERR_INVALID,
                   "this is no private key of SSH: expected what ssh-keygen "
                   "writes, or PEM without a passphrase");
}

/* --- signing --- */

static int ecdsa_put(struct buf *out, const unsigned char *der, size_t len)
{
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)len);
    cleanup_with(buf_done) struct buf numbers = BUF_INIT(SIGNATURE_MAX);
    unsigned char r[80], s[80];
    bool is_put = pair && BN_num_bytes(ECDSA_SIG_get0_r(pair)) <= (int)sizeof(r) &&
                  BN_num_bytes(ECDSA_SIG_get0_s(pair)) <= (int)sizeof(s) &&
                  ssh_put_number(&numbers, r, (size_t)BN_bn2bin(ECDSA_SIG_get0_r(pair), r)) &&
                  ssh_put_number(&numbers, s, (size_t)BN_bn2bin(ECDSA_SIG_get0_s(pair), s)) &&
                  ssh_put_string(out, numbers.data, numbers.len);

    ECDSA_SIG_free(pair);
    return is_put ? 0 : -EIO;
}

static int raw_sign(const struct ssh_key *key, const char *digest, struct ssh_bytes data,
                    unsigned char *ret, size_t *ret_len)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_signed =
        context && EVP_DigestSignInit_ex(context, NULL, digest, NULL, NULL, key->pkey, NULL) == 1 &&
        EVP_DigestSign(context, ret, ret_len, data.data, data.len) == 1;

    EVP_MD_CTX_free(context);
    return is_signed ? 0 : -EIO;
}

int ssh_key_sign(const struct ssh_key *key, struct ssh_bytes data, uint32_t flags, struct buf *out)
{
    struct ssh_reader reader = ssh_reader_of(key->public.blob, key->public.len);
    struct ssh_bytes type = ssh_get_string(&reader);
    const struct ssh_curve *curve = ssh_curve_find(type);
    cleanup_with(buf_done) struct buf blob = BUF_INIT(SIGNATURE_MAX + SSH_TYPE_MAX + 8);
    const char *digest = curve ? curve->digest : NULL;
    unsigned char raw[SIGNATURE_MAX];
    size_t len = sizeof(raw);
    int r;

    if (ssh_bytes_are(type, "ssh-rsa")) {
        bool is_short = (flags & SSH_RSA_SHA2_256) && !(flags & SSH_RSA_SHA2_512);
        const char *name = is_short ? "rsa-sha2-256" : "rsa-sha2-512";

        digest = is_short ? "SHA256" : "SHA512";
        type = (struct ssh_bytes){ (const unsigned char *)name, strlen(name) };
    }
    r = raw_sign(key, digest, data, raw, &len);
    if (r == 0 && !ssh_put_string(&blob, type.data, type.len))
        r = -ENOBUFS;
    if (r == 0)
        r = curve ? ecdsa_put(&blob, raw, len) : ssh_put_string(&blob, raw, len) ? 0 : -ENOBUFS;
    if (r == 0 && !ssh_put_string(out, blob.data, blob.len))
        r = -ENOBUFS;
    return r;
}
