// SPDX-License-Identifier: Apache-2.0
#include "remote/archive/marker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"

enum { RANDOM_BYTES = 16, REFRESH_MS = 10 * 60 * 1000 };

#define EXPIRY_MS (UINT64_C(24) * 3600 * 1000)

static const char *const kinds[] = {
    [ARCHIVE_WRITING] = "writing",
    [ARCHIVE_COLLECTING] = "collecting",
};

int archive_marker_put(const struct archive_session *session, enum archive_marker_kind kind,
                       struct archive_marker *ret, struct err *err)
{
    const struct archive_store *store = &session->store;
    char random[HEX_SIZE(RANDOM_BYTES)];
    int r = random_hex(random, RANDOM_BYTES);

    if (r < 0)
        return err_sys(err, r, "get random bytes");
    (void)snprintf(ret->key, sizeof(ret->key), "%s/markers/%s-%s-%s", store->owner, kinds[kind],
                   store->host, random);
    ret->put_ms = clock_ms();
    r = remote_put(store->remote, ret->key, "", 0, err);
    /* A put that has failed may have stored it. */
    if (r < 0)
        archive_marker_remove(session, ret);
    return r;
}

int archive_marker_check(const struct archive_session *session, struct archive_marker *marker,
                         struct err *err)
{
    struct remote *remote = session->store.remote;
    uint64_t size, now_ms = clock_ms();
    int r = remote_size(remote, marker->key, &size, err);

    if (r < 0 && err->kind == ERR_NOT_FOUND)
        return err_set(err, ERR_BUSY, "object '%.110s' in %.60s was removed", marker->key,
                       remote_where(remote));
    if (r < 0 || now_ms - marker->put_ms < REFRESH_MS)
        return r;
    r = remote_put(remote, marker->key, "", 0, err);
    if (r == 0)
        marker->put_ms = now_ms;
    return r;
}

int archive_marker_refresh(const struct archive_session *session, struct archive_marker *marker,
                           struct err *err)
{
    if (clock_ms() - marker->put_ms < REFRESH_MS)
        return 0;
    return archive_marker_check(session, marker, err);
}

void archive_marker_remove(const struct archive_session *session, struct archive_marker *marker)
{
    struct err ignored;

    if (*marker->key != '\0')
        (void)remote_remove(session->store.remote, marker->key, &ignored);
    *marker->key = '\0';
}

/* --- find ------------------------------------------------------------------------------------- */

static int time_found(void *context, const struct remote_object *object)
{
    uint64_t *ret_ms = context;

    *ret_ms = object->modified_ms;
    return 0;
}

/* Returns the time of the storage at which a marker was put last. */
static int marker_time(const struct archive_session *session, const struct archive_marker *marker,
                       uint64_t *ret_ms, struct err *err)
{
    int r;

    *ret_ms = 0;
    r = remote_list(session->store.remote, marker->key, time_found, ret_ms, err);
    if (r == 0 && *ret_ms == 0)
        return err_set(err, ERR_BUSY, "object '%.110s' in %.60s was removed", marker->key,
                       remote_where(session->store.remote));
    return r;
}

struct search {
    const struct archive_session *session;
    uint64_t now_ms; /* by the clock of the storage */
    char *ret_key;
    bool is_found;
    struct err *err;
};

static int marker_found(void *context, const struct remote_object *object)
{
    struct search *search = context;

    if (object->modified_ms + EXPIRY_MS < search->now_ms)
        return remote_remove(search->session->store.remote, object->key, search->err);
    (void)snprintf(search->ret_key, REMOTE_KEY_MAX + 1, "%s", object->key);
    search->is_found = true;
    return 0;
}

int archive_marker_find(const struct archive_session *session, const struct archive_marker *own,
                        enum archive_marker_kind kind, char ret_key[REMOTE_KEY_MAX + 1],
                        struct err *err)
{
    cleanup_free char *prefix = xasprintf("%s/markers/%s-", session->store.owner, kinds[kind]);
    struct search search = { .session = session, .ret_key = ret_key, .err = err };
    int r = marker_time(session, own, &search.now_ms, err);

    search.now_ms += clock_ms() - own->put_ms;
    if (r == 0)
        r = remote_list(session->store.remote, prefix, marker_found, &search, err);
    return r < 0 ? r : search.is_found;
}

/* --- forget ----------------------------------------------------------------------------------- */

static int marker_forget(void *context, const struct remote_object *object)
{
    struct search *search = context;
    const char *name = strrchr(object->key, '/') + 1, *host = strchr(name, '-');
    size_t len = strlen(search->session->store.host);

    /* Other hosts may have names that begin with this one. */
    if (!host || strncmp(host + 1, search->session->store.host, len) != 0 || host[1 + len] != '-' ||
        !hex_is_text(host + len + 2, 2 * (size_t)RANDOM_BYTES))
        return 0;
    return remote_remove(search->session->store.remote, object->key, search->err);
}

int archive_forget_markers(const struct archive_store *store, struct err *err)
{
    cleanup_with(archive_session_done) struct archive_session session = { 0 };
    struct search search = { .session = &session, .err = err };
    cleanup_free char *prefix = NULL;
    int r = archive_session_open(store, &session, err);

    if (r < 0)
        return r;
    prefix = xasprintf("%s/markers/", store->owner);
    return remote_list(store->remote, prefix, marker_forget, &search, err);
}
