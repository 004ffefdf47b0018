// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "remote/archive/list.h"

void archive_info_take(const char *name, struct archive_list *list, struct archive_info *ret)
{
    *ret = (struct archive_info){
        .name = xstrdup(name),
        .size = list->size,
        .stored = list->stored,
        .created_ms = list->created_ms,
        .description = TAKE_PTR(list->description),
    };
}

void archive_info_done(struct archive_info *info)
{
    free((void *)(uintptr_t)info->name);
    free((void *)(uintptr_t)info->description);
    info->name = info->description = NULL;
}

int archive_find(const struct archive_store *store, const char *name, struct archive_info *ret,
                 struct err *err)
{
    cleanup_with(archive_session_done) struct archive_session session = { 0 };
    cleanup_with(archive_scratch_done) struct archive_scratch scratch = { 0 };
    cleanup_with(archive_list_done) struct archive_list list = { 0 };
    int r = archive_session_open(store, &session, err);

    if (r < 0)
        return r;
    archive_scratch_init(&scratch);
    r = archive_list_get(&session, &scratch, name, &list, err);
    if (r == 0)
        archive_info_take(name, &list, ret);
    return r;
}

int archive_remove(const struct archive_store *store, const char *name, struct err *err)
{
    cleanup_with(archive_session_done) struct archive_session session = { 0 };
    char key[REMOTE_KEY_MAX + 1];
    int r = archive_session_open(store, &session, err);

    if (r == 0)
        r = archive_list_key(&session, name, key, err);
    return r < 0 ? r : remote_remove(store->remote, key, err);
}

/* --- list ------------------------------------------------------------------------------------- */

struct listing {
    struct archive_session session;
    struct archive_scratch scratch;
    archive_found_fn *found;
    void *context;
    struct err *err;
};

static int listing_object(void *context, const struct remote_object *object)
{
    struct listing *listing = context;
    cleanup_with(archive_list_done) struct archive_list list = { 0 };
    cleanup_with(archive_info_done) struct archive_info info = { 0 };
    const char *name = object->key + strlen(listing->session.store.owner) + strlen("/archives/");
    struct err err = { 0 };
    int r;

    if (strlen(name) > ARCHIVE_NAME_MAX)
        return 0;
    r = archive_list_get(&listing->session, &listing->scratch, name, &list, &err);
    if (r < 0 && err.kind == ERR_NOT_FOUND) /* removed meanwhile */
        return 0;
    if (r < 0 && r != -EBADMSG) {
        *listing->err = err;
        return r;
    }
    if (r < 0)
        list.description = xstrdup("");
    archive_info_take(name, &list, &info);
    info.is_damaged = r < 0;
    return listing->found(listing->context, &info);
}

int archive_list(const struct archive_store *store, const char *prefix, archive_found_fn *found,
                 void *context, struct err *err)
{
    cleanup_free char *key_prefix = xasprintf("%s/archives/%s", store->owner, prefix);
    struct listing listing = { .found = found, .context = context, .err = err };
    int r = archive_session_open(store, &listing.session, err);

    if (r < 0)
        return r;
    archive_scratch_init(&listing.scratch);
    r = remote_list(store->remote, key_prefix, listing_object, &listing, err);
    archive_scratch_done(&listing.scratch);
    archive_session_done(&listing.session);
    return r;
}
