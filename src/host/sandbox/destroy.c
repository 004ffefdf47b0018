// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/json.h"
#include "host/backup/settle.h"
#include "host/core/extension.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/net/net.h"
#include "host/observe/event_internal.h"
#include "host/observe/metrics_internal.h"
#include "host/process/table.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/shell/state.h"
#include "store/store.h"
#include "store/volume/volume.h"

enum { OPERATION_WAIT_MS = 50 };

/* Locked. */
static bool destroy_must_wait(const struct sandbox *sandbox)
{
    return !sandbox->is_gone &&
           (sandbox->operation != OPERATION_NONE || sandbox->starting > 0 || sandbox->pins > 0);
}

/* Locked. Waits for the running operations. One that has not ended after a moment may wait for a
 * guest that does not answer, so the guest is killed. */
static void destroy_wait(struct sandbox *sandbox)
{
    uint64_t deadline_ms = clock_after_ms(OPERATION_WAIT_MS);
    bool is_late = false;

    while (!is_late && destroy_must_wait(sandbox))
        is_late = !cond_wait_until(&sandbox->changed, &sandbox->lock, deadline_ms);
    if (is_late && sandbox->machine &&
        (sandbox->operation != OPERATION_NONE || sandbox->starting > 0))
        machine_kill(sandbox->machine, KILLER_DESTROY);
    while (destroy_must_wait(sandbox))
        cond_wait(&sandbox->changed, &sandbox->lock);
}

/* Marks the sandbox as destroying, which makes all new operations fail, and waits for the
 * running ones. Returns false if another thread destroys it. */
static bool destroy_claim(struct sandbox *sandbox)
{
    bool is_ours;

    lock_take(&sandbox->lock);
    is_ours = sandbox->info.state != SANDBOX_DESTROYING && !sandbox->is_gone;
    if (is_ours)
        sandbox->info.state = SANDBOX_DESTROYING;
    cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
    if (is_ours)
        tree_cleaner_cancel(sandbox);
    lock_take(&sandbox->lock);
    if (is_ours)
        destroy_wait(sandbox);
    /* The operation may have been a creation that failed. */
    is_ours = is_ours && !sandbox->is_gone;
    lock_release(&sandbox->lock);
    return is_ours;
}

static int destroy_join(struct sandbox *sandbox, struct err *err)
{
    int r = 0;

    lock_take(&sandbox->lock);
    while (!sandbox->is_gone && sandbox->info.state == SANDBOX_DESTROYING)
        cond_wait(&sandbox->changed, &sandbox->lock);
    if (!sandbox->is_gone)
        r = err_set(err, ERR_INTERNAL, "%.200s", sandbox->info.reason);
    lock_release(&sandbox->lock);
    return r;
}

/* Keeps the sandbox as failed, with the reason; it may be destroyed again. */
static int destroy_fail(struct sandbox *sandbox, const struct err *err)
{
    struct err ignored;

    lock_take(&sandbox->lock);
    sandbox->info.state = SANDBOX_FAILED;
    (void)snprintf(sandbox->info.reason, sizeof(sandbox->info.reason), "%.200s", err->msg);
    cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
    (void)sandbox_record(sandbox, SANDBOX_FAILED, &ignored);
    sandbox_event(sandbox, EVENT_SANDBOX_FAILED, json_pack("{s:o}", "reason", json_text(err->msg)));
    return err->errnum > 0 ? -err->errnum : -1;
}

/* The daemon has to end before the machine does: the record says that the sandbox is to be removed,
 * so the next start does that. */
static int destroy_leave(struct sandbox *sandbox, struct err *err)
{
    lock_take(&sandbox->lock);
    sandbox->info.state = SANDBOX_FAILED;
    (void)snprintf(sandbox->info.reason, sizeof(sandbox->info.reason),
                   "the next start of the daemon removes it");
    cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
    return err_refuse(err, CAUSE_SHUTTING_DOWN,
                      "the daemon is shutting down: its next start removes sandbox '%s'",
                      sandbox->info.id);
}

/* volume_destroy closes the handle, so a second attempt opens the volume again. */
static int destroy_files(struct sandbox *sandbox, struct err *err)
{
    struct volume *volume;
    int r = 0;

    lock_take(&sandbox->lock);
    volume = TAKE_PTR(sandbox->volume);
    lock_release(&sandbox->lock);
    if (!volume)
        r = sandbox_open_volume(sandbox, &volume, err);
    if (r < 0)
        return err->kind == ERR_NOT_FOUND ? 0 : r;
    r = volume_destroy(volume);
    return r < 0 ? err_sys(err, r, "remove the files of sandbox '%s'", sandbox->info.id) : 0;
}

static int destroy_run(struct sandbox *sandbox, struct err *err)
{
    struct volume_mounts root = { .count = 0 };
    int r = sandbox_record(sandbox, SANDBOX_DESTROYING, err);

    if (r < 0)
        return destroy_fail(sandbox, err);
    fault_point("destroy.recorded");
    if (!sandbox_unboot(sandbox, &root))
        return destroy_leave(sandbox, err);
    fault_point("destroy.ended");
    net_forget(sandbox->host->net, sandbox->info.id);
    if (store_needs_unmount(sandbox->host->store))
        volume_mounts_done(&root);
    r = destroy_files(sandbox, err);
    tree_cleaner_add_mounts(sandbox->host->tree_cleaner, &root);
    process_table_purge(sandbox->process_table);
    if (sandbox->host->extension)
        sandbox->host->extension->sandbox_remove(sandbox);
    fault_point("destroy.emptied");
    if (r == 0)
        shells_remove(sandbox);
    if (r < 0)
        return destroy_fail(sandbox, err);
    /* Before the row goes: the removal of the files may not be on disk, and if they are back after
     * a power failure, this line says that nobody wants them. */
    sandbox_event(sandbox, EVENT_SANDBOX_DESTROYED, NULL);
    r = registry_remove(sandbox->host->registry, sandbox->info.id, err);
    if (r < 0)
        return destroy_fail(sandbox, err);
    fault_point("destroy.forgotten");
    template_close(TAKE_PTR(sandbox->template_pin));
    sandbox_leave_table(sandbox);
    if (sandbox->info.archive[0])
        settle_wake(sandbox->host);
    return 0;
}

int sandbox_destroy(struct sandbox *sandbox, struct err *err)
{
    uint64_t began_ns = clock_ns();

    if (!destroy_claim(sandbox))
        return destroy_join(sandbox, err);
    return metrics_note(sandbox->host->metrics, TIMED_DESTROY, began_ns, destroy_run(sandbox, err));
}
