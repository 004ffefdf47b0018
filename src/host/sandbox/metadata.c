// SPDX-License-Identifier: Apache-2.0
/* What may be changed of a sandbox while it goes on: its metadata and its time. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/core/registry.h"
#include "host/sandbox/expiry.h"
#include "host/sandbox/sandbox_internal.h"

char *sandbox_get_metadata(struct sandbox *sandbox)
{
    char *metadata;

    lock_take(&sandbox->lock);
    metadata = sandbox->info.metadata ? xstrdup(sandbox->info.metadata) : NULL;
    lock_release(&sandbox->lock);
    return metadata;
}

/* Locked. */
static int check_there(const struct sandbox *sandbox, struct err *err)
{
    if (!sandbox->is_gone && sandbox->info.state != SANDBOX_DESTROYING)
        return 0;
    return err_refuse(err, CAUSE_SESSION_DESTROYING, "sandbox '%s' is being destroyed",
                      sandbox->info.id);
}

int sandbox_set_metadata(struct sandbox *sandbox, const char *metadata, struct err *err)
{
    cleanup_free char *copy = NULL;
    char *old;
    int r;

    if (strlen(metadata) > SANDBOX_METADATA_MAX)
        return err_set(err, ERR_EXHAUSTED, "the note of sandbox '%s' is longer than %d bytes",
                       sandbox->info.id, SANDBOX_METADATA_MAX);
    lock_take(&sandbox->lock);
    r = check_there(sandbox, err);
    lock_release(&sandbox->lock);
    if (r == 0)
        r = registry_put_metadata(sandbox->host->registry, sandbox->info.id, metadata, err);
    if (r < 0)
        return r;
    copy = xstrdup(metadata);
    lock_take(&sandbox->lock);
    old = sandbox->info.metadata;
    sandbox->info.metadata = TAKE_PTR(copy);
    lock_release(&sandbox->lock);
    free(old);
    return 0;
}

/* Locked. */
static bool is_asleep(const struct sandbox *sandbox)
{
    enum sandbox_state state = sandbox->info.state;

    return state == SANDBOX_PAUSING || state == SANDBOX_PAUSED || state == SANDBOX_STOPPED;
}

/* The time counts from here on. */
static int expiry_set(struct sandbox *sandbox, uint64_t expires_ms, enum sandbox_action action,
                      bool may_sleep, struct err *err)
{
    int r;

    lock_take(&sandbox->lock);
    r = check_there(sandbox, err);
    if (r == 0 && !may_sleep && is_asleep(sandbox))
        r = err_refuse(err, CAUSE_SESSION_PAUSED, "sandbox '%s' does not run", sandbox->info.id);
    if (r == 0) {
        sandbox->info.expires_ms = expires_ms;
        sandbox->info.expire_action = action;
    }
    lock_release(&sandbox->lock);
    if (r == 0)
        expiry_wake(sandbox->host->expiry);
    return r;
}

int sandbox_plan_expiry(struct sandbox *sandbox, uint64_t expires_ms, enum sandbox_action action,
                        struct err *err)
{
    return expiry_set(sandbox, expires_ms, action, true, err);
}

/* An operation that goes on may still write the old time behind us: the next record, or the next
 * daemon without one, is as late as that. */
int sandbox_set_expiry(struct sandbox *sandbox, uint64_t expires_ms, enum sandbox_action action,
                       struct err *err)
{
    int r = expiry_set(sandbox, expires_ms, action, false, err);

    if (r < 0)
        return r;
    return registry_put_expiry(sandbox->host->registry, sandbox->info.id, expires_ms, action, err);
}
