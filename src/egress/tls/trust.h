/* Which servers holt-net trusts. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>

struct trust;

/* Opens the host's file of certificate authorities (SSL_CERT_FILE, or where distributions have it).
 * It is read when the first connection needs it. Returns a descriptor or -ENOENT. */
int trust_open_host(void);

/* Trusts the authorities of the host's file, and those of the PEM text (NULL: none). Returns NULL
 * if neither has a certificate. */
struct trust *trust_new(int host_fd, const char *bundle);
void trust_free(struct trust *trust);

/* Returns the client's side of a TLS connection, which fails unless the server's certificate is
 * valid for the name; or NULL. It offers HTTP/1.1, and HTTP/2 unless only_http1. */
SSL *trust_connect(struct trust *trust, const char *name, bool only_http1);
