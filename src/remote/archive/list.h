/* Lists: OWNER/archives/NAME is what names all chunks of an archive.
 *
 * The content of such an object (numbers are little-endian):
 *   8  bytes of the stream
 *   8  bytes of the chunks that this archive added
 *   8  time of creation, in milliseconds since 1970
 *   4  chunks
 *   4  bytes of the description
 *   16 random bytes, by which a writer knows its own list
 *   the description
 *   36 for each piece: identity and size
 * A piece has the identities and sizes of ARCHIVE_PIECE_REFS chunks, the last one of the rest, and
 * is stored as a chunk. */
#pragma once

#include "remote/archive/chunk.h"

enum {
    ARCHIVE_CHUNKS_MAX = 4 * 1024 * 1024, /* of the smallest size: 1 TiB */
    ARCHIVE_PIECE_REFS = 64 * 1024,
    ARCHIVE_PIECES_MAX = ARCHIVE_CHUNKS_MAX / ARCHIVE_PIECE_REFS,
    ARCHIVE_LIST_RANDOM = 16,
    ARCHIVE_LIST_MAX = 128 * 1024, /* bytes of the content */
};

#define ARCHIVE_SIZE_MAX (UINT64_C(1) << 40)

struct archive_list {
    uint64_t size, stored, created_ms;
    uint32_t chunks, pieces;
    uint8_t random[ARCHIVE_LIST_RANDOM];
    char *description;
    struct archive_ref piece[ARCHIVE_PIECES_MAX];
};

void archive_list_done(struct archive_list *list);

int archive_list_encode(const struct archive_list *list, struct buf *ret);

/* False where the content is that of no list. */
bool archive_list_decode(const void *content, size_t len, struct archive_list *ret);

/* Writes the key of an archive's list, or fails for a name that is none. */
int archive_list_key(const struct archive_session *session, const char *name,
                     char ret[REMOTE_KEY_MAX + 1], struct err *err);

/* Reads a list. Fails with ERR_NOT_FOUND, or returns -EBADMSG with an error where it is damaged or
 * sealed with another key. */
int archive_list_get(const struct archive_session *session, struct archive_scratch *scratch,
                     const char *name, struct archive_list *ret, struct err *err);

/* Stores the encoded references of all chunks as pieces, and sets what the list says of them; adds
 * to list->stored. */
int archive_pieces_store(const struct archive_session *session, struct archive_scratch *scratch,
                         const struct buf *refs, struct archive_list *list, struct err *err);

/* Stores a list under a name without an archive, and reads it back. */
int archive_list_put(const struct archive_session *session, struct archive_scratch *scratch,
                     const char *name, const struct archive_list *list, struct err *err);

/* Walks over the chunks of a list. */
struct archive_cursor {
    const struct archive_session *session;
    struct archive_scratch *scratch;
    const struct archive_list *list;
    uint32_t next;
    uint64_t size; /* of the chunks so far */
    struct buf piece;
};

void archive_cursor_init(struct archive_cursor *cursor, const struct archive_session *session,
                         struct archive_scratch *scratch, const struct archive_list *list);
void archive_cursor_done(struct archive_cursor *cursor);

/* Returns 1 with a chunk, 0 at the end, or fails. */
int archive_cursor_next(struct archive_cursor *cursor, struct archive_ref *ret, struct err *err);

/* Moves what is known of an archive to ret, to be freed by archive_info_done. */
void archive_info_take(const char *name, struct archive_list *list, struct archive_info *ret);
