// SPDX-License-Identifier: Apache-2.0
#include "host/secret/authority.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/random.h"
#include "base/xalloc.h"

#define KEY_FILE "ca.key"
#define CERTIFICATE_FILE "ca.pem"

enum { PEM_MAX = 16 * 1024, YEARS = 20, SERIAL_BYTES = 16 };

DEFINE_CLEANUP(EVP_PKEY_free, EVP_PKEY *);
DEFINE_CLEANUP(X509_free, X509 *);
DEFINE_CLEANUP(BIO_free, BIO *);

void authority_done(struct authority *authority)
{
    if (authority->key)
        explicit_bzero(authority->key, strlen(authority->key));
    free(authority->key);
    free(authority->certificate);
    *authority = (struct authority){ .key = NULL };
}

/* --- making it ----------------------------------------------------------------------------------
 */

static bool extension_add(X509 *certificate, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;
    bool ok;

    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    ok = extension && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

static bool serial_set(X509 *certificate)
{
    unsigned char bytes[SERIAL_BYTES];
    BIGNUM *number;
    bool ok;

    if (random_bytes(bytes, sizeof(bytes)) < 0)
        return false;
    bytes[0] &= 0x7f; /* positive */
    number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return ok;
}

/* The name has random digits: clients that have seen an authority of another host, or of an earlier
 * state directory, would otherwise take one for the other. */
static bool name_set(X509 *certificate)
{
    X509_NAME *name = X509_get_subject_name(certificate);
    char digits[17], text[64];

    if (random_hex(digits, 8) < 0)
        return false;
    (void)snprintf(text, sizeof(text), "Holt sandbox authority %s", digits);
    return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"Holt", -1,
                                      -1, 0) == 1 &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)text, -1, -1,
                                      0) == 1 &&
           X509_set_issuer_name(certificate, name) == 1;
}

static X509 *certificate_make(EVP_PKEY *key)
{
    const long day = 24L * 3600;
    cleanup_with(X509_free_slot) X509 *certificate = X509_new();

    if (!certificate || X509_set_version(certificate, 2) != 1 || !serial_set(certificate) ||
        !name_set(certificate) || !X509_gmtime_adj(X509_getm_notBefore(certificate), -day) ||
        !X509_gmtime_adj(X509_getm_notAfter(certificate), (long)YEARS * 365 * day) ||
        X509_set_pubkey(certificate, key) != 1 ||
        !extension_add(certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !extension_add(certificate, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !extension_add(certificate, NID_subject_key_identifier, "hash") ||
        X509_sign(certificate, key, EVP_sha256()) == 0)
        return NULL;
    return TAKE_PTR(certificate);
}

/* Takes what was written to a memory BIO, as a text. */
static char *bio_text(BIO *bio)
{
    char *data = NULL;
    long len = BIO_get_mem_data(bio, &data);

    return len > 0 ? xasprintf("%.*s", (int)len, data) : NULL;
}

static int authority_make(int state_fd, struct authority *ret, struct err *err)
{
    cleanup_with(EVP_PKEY_free_slot) EVP_PKEY *key = EVP_EC_gen("P-256");
    cleanup_with(X509_free_slot) X509 *certificate = key ? certificate_make(key) : NULL;
    cleanup_with(BIO_free_slot) BIO *key_out = BIO_new(BIO_s_secmem());
    cleanup_with(BIO_free_slot) BIO *out = BIO_new(BIO_s_mem());
    int r;

    if (!certificate || !key_out || !out ||
        PEM_write_bio_PrivateKey(key_out, key, NULL, NULL, 0, NULL, NULL) != 1 ||
        PEM_write_bio_X509(out, certificate) != 1)
        return err_sys(err, -EIO, "make the certificate authority of this host");
    ret->key = bio_text(key_out);
    ret->certificate = bio_text(out);
    if (!ret->key || !ret->certificate)
        return err_sys(err, -EIO, "make the certificate authority of this host");
    r = file_replace_at(state_fd, KEY_FILE, ret->key, strlen(ret->key));
    fault_point("authority.key");
    /* Last: without it the authority is made again. */
    if (r == 0)
        r = file_replace_at(state_fd, CERTIFICATE_FILE, ret->certificate, strlen(ret->certificate));
    fault_point("authority.made");
    return r < 0 ? err_sys(err, r, "write the certificate authority of this host") : 0;
}

/* --- reading it ---------------------------------------------------------------------------------
 */

static int hash_fill(struct authority *authority, struct err *err)
{
    cleanup_with(BIO_free_slot) BIO *in = BIO_new_mem_buf(authority->certificate, -1);
    cleanup_with(X509_free_slot) X509 *certificate =
        in ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;

    if (!certificate)
        return err_set(err, ERR_INTERNAL, "%s in the state directory is not a certificate",
                       CERTIFICATE_FILE);
    (void)snprintf(authority->hash, sizeof(authority->hash), "%08lx",
                   X509_subject_name_hash(certificate));
    return 0;
}

static int text_read(int state_fd, const char *name, char **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(PEM_MAX);
    struct stat st;
    int r = fstatat(state_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;

    if (r == 0 && (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0)) {
        (void)err_set(err, ERR_INTERNAL, "%s in the state directory can be read by others", name);
        return err_remedy(err, "remove ca.key and ca.pem; a new authority is made");
    }
    if (r == 0)
        r = file_read_at(state_fd, name, &content);
    if (r < 0)
        return r == -ENOENT ? r : err_sys(err, r, "read %s in the state directory", name);
    *ret = xasprintf("%.*s", (int)content.len, content.data);
    explicit_bzero(content.data, content.len);
    return 0;
}

int authority_open(int state_fd, bool make, struct authority *ret, struct err *err)
{
    cleanup_with(authority_done) struct authority authority = { .key = NULL };
    int r = text_read(state_fd, CERTIFICATE_FILE, &authority.certificate, err);

    if (r == 0)
        r = text_read(state_fd, KEY_FILE, &authority.key, err);
    if (r == -ENOENT && !make)
        return 0;
    if (r == -ENOENT) {
        authority_done(&authority);
        r = authority_make(state_fd, &authority, err);
    }
    if (r == 0)
        r = hash_fill(&authority, err);
    if (r < 0)
        return r;
    *ret = authority;
    authority = (struct authority){ .key = NULL };
    return 1;
}
