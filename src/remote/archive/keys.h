/* What seals and names the objects of one owner's archives. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive_store;
struct err;

enum { ARCHIVE_ID_LEN = 32, ARCHIVE_GEARS = 256 };

struct archive_keys {
    bool is_sealed;
    uint8_t id[32];   /* makes identities, if sealed */
    uint8_t seal[32]; /* from which the key of each object comes, if sealed */
    uint64_t gears[ARCHIVE_GEARS];
};

/* Derives the keys of a store's owner. To be wiped with archive_keys_wipe. */
int archive_keys_derive(const struct archive_store *store, struct archive_keys *ret,
                        struct err *err);
void archive_keys_wipe(struct archive_keys *keys);

/* Computes the identity of bytes: HMAC-SHA-256 if sealed, else SHA-256. Returns 0 or -errno. */
int archive_identify(const struct archive_keys *keys, const void *data, size_t len,
                     uint8_t ret[ARCHIVE_ID_LEN]);

/* Computes the key of the objects of one kind and identity. Returns 0 or -errno. */
int archive_object_key(const struct archive_keys *keys, uint8_t kind,
                       const uint8_t id[ARCHIVE_ID_LEN], uint8_t ret[32]);
