/* SHA-256 digests, by which images name their blobs. */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"

enum { DIGEST_HEX_LEN = 64 };

struct digest; /* a digest being computed */

/* Starts a digest. Returns NULL if OpenSSL fails. */
struct digest *digest_new(void);
void digest_add(struct digest *digest, const void *data, size_t len);

/* Writes the lower-case hexadecimal form. Returns 0, or -EIO if any step failed. */
int digest_hex(struct digest *digest, char ret_hex[static DIGEST_HEX_LEN + 1]);

/* Frees a digest. Accepts NULL. */
void digest_free(struct digest *digest);
DEFINE_CLEANUP(digest_free, struct digest *);

/* Computes the digest of an open file and rewinds it. Returns 0 or -errno. */
int digest_file(int fd, char ret_hex[static DIGEST_HEX_LEN + 1]);
