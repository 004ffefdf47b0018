// SPDX-License-Identifier: Apache-2.0
/* Brings sandboxes from other hosts. Nothing in the archive is trusted: the sandbox is created as
 * by a create of the caller.
 *
 * The record of the archive exists before the claim, and says "moved" before the archive goes; so a
 * killed daemon gives the claim back, or finishes (settle.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/backup/archive_name.h"
#include "host/backup/claim.h"
#include "host/backup/deep_pause.h"
#include "host/backup/remote_store.h"
#include "host/backup/settle.h"
#include "host/backup/transfer.h"
#include "host/bundle/import.h"
#include "host/core/host_internal.h"
#include "host/registry/archive.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/bundle/bundle.h"

enum { ID_DIGITS = 16 };

struct move {
    struct host *host;
    const struct caller *caller;
    struct archive_store store;
    struct archive_record record;
    char archive[ARCHIVE_NAME_MAX + 1];
    json_t *description;
    uint64_t created_ms;
};

static int not_found(const char *id, struct err *err)
{
    return err_refuse(err, CAUSE_SESSION_NOT_FOUND, "no sandbox '%.130s'", id);
}

static bool is_whole_id(const char *word)
{
    const char *digits = word + strlen(SANDBOX_ID_PREFIX);

    return strncmp(word, SANDBOX_ID_PREFIX, strlen(SANDBOX_ID_PREFIX)) == 0 &&
           strspn(digits, "0123456789abcdef") == ID_DIGITS && digits[ID_DIGITS] == '\0';
}

/* Takes the newest archive. A host that died while it made one may have left an older one. */
static int archive_note(void *context, const struct archive_info *info)
{
    struct move *move = context;
    const char *mark = strrchr(info->name, '/');
    json_t *description = archive_description_parse(info->description);

    if (!mark || strlen(mark + 1) != ARCHIVE_MARK_LEN || info->created_ms < move->created_ms ||
        !description) {
        json_decref(description);
        return 0;
    }
    json_decref(move->description);
    move->description = description;
    move->created_ms = info->created_ms;
    memcpy(move->record.mark, mark + 1, sizeof(move->record.mark));
    return 0;
}

static int archive_choose(struct move *move, const char *id, struct err *err)
{
    char prefix[ARCHIVE_NAME_MAX + 1];
    int r;

    (void)snprintf(prefix, sizeof(prefix), ARCHIVE_PAUSES "%s/", id);
    r = archive_list(&move->store, prefix, archive_note, move, err);
    if (r < 0)
        return r;
    if (!move->description ||
        strcmp(json_string_value(json_object_get(move->description, "sandbox")), id) != 0)
        return not_found(id, err);
    archive_pause_name(id, move->record.mark, move->archive);
    return 0;
}

static const char *text_or_null(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text && *text ? text : NULL;
}

static int sandbox_bring(struct move *move, struct sandbox **ret, struct err *err)
{
    cleanup_with(bundle_spool_done) struct bundle_spool spool = { .fd = -EBADF };
    const struct import_spec spec = {
        .id = move->record.sandbox,
        .name = text_or_null(move->description, "name"),
        .template = text_or_null(move->description, "template"),
        .flushes = true,
    };
    int r = transfer_in(move->host, NULL, &move->store, move->archive, &spool, err);

    fault_point("move.received");
    return r == 0 ? import_sandbox(move->host, move->caller, &spool, &spec, ret, err) : r;
}

static int move_claim(struct move *move, struct err *err)
{
    struct err ignored;
    int r = registry_put_archive(move->host->registry, &move->record, err);

    fault_point("move.noted");
    if (r < 0)
        return r;
    r = claim_take(&move->store, move->record.mark, err);
    fault_point("move.claimed");
    if (r < 0)
        (void)registry_remove_archive(move->host->registry, move->record.mark, &ignored);
    if (r < 0 && err->kind == ERR_BUSY)
        r = err_set(err, ERR_BUSY, "sandbox '%s' is being resumed on another host",
                    move->record.sandbox);
    return r;
}

static int move_run(struct move *move, struct sandbox **ret, struct err *err)
{
    struct err ignored;
    int r = move_claim(move, err);

    if (r < 0)
        return r;
    r = sandbox_bring(move, ret, err);
    fault_point("move.made");
    if (r < 0) {
        if (claim_drop(&move->store, move->record.mark, &ignored) == 0)
            (void)registry_remove_archive(move->host->registry, move->record.mark, &ignored);
        return err_wrap(err, "sandbox '%s' stays deep-paused", move->record.sandbox);
    }
    move->record.stage = ARCHIVE_MOVED;
    (void)registry_put_archive(move->host->registry, &move->record, &ignored);
    fault_point("move.recorded");
    return 0;
}

int sandbox_move_in(struct host *host, const struct caller *caller, const char *id,
                    struct sandbox **ret, struct err *err)
{
    struct move move = {
        .host = host,
        .caller = caller,
        .record = { .stage = ARCHIVE_CLAIMED },
    };
    int r;

    if (!remote_store_is_set(host) || !is_whole_id(id))
        return not_found(id, err);
    (void)snprintf(move.record.sandbox, sizeof(move.record.sandbox), "%s", id);
    (void)snprintf(move.record.owner, sizeof(move.record.owner), "%s", caller->owner);
    r = remote_store_open(host, move.record.owner, &move.store, err);
    if (r == 0)
        r = archive_choose(&move, id, err);
    if (r == 0) {
        atomic_fetch_add(&host->moves, 1);
        r = move_run(&move, ret, err);
        atomic_fetch_sub(&host->moves, 1);
        settle_wake(host);
    }
    json_decref(move.description);
    return r;
}
