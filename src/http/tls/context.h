/* The settings of all TLS connections. */
#pragma once

#include <openssl/ssl.h>

struct tls;

/* Makes them for this certificate and key; NULL if OpenSSL cannot use these. Nothing in them grows
 * at the wish of a client: no session cache, no renegotiation, no compression, and buffers only
 * while a record is in them. */
SSL_CTX *tls_context_new(const struct tls *tls);
