// SPDX-License-Identifier: Apache-2.0
#include "egress/tls/authority.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/xalloc.h"
#include "net/name.h"

enum {
    LEAVES_MAX = 256,
    BEFORE_SECONDS = 24 * 3600, /* clocks of sandboxes may be behind */
    VALID_SECONDS = 30 * 24 * 3600,
    KEPT_SECONDS = 7 * 24 * 3600,
    COMMON_NAME_MAX = 64,
    SERIAL_BYTES = 16,
};

struct leaf {
    char name[NET_NAME_SIZE];
    X509 *certificate;
    time_t made, used;
};

/* All leaves have one key, which exists in this process only. */
struct authority {
    X509 *certificate;
    EVP_PKEY *key, *leaf_key;
    SSL_CTX *context;
    struct leaf leaves[LEAVES_MAX];
};

static int protocol_select(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned int in_len, void *data)
{
    static const unsigned char http[] = "\x08http/1.1\x08http/1.0";
    unsigned char *chosen;

    (void)ssl;
    (void)data;
    if (SSL_select_next_proto(&chosen, out_len, http, sizeof(http) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* Nothing is resumed: a session of one name must not become one of another. */
static SSL_CTX *context_new(EVP_PKEY *key)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    if (!context)
        return NULL;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(context, protocol_select, NULL);
    if (SSL_CTX_use_PrivateKey(context, key) == 1)
        return context;
    SSL_CTX_free(context);
    return NULL;
}

struct authority *authority_new(const char *certificate, const char *key)
{
    struct authority *authority = xcalloc(1, sizeof(*authority));
    BIO *certificate_bio = BIO_new_mem_buf(certificate, -1), *key_bio = BIO_new_mem_buf(key, -1);

    authority->certificate = PEM_read_bio_X509(certificate_bio, NULL, NULL, NULL);
    authority->key = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL);
    authority->leaf_key = EVP_EC_gen("P-256");
    BIO_free(certificate_bio);
    BIO_free(key_bio);
    if (authority->leaf_key)
        authority->context = context_new(authority->leaf_key);
    if (authority->certificate && authority->key && authority->context &&
        X509_check_private_key(authority->certificate, authority->key) == 1)
        return authority;
    ERR_clear_error();
    authority_free(authority);
    return NULL;
}

void authority_free(struct authority *authority)
{
    if (!authority)
        return;
    for (size_t i = 0; i < LEAVES_MAX; i++)
        X509_free(authority->leaves[i].certificate);
    X509_free(authority->certificate);
    EVP_PKEY_free(authority->key);
    EVP_PKEY_free(authority->leaf_key);
    SSL_CTX_free(authority->context);
    free(authority);
}

static int extension_add(X509 *leaf, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;
    int r;

    X509V3_set_ctx(&context, issuer, leaf, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    if (!extension)
        return 0;
    r = X509_add_ext(leaf, extension, -1);
    X509_EXTENSION_free(extension);
    return r;
}

static int serial_set(X509 *leaf)
{
    unsigned char bytes[SERIAL_BYTES];
    BIGNUM *number;
    int r;

    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return 0;
    bytes[0] &= 0x7f;
    number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    r = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(leaf));
    BN_free(number);
    return r;
}

static int leaf_fill(const struct authority *authority, X509 *leaf, const char *name)
{
    X509_NAME *subject = X509_get_subject_name(leaf);
    const char *common = strlen(name) <= COMMON_NAME_MAX ? name : "holt";
    char names[NET_NAME_SIZE + 8];

    (void)snprintf(names, sizeof(names), "DNS:%s", name);
    return X509_set_version(leaf, X509_VERSION_3) && serial_set(leaf) &&
           X509_gmtime_adj(X509_getm_notBefore(leaf), -BEFORE_SECONDS) &&
           X509_gmtime_adj(X509_getm_notAfter(leaf), VALID_SECONDS) &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)common,
                                      -1, -1, 0) &&
           X509_set_issuer_name(leaf, X509_get_subject_name(authority->certificate)) &&
           X509_set_pubkey(leaf, authority->leaf_key) &&
           extension_add(leaf, authority->certificate, NID_basic_constraints,
                         "critical,CA:FALSE") &&
           extension_add(leaf, authority->certificate, NID_key_usage,
                         "critical,digitalSignature") &&
           extension_add(leaf, authority->certificate, NID_ext_key_usage, "serverAuth") &&
           extension_add(leaf, authority->certificate, NID_subject_key_identifier, "hash") &&
           extension_add(leaf, authority->certificate, NID_authority_key_identifier, "keyid") &&
           extension_add(leaf, authority->certificate, NID_subject_alt_name, names) &&
           X509_sign(leaf, authority->key, EVP_sha256()) > 0;
}

/* Returns the place of the name in the cache, or of the one that was not used for longest. */
static struct leaf *leaf_slot(struct authority *authority, const char *name)
{
    struct leaf *oldest = &authority->leaves[0];

    for (size_t i = 0; i < LEAVES_MAX; i++) {
        struct leaf *leaf = &authority->leaves[i];

        if (leaf->certificate && strcmp(leaf->name, name) == 0)
            return leaf;
        if (leaf->used < oldest->used)
            oldest = leaf;
    }
    return oldest;
}

static X509 *leaf_get(struct authority *authority, const char *name)
{
    struct leaf *leaf = leaf_slot(authority, name);
    time_t now = time(NULL);
    X509 *made;

    if (leaf->certificate && strcmp(leaf->name, name) == 0 && now >= leaf->made &&
        now < leaf->made + KEPT_SECONDS) {
        leaf->used = now;
        return leaf->certificate;
    }
    made = X509_new();
    if (!made || !leaf_fill(authority, made, name)) {
        X509_free(made);
        return NULL;
    }
    X509_free(leaf->certificate);
    leaf->certificate = made;
    leaf->made = leaf->used = now;
    (void)snprintf(leaf->name, sizeof(leaf->name), "%s", name);
    return made;
}

SSL *authority_accept(struct authority *authority, const char *name)
{
    X509 *leaf = leaf_get(authority, name);
    SSL *ssl = leaf ? SSL_new(authority->context) : NULL;

    if (ssl && SSL_use_certificate(ssl, leaf) == 1) {
        SSL_set_accept_state(ssl);
        return ssl;
    }
    SSL_free(ssl);
    ERR_clear_error();
    return NULL;
}
