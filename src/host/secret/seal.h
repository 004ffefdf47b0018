/* Seals small texts for the registry: AES-256-GCM with one key of the host, which is in a file of
 * its own (mode 0600) in the state directory. */
#pragma once

#include <stddef.h>

struct err;

enum {
    SEAL_KEY_BYTES = 32,
    SEAL_NONCE_BYTES = 12,
    SEAL_TAG_BYTES = 16,
    SEAL_EXTRA_BYTES = SEAL_NONCE_BYTES + SEAL_TAG_BYTES,
};

#define SEAL_TEXT_SIZE(bytes) (2 * ((bytes) + SEAL_EXTRA_BYTES) + 1)

struct seal_key {
    unsigned char bytes[SEAL_KEY_BYTES];
};

/* Reads the key in this file of a directory. Returns 0, -ENOENT, or fails with ERR_INTERNAL for a
 * file that is no key or that others than its owner can read. */
int seal_key_read(int dir_fd, const char *name, struct seal_key *ret, struct err *err);

/* Makes a random key and writes it to the file; it is on disk when this returns. */
int seal_key_make(int dir_fd, const char *name, struct seal_key *ret, struct err *err);

/* What a sealed text belongs to: it can be opened only with the same bytes. */
struct seal_context {
    const void *data;
    size_t len;
};

/* Seals bytes as hexadecimal text of SEAL_TEXT_SIZE(len). Returns 0 or -errno. */
int seal_close(const struct seal_key *key, const struct seal_context *context, const void *data,
               size_t len, char *ret);

/* Opens a sealed text into ret, which holds `size` bytes. Returns the number of bytes, -EBADMSG if
 * it was changed, or sealed with another key or context, or -ENOSPC. */
int seal_open(const struct seal_key *key, const struct seal_context *context, const char *text,
              void *ret, size_t size);
