/* Public keys of SSH: what a server proves to be, and what an agent offers. */
#pragma once

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "ssh/wire.h"

struct err;

enum { SSH_BLOB_MAX = 2048, SSH_TYPE_MAX = 31, SSH_SESSION_MAX = 64 };

struct ssh_public {
    unsigned char blob[SSH_BLOB_MAX]; /* as it is sent */
    size_t len;
};

struct ssh_curve {
    const char *type;  /* of a key: "ecdsa-sha2-nistp256" */
    const char *name;  /* in its blob: "nistp256" */
    const char *group; /* for OpenSSL */
    const char *digest;
};

/* Returns the curve of a type of ECDSA keys; NULL: it is none that is known. */
const struct ssh_curve *ssh_curve_find(struct ssh_bytes type);

/* Checks and copies a key: Ed25519, ECDSA, or RSA of 2048 to 8192 bits. Returns 0, -ENOTSUP for
 * another type, or -EBADMSG. */
int ssh_public_init(struct ssh_public *ret, struct ssh_bytes blob);

/* Reads one line as in a .pub file or in known_hosts: "[HOSTS] TYPE BASE64 [COMMENT]". Fails with
 * ERR_INVALID. */
int ssh_public_parse(const char *line, struct ssh_public *ret, struct err *err);

/* Writes "TYPE BASE64". Returns 0 or -ENOSPC. */
int ssh_public_text(const struct ssh_public *key, char *ret, size_t size);

bool ssh_public_equals(const struct ssh_public *key, struct ssh_bytes blob);

/* Returns whether the signature, as it is sent, is one of the data by this key. RSA with SHA-1 is
 * not accepted. */
bool ssh_public_verify(const struct ssh_public *key, struct ssh_bytes data,
                       struct ssh_bytes signature);
