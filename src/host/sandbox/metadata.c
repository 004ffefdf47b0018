// SPDX-License-Identifier: Apache-2.0
/* The attributes that can change at any time: metadata and expiry. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/registry/registry.h"
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
static int sandbox_check_exists(const struct sandbox *sandbox, struct err *err)
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
        return err_set(err, ERR_EXHAUSTED, "the metadata of sandbox '%s' is longer than %d bytes",
                       sandbox->info.id, SANDBOX_METADATA_MAX);
    lock_take(&sandbox->lock);
    r = sandbox_check_exists(sandbox, err);
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
static bool sandbox_is_asleep(const struct sandbox *sandbox)
{
    enum sandbox_state state = sandbox->info.state;

    return state == SANDBOX_PAUSING || state == SANDBOX_PAUSED || state == SANDBOX_STOPPED ||
           state == SANDBOX_DEEP_PAUSED;
}

/* Sets the expiry in memory, where it takes effect at once. */
static int sandbox_change_expiry(struct sandbox *sandbox, uint64_t expires_ms,
                                 enum sandbox_action action, bool may_be_asleep, struct err *err)
{
    int r;

    lock_take(&sandbox->lock);
    r = sandbox_check_exists(sandbox, err);
    if (r == 0 && !may_be_asleep && sandbox_is_asleep(sandbox))
        r = err_refuse(err, CAUSE_SESSION_PAUSED, "sandbox '%s' is not running", sandbox->info.id);
    if (r == 0) {
        sandbox_expire_at(sandbox, expires_ms);
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
    return sandbox_change_expiry(sandbox, expires_ms, action, true, err);
}

/* A running operation may still overwrite the stored expiry with the old one; the next write
 * corrects it. */
int sandbox_set_expiry(struct sandbox *sandbox, uint64_t expires_ms, enum sandbox_action action,
                       struct err *err)
{
    int r = sandbox_change_expiry(sandbox, expires_ms, action, false, err);

    if (r < 0)
        return r;
    return registry_put_expiry(sandbox->host->registry, sandbox->info.id, expires_ms, action, err);
}
