// SPDX-License-Identifier: Apache-2.0
#include "host/backup/claim.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/backup/remote_store.h"
#include "remote/remote.h"

enum { CLAIM_TRIES = 4 };

static const char *claim_key(const struct archive_store *store, const char *mark,
                             char into[static REMOTE_KEY_MAX + 1])
{
    (void)snprintf(into, REMOTE_KEY_MAX + 1, "%s/claims/%s", store->owner, mark);
    return into;
}

int claim_find(const struct archive_store *store, const char *mark, enum claim_holder *ret,
               struct err *err)
{
    cleanup_with(buf_done) struct buf holder = BUF_INIT(REMOTE_HOST_LEN);
    char key[REMOTE_KEY_MAX + 1];
    struct err why = { 0 };
    int r = remote_get(store->remote, claim_key(store, mark, key), &holder, &why);
    bool is_ours = r == 0 && holder.len == strlen(store->host) &&
                   memcmp(holder.data, store->host, holder.len) == 0;

    if (r < 0 && why.kind != ERR_NOT_FOUND) {
        *err = why;
        return r;
    }
    *ret = is_ours ? CLAIM_OURS : r == 0 ? CLAIM_FOREIGN : CLAIM_NONE;
    return 0;
}

/* A storage that cannot create an object only if there is none lets two hosts write; both then read
 * what one of them has written. A claim that is gone by then was removed by this host, which may
 * tidy the same archive in two threads. */
int claim_take(const struct archive_store *store, const char *mark, struct err *err)
{
    enum claim_holder holder = CLAIM_NONE;
    char key[REMOTE_KEY_MAX + 1];
    int r = 0;

    for (int tries = 0; r == 0 && holder == CLAIM_NONE && tries < CLAIM_TRIES; tries++) {
        r = remote_put_absent(store->remote, claim_key(store, mark, key), store->host,
                              strlen(store->host), err);
        if (r < 0 && err->kind != ERR_EXISTS)
            return r;
        *err = (struct err){ 0 };
        r = claim_find(store, mark, &holder, err);
    }
    if (r == 0 && holder != CLAIM_OURS)
        r = err_set(err, ERR_BUSY, "another host has claimed the archive");
    return r;
}

int claim_drop(const struct archive_store *store, const char *mark, struct err *err)
{
    enum claim_holder holder = CLAIM_NONE;
    int r = claim_find(store, mark, &holder, err);

    return r == 0 && holder == CLAIM_OURS ? claim_remove(store, mark, err) : r;
}

int claim_remove(const struct archive_store *store, const char *mark, struct err *err)
{
    char key[REMOTE_KEY_MAX + 1];

    return remote_remove(store->remote, claim_key(store, mark, key), err);
}
