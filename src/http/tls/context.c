// SPDX-License-Identifier: Apache-2.0
#include "http/tls/context.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/cleanup.h"
#include "http/tls/certificate.h"

DEFINE_CLEANUP(BIO_free, BIO *);

DEFINE_CLEANUP(X509_free, X509 *);

DEFINE_CLEANUP(EVP_PKEY_free, EVP_PKEY *);

static int certificates_use(SSL_CTX *context, const struct tls *tls)
{
    cleanup_with(BIO_free_slot) BIO *text = BIO_new_mem_buf(tls->cert.data, (int)tls->cert.len);
    cleanup_with(X509_free_slot) X509 *own = PEM_read_bio_X509(text, NULL, NULL, NULL);
    X509 *other;

    if (!own || SSL_CTX_use_certificate(context, own) != 1)
        return -EINVAL;
    while ((other = PEM_read_bio_X509(text, NULL, NULL, NULL)))
        if (SSL_CTX_add0_chain_cert(context, other) != 1) {
            X509_free(other);
            return -EINVAL;
        }
    ERR_clear_error(); /* the end of the file is one */
    return 0;
}

static int key_use(SSL_CTX *context, const struct tls *tls)
{
    cleanup_with(BIO_free_slot) BIO *text = BIO_new_mem_buf(tls->key.data, (int)tls->key.len);
    cleanup_with(EVP_PKEY_free_slot) EVP_PKEY *key =
        PEM_read_bio_PrivateKey(text, NULL, NULL, NULL);

    return key && SSL_CTX_use_PrivateKey(context, key) == 1 ? 0 : -EINVAL;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                   const unsigned char *in, unsigned in_len, void *context)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;

    (void)ssl, (void)context;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

SSL_CTX *tls_context_new(const struct tls *tls)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    if (!context)
        return NULL;
    (void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                           SSL_OP_CIPHER_SERVER_PREFERENCE |
                                           SSL_OP_IGNORE_UNEXPECTED_EOF);
    (void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    /* Earlier versions of libholt take a session ticket for a reply. */
    (void)SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_alpn_select_cb(context, on_alpn, NULL);
    if (certificates_use(context, tls) == 0 && key_use(context, tls) == 0)
        return context;
    SSL_CTX_free(context);
    return NULL;
}
