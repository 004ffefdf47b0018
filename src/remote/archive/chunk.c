// SPDX-License-Identifier: Apache-2.0
#include "remote/archive/chunk.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/text/hex.h"

void archive_ref_encode(const struct archive_ref *ref, uint8_t ret[ARCHIVE_REF_LEN])
{
    uint32_t size = htole32(ref->size);

    memcpy(ret, ref->id, ARCHIVE_ID_LEN);
    memcpy(ret + ARCHIVE_ID_LEN, &size, sizeof(size));
}

bool archive_ref_decode(const uint8_t bytes[ARCHIVE_REF_LEN], struct archive_ref *ret)
{
    uint32_t size;

    memcpy(ret->id, bytes, ARCHIVE_ID_LEN);
    memcpy(&size, bytes + ARCHIVE_ID_LEN, sizeof(size));
    ret->size = le32toh(size);
    return ret->size > 0 && ret->size <= ARCHIVE_CHUNK_MAX;
}

void archive_chunk_key(const struct archive_session *session, const uint8_t id[ARCHIVE_ID_LEN],
                       char ret[REMOTE_KEY_MAX + 1])
{
    char hex[HEX_SIZE(ARCHIVE_ID_LEN)];

    hex_encode(id, ARCHIVE_ID_LEN, hex);
    (void)snprintf(ret, REMOTE_KEY_MAX + 1, "%s/chunks/%.2s/%s", session->store.owner, hex, hex);
}

bool archive_chunk_id(const struct archive_session *session, const char *key,
                      uint8_t ret[ARCHIVE_ID_LEN])
{
    const char *slash = strrchr(key, '/');
    char again[REMOTE_KEY_MAX + 1];

    if (!slash || !hex_decode(slash + 1, ret, ARCHIVE_ID_LEN))
        return false;
    archive_chunk_key(session, ret, again);
    return strcmp(key, again) == 0;
}

int archive_chunk_identify(const struct archive_session *session, const struct buf *content,
                           struct archive_ref *ret, struct err *err)
{
    int r = archive_identify(&session->keys, content->data, content->len, ret->id);

    ret->size = (uint32_t)content->len;
    return r < 0 ? err_sys(err, r, "compute the name of a chunk") : 0;
}

/* Sets the error for an object that cannot be what a list says. Returns -EBADMSG. */
static int chunk_refused(const struct archive_session *session, const char *key, const char *why,
                         struct err *err)
{
    (void)err_set(err, ERR_INTERNAL, "object '%.110s' in %.60s %s", key,
                  remote_where(session->store.remote), why);
    return -EBADMSG;
}

/* Opens what scratch->object has into ret, which is empty. */
static int chunk_open(const struct archive_session *session, struct archive_scratch *scratch,
                      const struct archive_ref *ref, struct buf *ret)
{
    struct archive_subject subject = {
        .keys = &session->keys,
        .kind = ARCHIVE_CHUNK,
        .id = ref->id,
    };
    int r = archive_object_open(scratch->codec, &subject, scratch->object.data, scratch->object.len,
                                ret);

    return r == 0 && ret->len != ref->size ? -EBADMSG : r;
}

/* Replaces ret by the content of a chunk, whose size was verified. Returns 0, -ENOENT or -EBADMSG
 * for a chunk that is missing or damaged, or fails; always with an error. */
static int chunk_load(const struct archive_session *session, struct archive_scratch *scratch,
                      const struct archive_ref *ref, struct buf *ret, struct err *err)
{
    char key[REMOTE_KEY_MAX + 1];
    int r;

    archive_chunk_key(session, ref->id, key);
    buf_clear(&scratch->object);
    buf_clear(ret);
    r = remote_get(session->store.remote, key, &scratch->object, err);
    if (r < 0 && err->kind == ERR_NOT_FOUND) {
        (void)chunk_refused(session, key, "is missing", err);
        return -ENOENT;
    }
    if (r < 0)
        return err->kind == ERR_EXHAUSTED ? chunk_refused(session, key, "is too long", err) : r;
    r = chunk_open(session, scratch, ref, ret);
    if (r == -ENOKEY)
        return chunk_refused(session, key, archive_seal_text(session), err);
    if (r == -EBADMSG || r == -ENOBUFS)
        return chunk_refused(session, key, "is damaged", err);
    return r < 0 ? err_sys(err, r, "open object '%.110s'", key) : 0;
}

int archive_chunk_get(const struct archive_session *session, struct archive_scratch *scratch,
                      const struct archive_ref *ref, struct buf *ret, struct err *err)
{
    struct archive_ref found;
    char key[REMOTE_KEY_MAX + 1];
    int r = chunk_load(session, scratch, ref, ret, err);

    if (r < 0)
        return r;
    r = archive_chunk_identify(session, ret, &found, err);
    if (r == 0 && memcmp(found.id, ref->id, ARCHIVE_ID_LEN) != 0) {
        archive_chunk_key(session, ref->id, key);
        r = chunk_refused(session, key, "is damaged", err);
    }
    return r;
}

/* Returns whether the storage has the chunk with this content, or fails. */
static int chunk_compare(const struct archive_session *session, struct archive_scratch *scratch,
                         const struct archive_ref *ref, const struct buf *content, struct err *err)
{
    int r = chunk_load(session, scratch, ref, &scratch->content, err);

    if (r == -ENOENT || r == -EBADMSG)
        return 0;
    if (r < 0)
        return r;
    return memcmp(scratch->content.data, content->data, content->len) == 0;
}

int archive_chunk_store(const struct archive_session *session, struct archive_scratch *scratch,
                        const struct archive_ref *ref, const struct buf *content,
                        uint64_t *ret_stored, struct err *err)
{
    struct archive_subject subject = {
        .keys = &session->keys,
        .kind = ARCHIVE_CHUNK,
        .id = ref->id,
    };
    char key[REMOTE_KEY_MAX + 1];
    int r = chunk_compare(session, scratch, ref, content, err);

    *ret_stored = 0;
    if (r != 0)
        return r < 0 ? r : 0;
    archive_chunk_key(session, ref->id, key);
    buf_clear(&scratch->object);
    r = archive_object_make(scratch->codec, &subject, content->data, content->len,
                            &scratch->object);
    if (r < 0)
        return err_sys(err, r, "compress or seal chunk '%.110s'", key);
    *ret_stored = scratch->object.len;
    r = remote_put(session->store.remote, key, scratch->object.data, scratch->object.len, err);
    if (r < 0)
        return r;
    r = chunk_compare(session, scratch, ref, content, err);
    if (r == 0)
        return err_set(err, ERR_INTERNAL, "%.60s returns other bytes than were written to '%.110s'",
                       remote_where(session->store.remote), key);
    return r < 0 ? r : 0;
}
