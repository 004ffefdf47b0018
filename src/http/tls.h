/* The certificate and the key of the TCP listener, checked before anybody connects. */
#pragma once

#include "base/buf.h"

struct err;

struct tls {
    struct buf cert; /* PEM; the chain behind it too */
    struct buf key;
};

/* Reads both files. Refuses a key that others than owner and group may read, and one that is not
 * the certificate's. */
int tls_load(const char *cert_path, const char *key_path, struct tls *ret, struct err *err);

/* Wipes the key. */
void tls_done(struct tls *tls);
