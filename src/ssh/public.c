// SPDX-License-Identifier: Apache-2.0
#include "ssh/public.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/base64.h"
#include "ssh/ssh_internal.h"

enum { ED25519_BYTES = 32, RSA_BYTES_MIN = 256, RSA_BYTES_MAX = 1024, LINE_MAX_BYTES = 8192 };

static const struct ssh_curve curves[] = {
    { "ecdsa-sha2-nistp256", "nistp256", "P-256", "SHA256" },
    { "ecdsa-sha2-nistp384", "nistp384", "P-384", "SHA384" },
    { "ecdsa-sha2-nistp521", "nistp521", "P-521", "SHA512" },
};

const struct ssh_curve *ssh_curve_find(struct ssh_bytes type)
{
    for (size_t i = 0; i < ARRAY_SIZE(curves); i++)
        if (ssh_bytes_are(type, curves[i].type))
            return &curves[i];
    return NULL;
}

static void pkey_free(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

EVP_PKEY *ssh_pkey_build(const char *kind, int selection, OSSL_PARAM_BLD *builder, bool is_whole)
{
    OSSL_PARAM *params = is_whole ? OSSL_PARAM_BLD_to_param(builder) : NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, kind, NULL);
    EVP_PKEY *key = NULL;

    if (!params || !context || EVP_PKEY_fromdata_init(context) <= 0 ||
        EVP_PKEY_fromdata(context, &key, selection, params) <= 0)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    return key;
}

static EVP_PKEY *rsa_read(struct ssh_reader *reader)
{
    struct ssh_bytes e = ssh_get_number(reader), n = ssh_get_number(reader);
    OSSL_PARAM_BLD *builder;
    BIGNUM *number_n, *number_e;
    EVP_PKEY *key;

    if (!ssh_reader_is_done(reader) || e.len == 0 || e.len > 8 || n.len < RSA_BYTES_MIN ||
        n.len > RSA_BYTES_MAX)
        return NULL;
    builder = OSSL_PARAM_BLD_new();
    number_n = BN_bin2bn(n.data, (int)n.len, NULL);
    number_e = BN_bin2bn(e.data, (int)e.len, NULL);
    key = ssh_pkey_build("RSA", EVP_PKEY_PUBLIC_KEY, builder,
                         number_n && number_e &&
                             OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, number_n) &&
                             OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, number_e));
    BN_free(number_n);
    BN_free(number_e);
    return key;
}

static EVP_PKEY *ecdsa_read(const struct ssh_curve *curve, struct ssh_reader *reader)
{
    struct ssh_bytes name = ssh_get_string(reader), point = ssh_get_string(reader);
    OSSL_PARAM_BLD *builder;

    if (!ssh_reader_is_done(reader) || !ssh_bytes_are(name, curve->name) || point.len == 0)
        return NULL;
    builder = OSSL_PARAM_BLD_new();
    return ssh_pkey_build(
        "EC", EVP_PKEY_PUBLIC_KEY, builder,
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, curve->group, 0) &&
            OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point.data,
                                             point.len));
}

/* Reads a blob. Returns 0, -ENOTSUP or -EBADMSG. */
static int blob_read(struct ssh_bytes blob, EVP_PKEY **ret)
{
    struct ssh_reader reader = ssh_reader_of(blob.data, blob.len);
    struct ssh_bytes type = ssh_get_string(&reader), raw;
    const struct ssh_curve *curve = ssh_curve_find(type);

    if (ssh_bytes_are(type, "ssh-ed25519")) {
        raw = ssh_get_string(&reader);
        *ret = ssh_reader_is_done(&reader) && raw.len == ED25519_BYTES
                   ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw.data, raw.len)
                   : NULL;
    } else if (curve) {
        *ret = ecdsa_read(curve, &reader);
    } else if (ssh_bytes_are(type, "ssh-rsa")) {
        *ret = rsa_read(&reader);
    } else {
        return reader.ok ? -ENOTSUP : -EBADMSG;
    }
    return *ret ? 0 : -EBADMSG;
}

int ssh_public_init(struct ssh_public *ret, struct ssh_bytes blob)
{
    cleanup_with(pkey_free) EVP_PKEY *key = NULL;
    int r = blob.len > SSH_BLOB_MAX ? -EBADMSG : blob_read(blob, &key);

    if (r < 0)
        return r;
    memcpy(ret->blob, blob.data, blob.len);
    ret->len = blob.len;
    return 0;
}

/* Returns the next word of a line, and moves the line behind it. */
static struct ssh_bytes word_next(const char **line)
{
    const char *start = *line + strspn(*line, " \t");
    size_t len = strcspn(start, " \t\r\n");

    *line = start + len;
    return (struct ssh_bytes){ .data = (const unsigned char *)start, .len = len };
}

static bool is_type(struct ssh_bytes word)
{
    return ssh_bytes_are(word, "ssh-ed25519") || ssh_bytes_are(word, "ssh-rsa") ||
           ssh_curve_find(word) != NULL;
}

int ssh_public_parse(const char *line, struct ssh_public *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf blob = BUF_INIT(LINE_MAX_BYTES);
    const char *rest = line;
    struct ssh_bytes type = word_next(&rest), text, inner;
    struct ssh_reader reader;

    if (!is_type(type))
        type = word_next(&rest);
    text = word_next(&rest);
    if (!is_type(type) || text.len == 0)
        return err_set(err, ERR_INVALID,
                       "'%.60s' is no public key of SSH: expected 'ssh-ed25519 AAAA...', "
                       "'ecdsa-sha2-nistp256 AAAA...' or 'ssh-rsa AAAA...'",
                       line);
    if (base64_decode(&blob, (const char *)text.data, text.len) < 0)
        return err_set(err, ERR_INVALID, "the public key '%.60s' is no valid base64", line);
    reader = ssh_reader_of(blob.data, blob.len);
    inner = ssh_get_string(&reader);
    if (!ssh_bytes_equal(inner, type) ||
        ssh_public_init(ret, (struct ssh_bytes){ (const unsigned char *)blob.data, blob.len }) < 0)
        return err_set(err, ERR_INVALID, "the public key '%.60s' is malformed", line);
    return 0;
}

int ssh_public_text(const struct ssh_public *key, char *ret, size_t size)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(size - 1);
    struct ssh_reader reader = ssh_reader_of(key->blob, key->len);
    struct ssh_bytes type = ssh_get_string(&reader);

    if (buf_add(&text, type.data, type.len) < 0 || buf_add_str(&text, " ") < 0 ||
        base64_encode(&text, key->blob, key->len) < 0)
        return -ENOSPC;
    memcpy(ret, text.data, text.len + 1);
    return 0;
}

bool ssh_public_equals(const struct ssh_public *key, struct ssh_bytes blob)
{
    return ssh_bytes_equal((struct ssh_bytes){ key->blob, key->len }, blob);
}

/* --- signatures --- */

/* ECDSA signatures are two numbers in SSH, and DER in OpenSSL. The caller frees *ret_der with
 * OPENSSL_free. */
static bool ecdsa_to_der(struct ssh_bytes signature, unsigned char **ret_der, size_t *ret_len)
{
    struct ssh_reader reader = ssh_reader_of(signature.data, signature.len);
    struct ssh_bytes r = ssh_get_number(&reader), s = ssh_get_number(&reader);
    ECDSA_SIG *pair;
    int len;

    if (!ssh_reader_is_done(&reader) || r.len > 66 || s.len > 66)
        return false;
    pair = ECDSA_SIG_new();
    (void)ECDSA_SIG_set0(pair, BN_bin2bn(r.data, (int)r.len, NULL),
                         BN_bin2bn(s.data, (int)s.len, NULL));
    len = i2d_ECDSA_SIG(pair, ret_der);
    ECDSA_SIG_free(pair);
    *ret_len = len > 0 ? (size_t)len : 0;
    return len > 0;
}

static bool signature_check(EVP_PKEY *key, const char *digest, struct ssh_bytes data,
                            struct ssh_bytes raw)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_valid = context &&
                    EVP_DigestVerifyInit_ex(context, NULL, digest, NULL, NULL, key, NULL) == 1 &&
                    EVP_DigestVerify(context, raw.data, raw.len, data.data, data.len) == 1;

    EVP_MD_CTX_free(context);
    return is_valid;
}

bool ssh_public_verify(const struct ssh_public *key, struct ssh_bytes data,
                       struct ssh_bytes signature)
{
    cleanup_with(pkey_free) EVP_PKEY *pkey = NULL;
    struct ssh_reader key_reader = ssh_reader_of(key->blob, key->len);
    struct ssh_reader reader = ssh_reader_of(signature.data, signature.len);
    struct ssh_bytes type = ssh_get_string(&key_reader);
    struct ssh_bytes algorithm = ssh_get_string(&reader), raw = ssh_get_string(&reader);
    const struct ssh_curve *curve = ssh_curve_find(type);
    unsigned char *der = NULL;
    bool is_valid;

    if (!ssh_reader_is_done(&reader) ||
        blob_read((struct ssh_bytes){ key->blob, key->len }, &pkey) < 0)
        return false;
    if (ssh_bytes_are(type, "ssh-rsa")) {
        if (ssh_bytes_are(algorithm, "rsa-sha2-256"))
            return signature_check(pkey, "SHA256", data, raw);
        return ssh_bytes_are(algorithm, "rsa-sha2-512") &&
               signature_check(pkey, "SHA512", data, raw);
    }
    if (!ssh_bytes_equal(algorithm, type))
        return false;
    if (!curve)
        return signature_check(pkey, NULL, data, raw);
    if (!ecdsa_to_der(raw, &der, &raw.len))
        return false;
    is_valid = signature_check(pkey, curve->digest, data, (struct ssh_bytes){ der, raw.len });
    OPENSSL_free(der);
    return is_valid;
}
