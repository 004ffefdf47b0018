/* Certificate and key of the TCP listener, checked when the daemon starts. */
#pragma once

#include "base/buf.h"

struct err;

struct tls {
    struct buf cert; /* PEM, followed by its chain */
    struct buf key;
};

/* Reads both files. Fails for a key that others than owner and group may read, and for a key that
 * does not match the certificate. */
int tls_load(const char *cert_path, const char *key_path, struct tls *ret, struct err *err);

/* Wipes the key. */
void tls_done(struct tls *tls);
