/* SHA-256, as images name their blobs. */
#pragma once

#include <stddef.h>

enum { DIGEST_HEX_LEN = 64 };

struct digest; /* being computed */

/* NULL when OpenSSL refuses. */
struct digest *digest_new(void);
void digest_add(struct digest *digest, const void *data, size_t len);

/* Writes the lower-case hex form: 0, or -EIO if anything failed on the way. */
int digest_hex(struct digest *digest, char ret_hex[static DIGEST_HEX_LEN + 1]);

/* Accepts NULL. */
void digest_free(struct digest *digest);

/* The digest of an open file from its beginning; leaves the offset at the beginning. 0 or -errno.
 */
int digest_file(int fd, char ret_hex[static DIGEST_HEX_LEN + 1]);
