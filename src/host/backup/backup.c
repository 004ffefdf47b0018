// SPDX-License-Identifier: Apache-2.0
#include "host/backup/backup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "host/backup/archive_name.h"
#include "host/backup/remote_store.h"
#include "host/backup/settle.h"
#include "host/backup/transfer.h"
#include "host/bundle/export.h"
#include "host/bundle/import.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/bundle/bundle.h"

enum { NAME_RANDOM_BYTES = 4 };

static void backup_archive_name(const char *name, char ret[static ARCHIVE_NAME_MAX + 1])
{
    (void)snprintf(ret, ARCHIVE_NAME_MAX + 1, ARCHIVE_BACKUPS "%s", name);
}

static void text_take(const json_t *object, const char *member, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(object, member));

    (void)snprintf(ret, size, "%s", text ? text : "");
}

/* Returns false for an archive that is no backup of this program's. */
static bool info_fill(const struct archive_info *archive, struct backup_info *ret)
{
    cleanup_json json_t *description = archive_description_parse(archive->description);

    if (!description || strncmp(archive->name, ARCHIVE_BACKUPS, strlen(ARCHIVE_BACKUPS)) != 0 ||
        strlen(archive->name + strlen(ARCHIVE_BACKUPS)) > BACKUP_NAME_MAX)
        return false;
    *ret = (struct backup_info){
        .created_ms = archive->created_ms,
        .size = archive->size,
        .stored = archive->stored,
    };
    (void)snprintf(ret->name, sizeof(ret->name), "%s", archive->name + strlen(ARCHIVE_BACKUPS));
    text_take(description, "sandbox", ret->sandbox, sizeof(ret->sandbox));
    text_take(description, "name", ret->sandbox_name, sizeof(ret->sandbox_name));
    text_take(description, "snapshot", ret->snapshot, sizeof(ret->snapshot));
    text_take(description, "template", ret->template, sizeof(ret->template));
    return true;
}

/* --- create ----------------------------------------------------------------------------------- */

/* The name begins with the id of the sandbox, so that people find it. */
static int name_make(const struct sandbox *sandbox, char ret[static ARCHIVE_NAME_MAX + 1],
                     struct err *err)
{
    char digits[2 * NAME_RANDOM_BYTES + 1], name[BACKUP_NAME_MAX + 1];
    int r = random_hex(digits, NAME_RANDOM_BYTES);

    if (r < 0)
        return err_sys(err, r, "name a backup");
    (void)snprintf(name, sizeof(name), "%s-%s", sandbox->info.id, digits);
    backup_archive_name(name, ret);
    return 0;
}

static int backup_write(struct sandbox *sandbox, const char *snapshot, struct backup_info *ret,
                        struct err *err)
{
    cleanup_free char *template = NULL, *description = NULL;
    char name[ARCHIVE_NAME_MAX + 1];
    struct archive_store store;
    struct transfer_target target = { .store = &store, .name = name };
    struct export_spec spec = { .snapshot = snapshot };
    struct archive_info archive = { .name = "", .description = "" };
    struct export *export = NULL;
    int r = remote_store_open(sandbox->host, sandbox->info.owner, &store, err);

    if (r == 0)
        r = archive_omitted_template(sandbox, &template, err);
    if (r == 0)
        r = name_make(sandbox, name, err);
    if (r < 0)
        return r;
    description = archive_describe(sandbox, store.host, template, snapshot);
    if (!description)
        return err_sys(err, -ENOMEM, "describe sandbox '%s'", sandbox->info.id);
    target.description = description;
    spec.omits_template = template && template[0];
    r = export_begin_as(sandbox, &spec, &export, err);
    if (r == 0)
        r = transfer_out(sandbox, export, &target, &archive, err);
    fault_point("backup.stored");
    export_end(export);
    if (r < 0)
        return r;
    (void)info_fill(&archive, ret);
    archive_info_done(&archive);
    return 0;
}

int backup_create(struct host *host, const struct caller *caller, const char *word,
                  const char *snapshot, struct backup_info *ret, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r = sandbox_find(host, caller, word, &sandbox, err);

    if (r == 0)
        r = backup_write(sandbox, snapshot, ret, err);
    if (r == 0)
        sandbox_event(sandbox, EVENT_BACKUP_CREATED,
                      json_pack("{s:s, s:s}", "backup", ret->name, "snapshot", ret->snapshot));
    return r;
}

/* --- list, remove ----------------------------------------------------------------------------- */

struct listing {
    const char *sandbox; /* NULL: all */
    struct backup_info *items;
    size_t count;
};

static int listing_add(void *context, const struct archive_info *archive)
{
    struct listing *listing = context;
    struct backup_info info;

    if (!info_fill(archive, &info) ||
        (listing->sandbox && strcmp(listing->sandbox, info.sandbox) != 0))
        return 0;
    listing->items = xreallocarray(listing->items, listing->count + 1, sizeof(*listing->items));
    listing->items[listing->count++] = info;
    return 0;
}

static int info_compare(const void *a, const void *b)
{
    const struct backup_info *one = a, *other = b;

    if (one->created_ms != other->created_ms)
        return one->created_ms < other->created_ms ? -1 : 1;
    return strcmp(one->name, other->name);
}

int backup_list(struct host *host, const struct caller *caller, const char *word,
                struct backup_info **ret, size_t *ret_count, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct listing listing = { .sandbox = word };
    struct archive_store store;
    struct err ignored;
    int r = remote_store_open(host, caller->owner, &store, err);

    if (r < 0)
        return r;
    if (word && sandbox_find(host, caller, word, &sandbox, &ignored) == 0)
        listing.sandbox = sandbox->info.id;
    r = archive_list(&store, ARCHIVE_BACKUPS, listing_add, &listing, err);
    if (r < 0) {
        free(listing.items);
        return r;
    }
    if (listing.count > 0)
        qsort(listing.items, listing.count, sizeof(*listing.items), info_compare);
    *ret = listing.items;
    *ret_count = listing.count;
    return 0;
}

/* Opens the storage for a backup that exists. */
static int backup_find(struct host *host, const struct caller *caller, const char *name,
                       struct archive_store *ret_store, struct backup_info *ret, struct err *err)
{
    char archive[ARCHIVE_NAME_MAX + 1];
    struct archive_info info = { 0 };
    bool is_backup;
    int r = remote_store_open(host, caller->owner, ret_store, err);

    if (r < 0)
        return r;
    backup_archive_name(name, archive);
    r = archive_find(ret_store, archive, &info, err);
    if (r < 0 && err->kind == ERR_NOT_FOUND)
        return err_set(err, ERR_NOT_FOUND, "no backup '%.130s'", name);
    if (r < 0)
        return r;
    is_backup = info_fill(&info, ret);
    archive_info_done(&info);
    return is_backup ? 0
                     : err_set(err, ERR_UNSUPPORTED,
                               "backup '%.130s' was made by a newer version of Holt", name);
}

int backup_remove(struct host *host, const struct caller *caller, const char *name, struct err *err)
{
    char archive[ARCHIVE_NAME_MAX + 1];
    struct archive_store store;
    struct backup_info info;
    int r = backup_find(host, caller, name, &store, &info, err);

    if (r < 0)
        return r;
    backup_archive_name(name, archive);
    r = archive_remove(&store, archive, err);
    if (r == 0)
        owner_event(host, caller->owner, EVENT_BACKUP_REMOVED,
                    json_pack("{s:s, s:s}", "backup", name, "of", info.sandbox));
    return r;
}

/* --- restore, collect ------------------------------------------------------------------------- */

int backup_restore(struct host *host, const struct caller *caller, const char *name,
                   const char *sandbox_name, struct sandbox **ret, struct err *err)
{
    cleanup_with(bundle_spool_done) struct bundle_spool spool = { .fd = -EBADF };
    struct import_spec spec = { .name = sandbox_name };
    char archive[ARCHIVE_NAME_MAX + 1];
    struct archive_store store;
    struct backup_info info = { .name = "" };
    int r = backup_find(host, caller, name, &store, &info, err);

    if (r < 0)
        return r;
    backup_archive_name(name, archive);
    spec.template = info.template[0] ? info.template : NULL;
    r = transfer_in(host, NULL, &store, archive, &spool, err);
    fault_point("backup.received");
    return r == 0 ? import_sandbox(host, caller, &spool, &spec, ret, err) : r;
}

int backup_collect(struct host *host, const struct caller *caller, struct archive_collected *ret,
                   struct err *err)
{
    struct archive_store store;
    int r = remote_store_open(host, caller->owner, &store, err);

    if (r == 0)
        r = settle_now(host, caller->owner, err);
    return r == 0 ? archive_collect(&store, ret, err) : r;
}
