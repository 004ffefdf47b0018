// SPDX-License-Identifier: Apache-2.0
#include "remote/archive/chunker.h"

#include "base/cleanup.h"
#include "remote/archive/object.h"

enum {
    CHUNK_MIN = 256 * 1024,
    CHUNK_NORMAL = 1024 * 1024,
    HASH_WINDOW = 64,
};

/* A cut is where the hash is below the limit for the length so far. */
static const struct {
    size_t end;
    uint64_t limit;
} zones[] = {
    { CHUNK_MIN, 0 },
    { CHUNK_NORMAL, UINT64_C(1) << 42 },      /* one of 4 Mi bytes */
    { ARCHIVE_CHUNK_MAX, UINT64_C(1) << 46 }, /* one of 256 Ki */
};

/* Rolls over bytes until a cut or their end: returns the bytes taken. */
static size_t hash_roll(struct archive_chunker *chunker, const uint8_t *bytes, size_t len,
                        uint64_t limit, bool *ret_is_cut)
{
    const uint64_t *gears = chunker->gears;
    uint64_t hash = chunker->hash;
    size_t i = 0;

    *ret_is_cut = false;
    while (i < len && !*ret_is_cut) {
        hash = (hash << 1) + gears[bytes[i++]];
        *ret_is_cut = hash < limit;
    }
    chunker->hash = hash;
    return i;
}

/* Returns how many of `len` bytes belong before a length of the chunk. */
static size_t bytes_until(const struct archive_chunker *chunker, size_t end, size_t len)
{
    size_t left = end > chunker->len ? end - chunker->len : 0;

    return left < len ? left : len;
}

size_t archive_chunker_take(struct archive_chunker *chunker, const void *data, size_t len,
                            bool *ret_is_cut)
{
    const uint8_t *bytes = data;
    /* No hash that counts covers the first bytes. */
    size_t taken = bytes_until(chunker, CHUNK_MIN - HASH_WINDOW, len);
    bool is_cut = false;

    chunker->len += taken;
    for (size_t i = 0; i < ARRAY_SIZE(zones) && !is_cut; i++) {
        size_t n = bytes_until(chunker, zones[i].end, len - taken);

        n = hash_roll(chunker, bytes + taken, n, zones[i].limit, &is_cut);
        taken += n;
        chunker->len += n;
    }
    *ret_is_cut = is_cut || chunker->len == ARCHIVE_CHUNK_MAX;
    if (*ret_is_cut) {
        chunker->len = 0;
        chunker->hash = 0;
    }
    return taken;
}
