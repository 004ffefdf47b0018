/* A private key of SSH, for signing. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ssh/public.h"

struct buf;
struct err;

enum { SSH_KEY_TEXT_MAX = 16 * 1024 };

struct ssh_key {
    EVP_PKEY *pkey; /* NULL: none */
    struct ssh_public public;
};

/* Reads a key without a passphrase: as ssh-keygen writes it, or PEM. Fails with ERR_INVALID. */
int ssh_key_read(struct ssh_key *ret, const char *text, size_t len, struct err *err);

/* Wipes the key. */
void ssh_key_done(struct ssh_key *key);

/* Flags of a request for a signature (agent protocol). */
enum { SSH_RSA_SHA2_256 = 2, SSH_RSA_SHA2_512 = 4 };

/* Appends a signature of the data, as it is sent. RSA signs with SHA-512 unless the flags ask for
 * SHA-256 alone. Returns 0, -ENOBUFS or -EIO. */
int ssh_key_sign(const struct ssh_key *key, struct ssh_bytes data, uint32_t flags, struct buf *out);
