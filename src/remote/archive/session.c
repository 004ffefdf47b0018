// SPDX-License-Identifier: Apache-2.0
#include "remote/archive/session.h"

#include <string.h>

#include "base/err.h"
#include "remote/backend.h"

static int part_check(const char *part, const char *what, struct err *err)
{
    if (!remote_key_is(part) || strchr(part, '/') || strlen(part) > ARCHIVE_PART_MAX)
        return err_set(err, ERR_INVALID, "'%.80s' is no name of %s in object storage", part, what);
    return 0;
}

int archive_session_open(const struct archive_store *store, struct archive_session *ret,
                         struct err *err)
{
    int r = part_check(store->owner, "an owner", err);

    if (r == 0)
        r = part_check(store->host, "a host", err);
    if (r == 0)
        r = archive_keys_derive(store, &ret->keys, err);
    if (r == 0)
        ret->store = *store;
    return r;
}

void archive_session_done(struct archive_session *session)
{
    archive_keys_wipe(&session->keys);
}

const char *archive_seal_text(const struct archive_session *session)
{
    return session->keys.is_sealed ? "is not sealed, but should be" : "is sealed; there is no key";
}

void archive_scratch_init(struct archive_scratch *scratch)
{
    *scratch = (struct archive_scratch){
        .codec = archive_codec_new(),
        .object = BUF_INIT(ARCHIVE_OBJECT_MAX),
        .content = BUF_INIT(ARCHIVE_CHUNK_MAX),
    };
}

void archive_scratch_done(struct archive_scratch *scratch)
{
    archive_codec_free(scratch->codec);
    buf_done(&scratch->object);
    buf_done(&scratch->content);
}
