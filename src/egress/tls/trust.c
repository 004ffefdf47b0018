// SPDX-License-Identifier: Apache-2.0
#include "egress/tls/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"

struct trust {
    SSL_CTX *context;
};

int trust_open_host(void)
{
    static const char *const files[] = {
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    };
    const char *chosen = getenv("SSL_CERT_FILE");
    int fd = chosen ? open(chosen, O_RDONLY | O_CLOEXEC) : -1;

    for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(files); i++)
        fd = open(files[i], O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -ENOENT : fd;
}

/* Returns how many certificates were added. */
static size_t certificates_add(X509_STORE *store, BIO *from)
{
    size_t count = 0;
    X509 *certificate;

    while (from && (certificate = PEM_read_bio_X509(from, NULL, NULL, NULL))) {
        count += X509_STORE_add_cert(store, certificate) == 1;
        X509_free(certificate);
    }
    ERR_clear_error(); /* the end of the text is one */
    BIO_free(from);
    return count;
}

struct trust *trust_new(int host_fd, const char *bundle)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct trust *trust;
    size_t count = 0;

    if (!context)
        return NULL;
    if (host_fd >= 0 && lseek(host_fd, 0, SEEK_SET) == 0)
        count +=
            certificates_add(SSL_CTX_get_cert_store(context), BIO_new_fd(host_fd, BIO_NOCLOSE));
    if (bundle)
        count += certificates_add(SSL_CTX_get_cert_store(context), BIO_new_mem_buf(bundle, -1));
    if (count == 0) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    trust = xcalloc(1, sizeof(*trust));
    trust->context = context;
    return trust;
}

void trust_free(struct trust *trust)
{
    if (trust)
        SSL_CTX_free(trust->context);
    free(trust);
}

SSL *trust_connect(struct trust *trust, const char *name, bool only_http1)
{
    /* HTTP/1.1 first: it costs less, and most servers that speak both take what is first. */
    static const unsigned char protocols[] = "\x08http/1.1\x02h2";
    unsigned len = only_http1 ? 9 : sizeof(protocols) - 1;
    SSL *ssl = SSL_new(trust->context);

    if (!ssl)
        return NULL;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (SSL_set1_host(ssl, name) == 1 &&
        SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                 (void *)(uintptr_t)name) == 1 &&
        SSL_set_alpn_protos(ssl, protocols, len) == 0) {
        SSL_set_connect_state(ssl);
        return ssl;
    }
    SSL_free(ssl);
    ERR_clear_error();
    return NULL;
}
