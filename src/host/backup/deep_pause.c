// SPDX-License-Identifier: Apache-2.0
#include "host/backup/deep_pause.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/log.h"
#include "base/random.h"
#include "host/backup/archive_name.h"
#include "host/backup/claim.h"
#include "host/backup/remote_store.h"
#include "host/backup/settle.h"
#include "host/backup/transfer.h"
#include "host/bundle/export.h"
#include "host/bundle/import.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"
#include "host/observe/metrics_internal.h"
#include "host/registry/archive.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/bundle/bundle.h"
#include "store/store.h"
#include "store/template/template.h"
#include "store/volume/volume.h"

/* --- pause ------------------------------------------------------------------------------------ */

/* Fails before anything has changed. */
static int pause_check(struct sandbox *sandbox, struct err *err)
{
    int r = remote_store_check(sandbox->host, err);

    if (r < 0)
        return err_wrap(err, "deep pause");
    if (!sandbox->info.codebase[0])
        return 0;
    (void)err_set(err, ERR_UNSUPPORTED,
                  "sandbox '%s' has a codebase, which a deep pause would not keep",
                  sandbox->info.id);
    return err_remedy(err, "commit its changes, then pause or stop it");
}

static int archive_record_make(const struct sandbox *sandbox, struct archive_record *ret,
                               struct err *err)
{
    int r = random_hex(ret->mark, ARCHIVE_MARK_LEN / 2);

    if (r < 0)
        return err_sys(err, r, "name an archive");
    memcpy(ret->sandbox, sandbox->info.id, sizeof(ret->sandbox));
    memcpy(ret->owner, sandbox->info.owner, sizeof(ret->owner));
    return registry_put_archive(sandbox->host->registry, ret, err);
}

/* Writes the files to an archive. */
static int files_store(struct sandbox *sandbox, const struct archive_store *store, const char *mark,
                       struct err *err)
{
    cleanup_free char *template = NULL, *description = NULL;
    char name[ARCHIVE_NAME_MAX + 1];
    struct export_spec spec = { .is_claimed = true };
    struct transfer_target target = { .store = store, .name = name };
    struct export *export = NULL;
    int r = archive_omitted_template(sandbox, &template, err);

    if (r == 0)
        r = claim_take(store, mark, err);
    fault_point("deep-pause.claimed");
    if (r < 0)
        return r;
    spec.omits_template = template && template[0];
    description = archive_describe(sandbox, store->host, template, NULL);
    if (!description)
        return err_sys(err, -ENOMEM, "describe sandbox '%s'", sandbox->info.id);
    target.description = description;
    archive_pause_name(sandbox->info.id, mark, name);
    r = export_begin_as(sandbox, &spec, &export, err);
    if (r == 0)
        r = transfer_out(sandbox, export, &target, NULL, err);
    export_end(export);
    fault_point("deep-pause.stored");
    return r;
}

/* Records where the files are from now on. The template stays open: it cannot be removed. */
static int pause_record(struct sandbox *sandbox, const char *mark, struct err *err)
{
    struct template *template = NULL;
    int r = template_open(sandbox->host->store, sandbox->info.template, &template, err);

    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    (void)snprintf(sandbox->info.archive, sizeof(sandbox->info.archive), "%s", mark);
    sandbox->info.reason[0] = '\0';
    lock_release(&sandbox->lock);
    r = sandbox_record(sandbox, SANDBOX_DEEP_PAUSED, err);
    fault_point("deep-pause.recorded");
    if (r < 0) {
        lock_take(&sandbox->lock);
        sandbox->info.archive[0] = '\0';
        lock_release(&sandbox->lock);
        template_close(template);
        return r;
    }
    sandbox->template_pin = template;
    return 0;
}

/* Waits for the readers of the volume, and removes it. Where that fails, the next start removes it.
 */
static void files_free(struct sandbox *sandbox)
{
    struct volume *volume;
    int r;

    tree_cleaner_cancel(sandbox);
    lock_take(&sandbox->lock);
    volume = TAKE_PTR(sandbox->volume);
    while (sandbox->pins > 0)
        cond_wait(&sandbox->changed, &sandbox->lock);
    lock_release(&sandbox->lock);
    r = volume_destroy(volume);
    if (r < 0)
        log_error("the files of deep-paused sandbox '%s' cannot be removed (%s); the next start "
                  "tries again",
                  sandbox->info.id, strerror(-r));
    fault_point("deep-pause.freed");
}

static int pause_run(struct sandbox *sandbox, enum sandbox_state before, struct err *err)
{
    struct archive_record record = { .stage = ARCHIVE_OWN };
    struct archive_store store;
    struct err ignored;
    int r = remote_store_open(sandbox->host, sandbox->info.owner, &store, err);

    if (r == 0)
        r = sandbox_end_machine(sandbox, before, err);

    fault_point("deep-pause.ended");
    if (r < 0)
        return r;
    sandbox_set_state(sandbox, SANDBOX_PAUSING);
    r = archive_record_make(sandbox, &record, err);
    fault_point("deep-pause.noted");
    if (r == 0)
        r = files_store(sandbox, &store, record.mark, err);
    if (r == 0)
        r = pause_record(sandbox, record.mark, err);
    if (r < 0) {
        settle_wake(sandbox->host);
        return r;
    }
    files_free(sandbox);
    (void)claim_drop(&store, record.mark, &ignored);
    return 0;
}

/* The sandbox is stopped and whole; the reason is there for those that ask later. */
static void pause_fail(struct sandbox *sandbox, const struct err *err)
{
    struct err ignored;

    lock_take(&sandbox->lock);
    (void)snprintf(sandbox->info.reason, sizeof(sandbox->info.reason), "deep pause: %.200s",
                   err->msg);
    lock_release(&sandbox->lock);
    (void)sandbox_record(sandbox, SANDBOX_STOPPED, &ignored);
}

int sandbox_deep_pause(struct sandbox *sandbox, struct err *err)
{
    uint64_t began_ns = clock_ns();
    enum sandbox_state before = SANDBOX_STOPPED;
    int r = pause_check(sandbox, err);

    if (r == 0)
        r = sandbox_begin(sandbox, OPERATION_DEEP_PAUSE, &before, err);
    if (r < 0)
        return metrics_note(sandbox->host->metrics, TIMED_DEEP_PAUSE, began_ns, r);
    r = pause_run(sandbox, before, err);
    if (r == 0)
        sandbox_event(sandbox, EVENT_SANDBOX_DEEP_PAUSED, NULL);
    else if (!sandbox->machine)
        pause_fail(sandbox, err);
    sandbox_finish(sandbox, r == 0             ? SANDBOX_DEEP_PAUSED
                            : sandbox->machine ? before
                                               : SANDBOX_STOPPED);
    return metrics_note(sandbox->host->metrics, TIMED_DEEP_PAUSE, began_ns, r);
}

/* --- resume ----------------------------------------------------------------------------------- */

/* Makes the volume from what the archive has. Leaves none behind on failure. */
static int files_fill(struct sandbox *sandbox, const struct bundle_spool *spool, struct err *err)
{
    int r;

    (void)volume_purge(sandbox->host->store, sandbox->info.id);
    lock_take(&sandbox->lock);
    sandbox->info.generation = 1;
    lock_release(&sandbox->lock);
    r = sandbox_make_volume(sandbox, err);
    fault_point("deep-resume.volume");
    if (r == 0)
        r = import_refill(sandbox, spool, err);
    fault_point("deep-resume.filled");
    if (r < 0 && sandbox->volume)
        (void)volume_destroy(TAKE_PTR(sandbox->volume));
    return r;
}

/* Fetches the files, and records that they are here. */
static int files_fetch(struct sandbox *sandbox, const struct archive_store *store, const char *mark,
                       struct err *err)
{
    cleanup_with(bundle_spool_done) struct bundle_spool spool = { .fd = -EBADF };
    char name[ARCHIVE_NAME_MAX + 1];
    int r;

    archive_pause_name(sandbox->info.id, mark, name);
    r = transfer_in(sandbox->host, sandbox, store, name, &spool, err);
    fault_point("deep-resume.received");
    if (r == 0)
        r = files_fill(sandbox, &spool, err);
    if (r < 0)
        return r;
    store_flush(sandbox->host->store);
    lock_take(&sandbox->lock);
    sandbox->info.archive[0] = '\0';
    lock_release(&sandbox->lock);
    r = sandbox_record(sandbox, SANDBOX_STOPPED, err);
    fault_point("deep-resume.recorded");
    if (r == 0)
        return 0;
    lock_take(&sandbox->lock);
    (void)snprintf(sandbox->info.archive, sizeof(sandbox->info.archive), "%s", mark);
    lock_release(&sandbox->lock);
    (void)volume_destroy(TAKE_PTR(sandbox->volume));
    return r;
}

/* Explains a claim of another host, whose archive is gone once the sandbox is there. */
static int claim_explain(const struct sandbox *sandbox, const struct archive_store *store,
                         const char *mark, struct err *err)
{
    char name[ARCHIVE_NAME_MAX + 1];
    struct archive_info info;
    struct err why = { 0 };

    archive_pause_name(sandbox->info.id, mark, name);
    if (archive_find(store, name, &info, &why) == 0) {
        archive_info_done(&info);
        return err_set(err, ERR_BUSY, "sandbox '%s' is being resumed on another host",
                       sandbox->info.id);
    }
    if (why.kind != ERR_NOT_FOUND) {
        *err = why;
        return -err->errnum;
    }
    return err_refuse(err, CAUSE_SESSION_NOT_FOUND, "sandbox '%s' was resumed on another host",
                      sandbox->info.id);
}

static int resume_claimed(struct sandbox *sandbox, const struct archive_store *store,
                          const char *mark, struct err *err)
{
    struct err ignored;
    int r = files_fetch(sandbox, store, mark, err);

    if (r < 0) {
        (void)claim_drop(store, mark, &ignored);
        return err_wrap(err, "sandbox '%s' stays deep-paused", sandbox->info.id);
    }
    template_close(TAKE_PTR(sandbox->template_pin));
    return 0;
}

static int resume_fetch(struct sandbox *sandbox, bool *ret_has_moved, struct err *err)
{
    char mark[sizeof(sandbox->info.archive)];
    struct archive_store store;
    struct err why = { 0 };
    int r = sandbox_check_room(sandbox, err);

    memcpy(mark, sandbox->info.archive, sizeof(mark));
    if (r == 0)
        r = host_check_space(sandbox->host, err);
    if (r == 0)
        r = remote_store_open(sandbox->host, sandbox->info.owner, &store, err);
    if (r < 0)
        return err_wrap(err, "sandbox '%s' stays deep-paused", sandbox->info.id);
    r = claim_take(&store, mark, &why);
    fault_point("deep-resume.claimed");
    if (r < 0 && why.kind == ERR_BUSY) {
        r = claim_explain(sandbox, &store, mark, err);
        *ret_has_moved = err->cause == CAUSE_SESSION_NOT_FOUND;
        return r;
    }
    if (r < 0) {
        *err = why;
        return err_wrap(err, "sandbox '%s' stays deep-paused", sandbox->info.id);
    }
    return resume_claimed(sandbox, &store, mark, err);
}

int sandbox_deep_resume(struct sandbox *sandbox, struct err *err)
{
    bool has_moved = false;
    struct err ignored;
    int r = resume_fetch(sandbox, &has_moved, err);

    if (r < 0) {
        sandbox_finish(sandbox, SANDBOX_DEEP_PAUSED);
        if (has_moved)
            (void)sandbox_destroy(sandbox, &ignored);
        return r;
    }
    r = sandbox_boot_recorded(sandbox, err);
    fault_point("deep-resume.booted");
    if (r == 0)
        sandbox_event(sandbox, EVENT_SANDBOX_RESUMED, json_pack("{s:b}", "deep", true));
    sandbox_finish(sandbox, r < 0 ? SANDBOX_STOPPED : SANDBOX_ACTIVE);
    settle_wake(sandbox->host);
    return r;
}
