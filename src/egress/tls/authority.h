/* The daemon's certificate authority in holt-net: makes certificates for the hosts whose TLS is
 * ended here. */
#pragma once

#include <openssl/ssl.h>

struct authority;

/* Reads both PEM texts. Returns NULL if they are not a certificate and its key. */
struct authority *authority_new(const char *certificate, const char *key);
void authority_free(struct authority *authority);

/* Returns the server's side of a TLS connection for a name, or NULL. HTTP/1.1 alone is offered. */
SSL *authority_accept(struct authority *authority, const char *name);
