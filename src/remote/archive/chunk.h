/* Chunks in the storage: OWNER/chunks/HH/HEX, where HEX is the identity of the content and HH
 * begins it. */
#pragma once

#include "remote/archive/session.h"

/* A chunk as a list has it: ARCHIVE_REF_LEN bytes, the identity and the size (little-endian). */
struct archive_ref {
    uint8_t id[ARCHIVE_ID_LEN];
    uint32_t size;
};

enum { ARCHIVE_REF_LEN = ARCHIVE_ID_LEN + 4 };

void archive_ref_encode(const struct archive_ref *ref, uint8_t ret[ARCHIVE_REF_LEN]);

/* False for a size that no chunk has. */
bool archive_ref_decode(const uint8_t bytes[ARCHIVE_REF_LEN], struct archive_ref *ret);

/* Writes the key of a chunk. */
void archive_chunk_key(const struct archive_session *session, const uint8_t id[ARCHIVE_ID_LEN],
                       char ret[REMOTE_KEY_MAX + 1]);

/* Reads the identity from a key below OWNER/chunks/; false for keys of no chunk. */
bool archive_chunk_id(const struct archive_session *session, const char *key,
                      uint8_t ret[ARCHIVE_ID_LEN]);

/* Sets the identity and size of a content. */
int archive_chunk_identify(const struct archive_session *session, const struct buf *content,
                           struct archive_ref *ret, struct err *err);

/* Fills ret, which is empty, with the content of a chunk, whose identity and size were verified. */
int archive_chunk_get(const struct archive_session *session, struct archive_scratch *scratch,
                      const struct archive_ref *ref, struct buf *ret, struct err *err);

/* Makes sure that the storage has a chunk: on return it was read back and compared with the
 * content. One that is damaged is replaced. *ret_stored: bytes that were written, 0 if it was
 * there. */
int archive_chunk_store(const struct archive_session *session, struct archive_scratch *scratch,
                        const struct archive_ref *ref, const struct buf *content,
                        uint64_t *ret_stored, struct err *err);
