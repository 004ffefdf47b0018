// SPDX-License-Identifier: Apache-2.0
#include "remote/archive/list.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "remote/backend.h"

enum { PIECE_LEN = ARCHIVE_PIECE_REFS * ARCHIVE_REF_LEN };

struct list_head {
    uint64_t size, stored, created_ms;
    uint32_t chunks, description_len;
    uint8_t random[ARCHIVE_LIST_RANDOM];
};

_Static_assert(sizeof(struct list_head) == 48, "the head has no gaps");
_Static_assert(sizeof(struct list_head) + ARCHIVE_DESCRIPTION_MAX +
                       (size_t)ARCHIVE_PIECES_MAX * ARCHIVE_REF_LEN <=
                   ARCHIVE_LIST_MAX,
               "the longest list");
_Static_assert(ARCHIVE_PIECE_REFS *ARCHIVE_REF_LEN <= ARCHIVE_CHUNK_MAX, "a piece is a chunk");

void archive_list_done(struct archive_list *list)
{
    free(list->description);
    list->description = NULL;
}

static uint32_t pieces_of(uint32_t chunks)
{
    return (chunks + ARCHIVE_PIECE_REFS - 1) / ARCHIVE_PIECE_REFS;
}

/* Returns how many chunks a piece has. */
static uint32_t piece_refs(const struct archive_list *list, uint32_t piece)
{
    uint32_t left = list->chunks - piece * ARCHIVE_PIECE_REFS;

    return left < ARCHIVE_PIECE_REFS ? left : ARCHIVE_PIECE_REFS;
}

int archive_list_encode(const struct archive_list *list, struct buf *ret)
{
    size_t description_len = strlen(list->description);
    struct list_head head = {
        .size = htole64(list->size),
        .stored = htole64(list->stored),
        .created_ms = htole64(list->created_ms),
        .chunks = htole32(list->chunks),
        .description_len = htole32((uint32_t)description_len),
    };
    int r;

    memcpy(head.random, list->random, sizeof(head.random));
    r = buf_add(ret, &head, sizeof(head));
    if (r == 0)
        r = buf_add(ret, list->description, description_len);
    for (uint32_t i = 0; r == 0 && i < list->pieces; i++) {
        uint8_t ref[ARCHIVE_REF_LEN];

        archive_ref_encode(&list->piece[i], ref);
        r = buf_add(ret, ref, sizeof(ref));
    }
    return r;
}

static bool pieces_decode(const uint8_t *bytes, struct archive_list *ret)
{
    for (uint32_t i = 0; i < ret->pieces; i++) {
        if (!archive_ref_decode(bytes + (size_t)i * ARCHIVE_REF_LEN, &ret->piece[i]) ||
            ret->piece[i].size != piece_refs(ret, i) * ARCHIVE_REF_LEN)
            return false;
    }
    return true;
}

bool archive_list_decode(const void *content, size_t len, struct archive_list *ret)
{
    struct list_head head;
    const uint8_t *rest;
    size_t description_len;

    if (len < sizeof(head))
        return false;
    memcpy(&head, content, sizeof(head));
    rest = (const uint8_t *)content + sizeof(head);
    description_len = le32toh(head.description_len);
    *ret = (struct archive_list){
        .size = le64toh(head.size),
        .stored = le64toh(head.stored),
        .created_ms = le64toh(head.created_ms),
        .chunks = le32toh(head.chunks),
    };
    memcpy(ret->random, head.random, sizeof(ret->random));
    if (ret->chunks > ARCHIVE_CHUNKS_MAX || ret->size > ARCHIVE_SIZE_MAX ||
        description_len > ARCHIVE_DESCRIPTION_MAX)
        return false;
    ret->pieces = pieces_of(ret->chunks);
    if (len != sizeof(head) + description_len + (size_t)ret->pieces * ARCHIVE_REF_LEN ||
        memchr(rest, '\0', description_len) || !pieces_decode(rest + description_len, ret))
        return false;
    ret->description = xcalloc(1, description_len + 1);
    memcpy(ret->description, rest, description_len);
    return true;
}

/* --- in the storage --------------------------------------------------------------------------- */

int archive_list_key(const struct archive_session *session, const char *name,
                     char ret[REMOTE_KEY_MAX + 1], struct err *err)
{
    if (!remote_key_is(name) || strlen(name) > ARCHIVE_NAME_MAX)
        return err_set(err, ERR_INVALID, "'%.80s' is no name of an archive", name);
    (void)snprintf(ret, REMOTE_KEY_MAX + 1, "%s/archives/%s", session->store.owner, name);
    return 0;
}

/* Sets the error for a result of archive_object_open. Returns -EBADMSG where the list is at fault.
 */
static int list_refused(const struct archive_session *session, const char *key, int r,
                        struct err *err)
{
    const char *why = "is damaged, or sealed with another key";

    if (r == -ENOKEY)
        why = archive_seal_text(session);
    else if (r != -EBADMSG && r != -ENOBUFS)
        return err_sys(err, r, "open archive '%.110s'", key);
    (void)err_set(err, ERR_INTERNAL, "archive '%.110s' in %.60s %s", key,
                  remote_where(session->store.remote), why);
    (void)err_remedy(err, "configure the key that it was written with, or remove the archive");
    return -EBADMSG;
}

/* The identity of a list is that of its place: under another key of the storage it is refused. */
static int list_subject(const struct archive_session *session, const char *key,
                        uint8_t ret_id[ARCHIVE_ID_LEN], struct archive_subject *ret)
{
    *ret = (struct archive_subject){ .keys = &session->keys, .kind = ARCHIVE_LIST, .id = ret_id };
    return archive_identify(&session->keys, key, strlen(key), ret_id);
}

/* Reads the content of a list to `content`, which is empty. */
static int list_load(const struct archive_session *session, struct archive_scratch *scratch,
                     const char *key, struct buf *content, struct err *err)
{
    uint8_t id[ARCHIVE_ID_LEN];
    struct archive_subject subject;
    int r;

    buf_clear(&scratch->object);
    r = remote_get(session->store.remote, key, &scratch->object, err);
    if (r < 0)
        return err->kind == ERR_EXHAUSTED ? list_refused(session, key, -EBADMSG, err) : r;
    r = list_subject(session, key, id, &subject);
    if (r == 0)
        r = archive_object_open(scratch->codec, &subject, scratch->object.data, scratch->object.len,
                                content);
    return r < 0 ? list_refused(session, key, r, err) : 0;
}

int archive_list_get(const struct archive_session *session, struct archive_scratch *scratch,
                     const char *name, struct archive_list *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(ARCHIVE_LIST_MAX);
    char key[REMOTE_KEY_MAX + 1];
    int r = archive_list_key(session, name, key, err);

    if (r == 0)
        r = list_load(session, scratch, key, &content, err);
    if (r < 0 && err->kind == ERR_NOT_FOUND)
        return err_set(err, ERR_NOT_FOUND, "no archive '%.110s' in %.60s", key,
                       remote_where(session->store.remote));
    if (r == 0 && !archive_list_decode(content.data, content.len, ret))
        r = list_refused(session, key, -EBADMSG, err);
    return r;
}

/* Returns whether the storage has this list under the key, or fails. */
static int list_compare(const struct archive_session *session, struct archive_scratch *scratch,
                        const char *key, const struct buf *wanted, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(ARCHIVE_LIST_MAX);
    int r = list_load(session, scratch, key, &content, err);

    if (r < 0)
        return r == -EBADMSG || err->kind == ERR_NOT_FOUND ? 0 : r;
    return content.len == wanted->len && memcmp(content.data, wanted->data, wanted->len) == 0;
}

/* A server may have stored the list although the put failed, or even because it was sent twice. */
static int list_write(const struct archive_session *session, struct archive_scratch *scratch,
                      const char *key, const struct buf *content, struct err *err)
{
    struct remote *remote = session->store.remote;
    struct err second;
    int r = remote_put_absent(remote, key, scratch->object.data, scratch->object.len, err);
    int same = list_compare(session, scratch, key, content, r < 0 ? &second : err);

    if (same == 1)
        return 0;
    if (r < 0)
        return r;
    if (same < 0)
        return same;
    return err_set(err, ERR_INTERNAL, "%.60s returns other bytes than were written to '%.110s'",
                   remote_where(remote), key);
}

int archive_list_put(const struct archive_session *session, struct archive_scratch *scratch,
                     const char *name, const struct archive_list *list, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(ARCHIVE_LIST_MAX);
    uint8_t id[ARCHIVE_ID_LEN];
    struct archive_subject subject;
    char key[REMOTE_KEY_MAX + 1];
    uint64_t size;
    int r = archive_list_key(session, name, key, err);

    if (r < 0)
        return r;
    /* There are servers that ignore that the key should have no object. */
    r = remote_size(session->store.remote, key, &size, err);
    if (r == 0)
        return err_set(err, ERR_EXISTS, "archive '%.110s' exists in %.60s", key,
                       remote_where(session->store.remote));
    if (err->kind != ERR_NOT_FOUND)
        return r;
    r = archive_list_encode(list, &content);
    if (r == 0)
        r = list_subject(session, key, id, &subject);
    buf_clear(&scratch->object);
    if (r == 0)
        r = archive_object_make(scratch->codec, &subject, content.data, content.len,
                                &scratch->object);
    if (r < 0)
        return err_sys(err, r, "make the list of archive '%.110s'", key);
    return list_write(session, scratch, key, &content, err);
}

int archive_pieces_store(const struct archive_session *session, struct archive_scratch *scratch,
                         const struct buf *refs, struct archive_list *list, struct err *err)
{
    int r = 0;

    list->chunks = (uint32_t)(refs->len / ARCHIVE_REF_LEN);
    list->pieces = pieces_of(list->chunks);
    for (uint32_t i = 0; r == 0 && i < list->pieces; i++) {
        struct buf piece = {
            .data = refs->data + (size_t)i * PIECE_LEN,
            .len = (size_t)piece_refs(list, i) * ARCHIVE_REF_LEN,
        };
        uint64_t stored = 0;

        r = archive_chunk_identify(session, &piece, &list->piece[i], err);
        if (r == 0)
            r = archive_chunk_store(session, scratch, &list->piece[i], &piece, &stored, err);
        list->stored += stored;
    }
    return r;
}

/* --- cursor ----------------------------------------------------------------------------------- */

void archive_cursor_init(struct archive_cursor *cursor, const struct archive_session *session,
                         struct archive_scratch *scratch, const struct archive_list *list)
{
    *cursor = (struct archive_cursor){
        .session = session,
        .scratch = scratch,
        .list = list,
        .piece = BUF_INIT(ARCHIVE_CHUNK_MAX),
    };
}

void archive_cursor_done(struct archive_cursor *cursor)
{
    buf_done(&cursor->piece);
}

int archive_cursor_next(struct archive_cursor *cursor, struct archive_ref *ret, struct err *err)
{
    const struct archive_list *list = cursor->list;
    uint32_t piece = cursor->next / ARCHIVE_PIECE_REFS, at = cursor->next % ARCHIVE_PIECE_REFS;
    int r = 0;

    if (cursor->next == list->chunks) {
        if (cursor->size != list->size)
            return err_set(err, ERR_INTERNAL, "an archive has chunks of %llu bytes, not of %llu",
                           (unsigned long long)cursor->size, (unsigned long long)list->size);
        return 0;
    }
    if (at == 0)
        r = archive_chunk_get(cursor->session, cursor->scratch, &list->piece[piece], &cursor->piece,
                              err);
    if (r < 0)
        return r;
    if (!archive_ref_decode((const uint8_t *)cursor->piece.data + (size_t)at * ARCHIVE_REF_LEN,
                            ret))
        return err_set(err, ERR_INTERNAL, "an archive has a chunk of %u bytes; %d are the limit",
                       ret->size, ARCHIVE_CHUNK_MAX);
    cursor->next++;
    cursor->size += ret->size;
    return 1;
}
