// SPDX-License-Identifier: Apache-2.0
#include "http/tls/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"

enum { PEM_BYTES_MAX = 1024 * 1024 };

static int pem_read(const char *path, struct buf *ret, struct err *err)
{
    int r = file_read_at(AT_FDCWD, path, ret);

    if (r == -ENOENT)
        return err_set(err, ERR_NOT_FOUND, "there is no file %s", path);
    if (r == -ENOBUFS)
        return err_set(err, ERR_INVALID, "%s is too large for a certificate or a key", path);
    return r < 0 ? err_sys(err, r, "read %s", path) : 0;
}

static int key_is_private(const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "there is no file %s", path)
                               : err_sys(err, -errno, "look at %s", path);
    if (st.st_mode & S_IRWXO)
        return err_set(err, ERR_DENIED,
                       "%s is a private key that every user may read or change; chmod o= it", path);
    return 0;
}

DEFINE_CLEANUP(BIO_free, BIO *);

DEFINE_CLEANUP(X509_free, X509 *);

DEFINE_CLEANUP(EVP_PKEY_free, EVP_PKEY *);

/* A daemon cannot ask for a passphrase. */
static int no_passphrase(char *text, int size, int rwflag, void *context)
{
    (void)text, (void)size, (void)rwflag, (void)context;
    return -1;
}

static int pair_check(const struct tls *tls, const char *cert_path, const char *key_path,
                      struct err *err)
{
    cleanup_with(BIO_free_slot) BIO *cert_text =
        BIO_new_mem_buf(tls->cert.data, (int)tls->cert.len);
    cleanup_with(BIO_free_slot) BIO *key_text = BIO_new_mem_buf(tls->key.data, (int)tls->key.len);
    cleanup_with(X509_free_slot) X509 *cert =
        cert_text ? PEM_read_bio_X509(cert_text, NULL, NULL, NULL) : NULL;
    cleanup_with(EVP_PKEY_free_slot) EVP_PKEY *key =
        key_text ? PEM_read_bio_PrivateKey(key_text, NULL, no_passphrase, NULL) : NULL;

    if (!cert)
        return err_set(err, ERR_INVALID, "%s does not hold a certificate in PEM form", cert_path);
    if (!key)
        return err_set(err, ERR_INVALID,
                       "%s does not hold a private key in PEM form without a passphrase", key_path);
    if (X509_check_private_key(cert, key) != 1)
        return err_set(err, ERR_INVALID, "the key in %s is not that of the certificate in %s",
                       key_path, cert_path);
    return 0;
}

int tls_load(const char *cert_path, const char *key_path, struct tls *ret, struct err *err)
{
    int r;

    *ret = (struct tls){ .cert.max = PEM_BYTES_MAX, .key.max = PEM_BYTES_MAX };
    r = key_is_private(key_path, err);
    if (r == 0)
        r = pem_read(cert_path, &ret->cert, err);
    if (r == 0)
        r = pem_read(key_path, &ret->key, err);
    if (r == 0)
        r = pair_check(ret, cert_path, key_path, err);
    if (r < 0)
        tls_done(ret);
    return r;
}

void tls_done(struct tls *tls)
{
    if (tls->key.data)
        OPENSSL_cleanse(tls->key.data, tls->key.len);
    buf_done(&tls->key);
    buf_done(&tls->cert);
}
