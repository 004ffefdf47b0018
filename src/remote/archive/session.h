/* What the calls on one owner's archives share: the storage, the keys, and work memory. */
#pragma once

#include "base/buf.h"
#include "remote/archive.h"
#include "remote/archive/keys.h"
#include "remote/archive/object.h"
#include "remote/remote.h"

enum { ARCHIVE_PART_MAX = 128 }; /* bytes of an owner or a host */

struct archive_session {
    struct archive_store store;
    struct archive_keys keys;
};

/* Checks a store and derives its keys. */
int archive_session_open(const struct archive_store *store, struct archive_session *ret,
                         struct err *err);
void archive_session_done(struct archive_session *session);

/* Says what is wrong with an object that archive_object_open refuses with -ENOKEY. */
const char *archive_seal_text(const struct archive_session *session);

/* The work memory of one thread. */
struct archive_scratch {
    struct archive_codec *codec;
    struct buf object, content;
};

void archive_scratch_init(struct archive_scratch *scratch);
void archive_scratch_done(struct archive_scratch *scratch);
