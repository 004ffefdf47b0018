// SPDX-License-Identifier: Apache-2.0
#include "remote/archive/chunker.h"

#include "remote/archive/object.h"

enum {
    CHUNK_MIN = 256 * 1024,
    CHUNK_NORMAL = 1024 * 1024, /* from here on a cut is 16 times as likely */
    HASH_WINDOW = 64,
    BITS_BEFORE = 22,
    BITS_BEHIND = 18,
};

/* Rolls over bytes until a cut or their end: returns the bytes taken. */
static size_t hash_roll(struct archive_chunker *chunker, const uint8_t *bytes, size_t len,
                        unsigned bits, bool *ret_is_cut)
{
    const uint64_t *gears = chunker->gears;
    uint64_t hash = chunker->hash, limit = UINT64_C(1) << (64 - bits);
    size_t i = 0;

    *ret_is_cut = false;
    while (i < len) {
        hash = (hash << 1) + gears[bytes[i++]];
        if (hash < limit) {
            *ret_is_cut = true;
            break;
        }
    }
    chunker->hash = hash;
    return i;
}

static size_t until(const struct archive_chunker *chunker, size_t end, size_t len)
{
    return end - chunker->len < len ? end - chunker->len : len;
}

size_t archive_chunker_take(struct archive_chunker *chunker, const void *data, size_t len,
                            bool *ret_is_cut)
{
    static const struct {
        size_t end;
        unsigned bits;
    } zones[] = {
        { CHUNK_MIN, 0 },
        { CHUNK_NORMAL, BITS_BEFORE },
        { ARCHIVE_CHUNK_MAX, BITS_BEHIND },
    };
    const uint8_t *bytes = data;
    size_t taken = 0;

    *ret_is_cut = false;
    /* What no hash that counts covers need not be hashed. */
    if (chunker->len < CHUNK_MIN - HASH_WINDOW) {
        taken = until(chunker, CHUNK_MIN - HASH_WINDOW, len);
        chunker->len += taken;
    }
    for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
        size_t n;

        if (taken == len || *ret_is_cut || chunker->len >= zones[i].end)
            continue;
        n = until(chunker, zones[i].end, len - taken);
        if (zones[i].bits > 0) {
            n = hash_roll(chunker, bytes + taken, n, zones[i].bits, ret_is_cut);
        } else {
            for (size_t k = 0; k < n; k++)
                chunker->hash = (chunker->hash << 1) + chunker->gears[bytes[taken + k]];
        }
        taken += n;
        chunker->len += n;
    }
    if (chunker->len == ARCHIVE_CHUNK_MAX)
        *ret_is_cut = true;
    if (*ret_is_cut) {
        chunker->len = 0;
        chunker->hash = 0;
    }
    return taken;
}
