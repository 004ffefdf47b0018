// SPDX-License-Identifier: Apache-2.0
/* Commits: a version is made beside the others and counts once the registry has it. A daemon that
 * is killed before that leaves a tree that the next commit replaces. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "host/codebase/codebase.h"
#include "host/codebase/codebase_internal.h"
#include "host/codebase/protection.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"
#include "host/registry/codebase.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/volume/volume.h"

static const char temporary[] = SNAPSHOT_OWN_PREFIX "codebase";

/* Fails if others have committed since the version that the sandbox derives from. */
static int head_check(struct sandbox *sandbox, struct err *err)
{
    struct codebase_info info;
    const struct sandbox_info *own = &sandbox->info;
    int r = codebase_find(sandbox->host, &caller_root, own->codebase, &info, err);

    if (r < 0 || info.head == own->codebase_base)
        return r;
    (void)err_set(err, ERR_BUSY,
                  "codebase '%s' is at version %u and sandbox '%s' derives from version %u; "
                  "nothing was written",
                  info.name, info.head, own->id, own->codebase_base);
    return err_remedy(err, "take the newer version with 'holt rebase', then commit again");
}

/* What a commit contains, and what it must not. */
struct change_check {
    struct protection protection;
    uint64_t count;
    struct err *err;
};

static int change_check(const struct diff_entry *entry, void *context)
{
    struct change_check *check = context;
    int r = protection_check_absolute(&check->protection, entry->path, check->err);

    if (r == 0 && entry->old_path)
        r = protection_check_absolute(&check->protection, entry->old_path, check->err);
    check->count++;
    return r;
}

static int changes_check(struct sandbox *sandbox, uint64_t *ret, struct err *err)
{
    const struct sandbox_diff what = { .to = temporary, .is_from_codebase = true };
    struct change_check check = { .err = err };
    int r = protection_open(sandbox, &check.protection, err);

    if (r < 0)
        return r;
    r = sandbox_diff(sandbox, &what, change_check, &check, err);
    protection_done(&check.protection);
    *ret = check.count;
    if (r == 0 && check.count == 0)
        r = err_set(err, ERR_INVALID, "sandbox '%s' has no changes to commit", sandbox->info.id);
    return r;
}

/* The caller has begun the commit and an operation. */
static int version_make(struct sandbox *sandbox, struct codebase_version *version, struct err *err)
{
    struct host *host = sandbox->host;
    struct codebase_changes changes;
    int r = changes_check(sandbox, &version->files, err);

    version->version = sandbox->info.codebase_base + 1;
    if (r == 0)
        r = codebase_commit(sandbox->volume, temporary, version->version, &changes, err);
    if (r < 0)
        return r;
    fault_point("codebase.made");
    version->created_ms = clock_wall_ms();
    r = registry_add_version(host->registry, sandbox->info.codebase, version, sandbox->info.id,
                             err);
    fault_point("codebase.committed");
    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    sandbox->info.codebase_base = version->version;
    lock_release(&sandbox->lock);
    return 0;
}

static int snapshot_take(struct sandbox *sandbox, struct err *err)
{
    struct err ignored;
    int r = sandbox_quiesce(sandbox, true, err);

    if (r < 0)
        return r;
    r = volume_snapshot(sandbox->volume, temporary, err);
    (void)sandbox_quiesce(sandbox, false, &ignored);
    fault_point("codebase.taken");
    return r;
}

static int commit_run(struct sandbox *sandbox, struct codebase_version *version, struct err *err)
{
    struct codebase_work work = { .codebase = sandbox->info.codebase };
    struct err ignored;
    int r = codebase_work_begin(sandbox->host, &work, err);

    if (r < 0)
        return r;
    r = head_check(sandbox, err);
    if (r == 0)
        r = snapshot_take(sandbox, err);
    if (r == 0) {
        r = version_make(sandbox, version, err);
        (void)volume_remove_snapshot(sandbox->volume, temporary, &ignored);
    }
    codebase_work_end(sandbox->host, &work);
    return r;
}

int sandbox_commit_codebase(struct sandbox *sandbox, const char *message,
                            struct codebase_version *ret, struct err *err)
{
    struct codebase_version version = { .version = 0 };
    enum sandbox_state state;
    int r = 0;

    if (strlen(message) > CODEBASE_MESSAGE_MAX)
        return err_set(err, ERR_INVALID, "the message must be at most %d bytes",
                       CODEBASE_MESSAGE_MAX);
    if (!sandbox->info.codebase[0])
        return sandbox_lacks_codebase(sandbox, err);
    r = sandbox_begin(sandbox, OPERATION_SNAPSHOT, &state, err);
    if (r < 0)
        return r;
    (void)snprintf(version.sandbox, sizeof(version.sandbox), "%s", sandbox->info.id);
    (void)snprintf(version.message, sizeof(version.message), "%s", message);
    r = commit_run(sandbox, &version, err);
    if (r == 0)
        sandbox_event(sandbox, EVENT_CODEBASE_COMMITTED,
                      json_pack("{s:s, s:I}", "codebase", sandbox->info.codebase, "version",
                                (json_int_t)version.version));
    sandbox_finish(sandbox, state);
    if (r == 0)
        *ret = version;
    return r;
}
