// SPDX-License-Identifier: Apache-2.0
#include "host/backup/settle.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/backup/archive_name.h"
#include "host/backup/claim.h"
#include "host/backup/remote_store.h"
#include "host/core/host_internal.h"
#include "host/registry/archive.h"
#include "host/sandbox/sandbox_internal.h"

enum { REST_MS = 60 * 60 * 1000, RETRY_MS = 60 * 1000 };

struct settle {
    struct host *host;
    struct worker worker;
};

/* Returns a reference, or NULL. */
static struct sandbox *sandbox_of(struct host *host, const char *id)
{
    struct sandbox *sandbox = NULL;
    struct err ignored;

    if (sandbox_find(host, &caller_root, id, &sandbox, &ignored) < 0)
        return NULL;
    if (strcmp(sandbox->info.id, id) == 0)
        return sandbox;
    sandbox_unref(sandbox); /* another one has this name */
    return NULL;
}

/* What a record means, by the sandbox that it belongs to. */
enum settlement {
    SETTLE_LATER, /* an operation is under way */
    SETTLE_KEEP,  /* the archive has the sandbox's files */
    SETTLE_UNCLAIM,
    SETTLE_MOVED,
    SETTLE_REMOVE,
};

/* Locked. */
static enum settlement settlement_of(const struct sandbox *sandbox,
                                     const struct archive_record *record)
{
    const struct sandbox_info *info = &sandbox->info;

    if (info->state == SANDBOX_DEEP_PAUSED && strcmp(info->archive, record->mark) == 0)
        return sandbox->operation == OPERATION_NONE ? SETTLE_KEEP : SETTLE_LATER;
    if (sandbox->operation == OPERATION_DEEP_PAUSE || sandbox->operation == OPERATION_CREATE ||
        sandbox->operation == OPERATION_RESUME || sandbox->operation == OPERATION_START)
        return SETTLE_LATER;
    return record->stage == ARCHIVE_OWN ? SETTLE_REMOVE : SETTLE_MOVED;
}

static enum settlement settlement_find(struct host *host, struct sandbox *sandbox,
                                       const struct archive_record *record)
{
    if (record->stage == ARCHIVE_CLAIMED && atomic_load(&host->moves) > 0)
        return SETTLE_LATER;
    if (record->stage == ARCHIVE_MOVED)
        return SETTLE_MOVED;
    if (!sandbox)
        return record->stage == ARCHIVE_CLAIMED ? SETTLE_UNCLAIM : SETTLE_REMOVE;
    lock_scope(&sandbox->lock);
    return settlement_of(sandbox, record);
}

static int archive_exists(const struct archive_store *store, const char *name, bool *ret,
                          struct err *err)
{
    struct archive_info info;
    struct err why = { 0 };
    int r = archive_find(store, name, &info, &why);

    *ret = r == 0;
    if (r == 0) {
        archive_info_done(&info);
        return 0;
    }
    if (why.kind == ERR_NOT_FOUND)
        return 0;
    *err = why;
    return r;
}

/* Removes an archive of this host. One that another host has claimed is left to that host, which
 * removes it once the sandbox is there. Returns 1 if that is to come. */
static int archive_drop(const struct archive_store *store, const struct archive_record *record,
                        const char *name, struct err *err)
{
    enum claim_holder holder = CLAIM_NONE;
    bool is_there = false;
    int r = claim_find(store, record->mark, &holder, err);

    if (r == 0)
        r = archive_exists(store, name, &is_there, err);
    if (r == 0 && holder == CLAIM_FOREIGN && is_there)
        return 1;
    if (r == 0 && is_there)
        r = claim_take(store, record->mark, err);
    fault_point("settle.claimed");
    if (r == 0)
        r = archive_remove(store, name, err);
    fault_point("settle.removed");
    return r == 0 ? claim_remove(store, record->mark, err) : r;
}

/* Gives the claim back that a killed daemon has left, while no resume of this one can take it.
 * Returns 1 if the sandbox is in another state meanwhile. */
static int claim_return(const struct archive_store *store, struct sandbox *sandbox,
                        const struct archive_record *record, struct err *err)
{
    enum sandbox_state state;
    struct err ignored;
    int r = 1;

    if (sandbox_begin(sandbox, OPERATION_RESUME, &state, &ignored) < 0)
        return r;
    if (state == SANDBOX_DEEP_PAUSED && strcmp(sandbox->info.archive, record->mark) == 0)
        r = claim_drop(store, record->mark, err);
    sandbox_finish(sandbox, state);
    return r;
}

/* Returns the claim of a pause, or forgets a sandbox that was resumed on another host. */
static int archive_keep(const struct archive_store *store, struct sandbox *sandbox,
                        const struct archive_record *record, const char *name, struct err *err)
{
    enum claim_holder holder = CLAIM_NONE;
    bool is_there = false;
    int r = claim_find(store, record->mark, &holder, err);

    if (r < 0 || holder == CLAIM_NONE)
        return r;
    if (holder == CLAIM_OURS)
        return claim_return(store, sandbox, record, err);
    r = archive_exists(store, name, &is_there, err);
    return r == 0 && !is_there ? sandbox_destroy(sandbox, err) : r;
}

/* Returns 0, 1 if something is left for later, or an error. */
static int record_settle(struct host *host, const struct archive_record *record, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = sandbox_of(host, record->sandbox);
    enum settlement what = settlement_find(host, sandbox, record);
    char name[ARCHIVE_NAME_MAX + 1];
    struct archive_store store;
    int r;

    if (what == SETTLE_LATER)
        return 1;
    r = remote_store_open(host, record->owner, &store, err);
    if (r < 0)
        return r;
    archive_pause_name(record->sandbox, record->mark, name);
    if (what == SETTLE_KEEP)
        return archive_keep(&store, sandbox, record, name, err);
    if (what == SETTLE_UNCLAIM)
        r = claim_drop(&store, record->mark, err);
    else if (what == SETTLE_MOVED)
        r = archive_remove(&store, name, err);
    else
        r = archive_drop(&store, record, name, err);
    return r == 0 ? registry_remove_archive(host->registry, record->mark, err) : r;
}

/* Returns 0, 1 if something is left for later, or the first error. */
static int records_settle(struct host *host, const char *owner, struct err *err)
{
    cleanup_free struct archive_record *records = NULL;
    size_t count = 0;
    int r = registry_list_archives(host->registry, &records, &count, err), first = r;

    for (size_t i = 0; i < count && !atomic_load(&host->is_closing); i++) {
        struct err why = { 0 };

        if (owner && strcmp(records[i].owner, owner) != 0)
            continue;
        r = record_settle(host, &records[i], &why);
        if (r < 0 && first >= 0)
            *err = why;
        if (first == 0 || (r < 0 && first > 0))
            first = r;
    }
    return first;
}

int settle_now(struct host *host, const char *owner, struct err *err)
{
    int r = records_settle(host, owner, err);

    return r < 0 ? r : 0;
}

static void settle_main(void *argument)
{
    struct settle *settle = argument;
    uint64_t rest_ms;

    do {
        struct err err = { 0 };
        int r = remote_store_is_set(settle->host) ? remote_store_check(settle->host, &err) : 0;

        if (r == 0)
            r = records_settle(settle->host, NULL, &err);
        if (r < 0)
            log_warn("object storage: %s", err.msg);
        rest_ms = r == 0 ? REST_MS : RETRY_MS;
    } while (worker_rest(&settle->worker, rest_ms, 0));
}

int settle_start(struct host *host, struct err *err)
{
    struct settle *settle = xcalloc(1, sizeof(*settle));
    int r;

    settle->host = host;
    worker_init(&settle->worker, LOCK_SETTLE);
    r = thread_start(&settle->worker.thread, "holt-settle", settle_main, settle);
    if (r < 0) {
        worker_destroy(&settle->worker);
        free(settle);
        return err_sys(err, r, "start the thread that tidies the object storage");
    }
    host->settle = settle;
    return 0;
}

void settle_wake(struct host *host)
{
    if (host->settle)
        worker_wake(&host->settle->worker);
}

void settle_stop(struct host *host)
{
    if (!host->settle)
        return;
    worker_stop(&host->settle->worker);
    worker_destroy(&host->settle->worker);
    free(TAKE_PTR(host->settle));
}
