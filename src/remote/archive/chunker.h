/* Cuts a stream into chunks where its content says so: after an insertion the cuts are soon those
 * from before it.
 *
 * A hash rolls over the last 64 bytes; a cut is behind the byte at which its upper bits are 0. How
 * many bits depends on the length so far, which draws the lengths to about 1 MiB (normalized
 * chunking). What each byte adds to the hash comes from the owner's key, so that lengths do not
 * tell which known content was stored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive_chunker {
    const uint64_t *gears; /* ARCHIVE_GEARS of them */
    uint64_t hash;
    size_t len; /* bytes of the chunk so far */
};

/* Takes up to `len` bytes into the chunk: returns how many, and whether the chunk ends there. */
size_t archive_chunker_take(struct archive_chunker *chunker, const void *data, size_t len,
                            bool *ret_is_cut);
