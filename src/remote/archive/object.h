/* The stored form of chunks and lists: compressed, and sealed if the owner has a key.
 *
 * An object has a head of 12 bytes:
 *   4  "hlta"
 *   1  version: 1
 *   1  kind: 'C' chunk, 'L' list
 *   1  flags: 1 sealed, 2 compressed
 *   1  0
 *   4  bytes of the content, little-endian; at most ARCHIVE_CHUNK_MAX
 * Then, if it is sealed: 12 bytes of nonce, the body in AES-256-GCM, 16 bytes of tag. If not: the
 * body, and behind that of a list the SHA-256 of head, identity and body. The body is the content,
 * or one frame of zstd where that is smaller.
 *
 * Each kind and identity has a key of its own, so an object opens only as what it was made for; and
 * each sealing has a random nonce: two hosts may seal the same chunk, in compressed forms that
 * differ, 2^32 times. The tag covers the head, too. The identity is that of a chunk's content, or
 * that of the key under which a list is stored. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "remote/archive/keys.h"

struct archive_codec;
struct buf;

enum {
    ARCHIVE_CHUNK_MAX = 4 * 1024 * 1024,
    ARCHIVE_OBJECT_EXTRA = 64, /* bytes that an object may have beyond its content */
    ARCHIVE_OBJECT_MAX = ARCHIVE_CHUNK_MAX + ARCHIVE_OBJECT_EXTRA,
};

enum archive_kind { ARCHIVE_CHUNK = 'C', ARCHIVE_LIST = 'L' };

struct archive_subject {
    const struct archive_keys *keys;
    enum archive_kind kind;
    const uint8_t *id; /* ARCHIVE_ID_LEN bytes */
};

/* The work memory of one thread; keeps compressors between calls. */
struct archive_codec *archive_codec_new(void);
void archive_codec_free(struct archive_codec *codec);

/* Appends the object of a content to ret. Returns 0 or -errno. */
int archive_object_make(struct archive_codec *codec, const struct archive_subject *subject,
                        const void *content, size_t len, struct buf *ret);

/* Appends the content of an object to ret. Returns 0, -EBADMSG where the object is damaged or that
 * of something else, -ENOKEY where it is sealed and should not be or the reverse, -ENOBUFS beyond
 * the limit of ret, or another -errno. A chunk that is not sealed is authentic only if the caller
 * finds its content to have the identity. */
int archive_object_open(struct archive_codec *codec, const struct archive_subject *subject,
                        const void *object, size_t len, struct buf *ret);
