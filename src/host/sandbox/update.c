// SPDX-License-Identifier: Apache-2.0
/* Changes properties of a sandbox: all that were asked for, or none.
 *
 * The change is made to a copy of the info. The name and the volumes are reserved in the host's
 * table and the limits are applied first, because all can be refused; the registry records the
 * copy; then the sandbox gets it. The old volumes stay the sandbox's until then: a failed change
 * keeps them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/observe/event_internal.h"
#include "host/owner/owner_internal.h"
#include "host/process/table.h"
#include "host/registry/registry.h"
#include "host/sandbox/mount.h"
#include "host/sandbox/name.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/volume/volume.h"

static int change_check(const struct sandbox_change *change, struct err *err)
{
    int r = change->name && *change->name ? sandbox_check_name(change->name, err) : 0;

    return r == 0 ? machine_check_limits(&change->limits, err) : r;
}

static struct label *label_find(const struct sandbox_info *info, const char *key)
{
    for (size_t i = 0; i < info->label_count; i++)
        if (strcmp(info->labels[i].key, key) == 0)
            return &info->labels[i];
    return NULL;
}

static void labels_drop(struct sandbox_info *info, const struct sandbox_change *change)
{
    for (size_t i = 0; i < change->dropped_count; i++) {
        struct label *label = label_find(info, change->dropped_labels[i]);

        if (!label)
            continue;
        info->label_count--;
        memmove(label, label + 1,
                (info->label_count - (size_t)(label - info->labels)) * sizeof(*label));
    }
}

int sandbox_labels_set(struct sandbox_info *info, const struct label *labels, size_t count,
                       struct err *err)
{
    struct label *all = xcalloc(info->label_count + count + 1, sizeof(*all));

    if (info->label_count > 0)
        memcpy(all, info->labels, info->label_count * sizeof(*all));
    free(info->labels);
    info->labels = all;
    for (size_t i = 0; i < count; i++) {
        struct label *label = label_find(info, labels[i].key);

        if (!label)
            label = &info->labels[info->label_count++];
        *label = labels[i];
    }
    if (info->label_count > SANDBOX_LABELS_MAX)
        return err_set(err, ERR_EXHAUSTED, "a sandbox has at most %d labels", SANDBOX_LABELS_MAX);
    return 0;
}

static void limits_change(struct sandbox_limits *limits, const struct sandbox_limits *change)
{
    limits->memory_bytes = change->memory_bytes ? change->memory_bytes : limits->memory_bytes;
    limits->cpu_millis = change->cpu_millis ? change->cpu_millis : limits->cpu_millis;
    limits->pids = change->pids ? change->pids : limits->pids;
    limits->files = change->files ? change->files : limits->files;
}

static void times_change(struct sandbox_info *info, const struct sandbox_change *change)
{
    if (change->expire_action)
        info->expire_action = *change->expire_action;
    if (change->has_idle_timeout)
        info->idle_timeout_ms = change->idle_timeout_ms;
    if (change->idle_action)
        info->idle_action = *change->idle_action;
    if (change->has_snapshots_max)
        info->snapshots_max = change->snapshots_max;
}

/* A running machine has its volumes mounted, and a volume that no sandbox has is removed. */
static int mounts_change(struct sandbox_info *info, const struct sandbox_change *change,
                         struct err *err)
{
    struct sandbox_mount *mounts;

    if (info->state != SANDBOX_STOPPED && info->state != SANDBOX_FAILED) {
        (void)err_refuse(err, CAUSE_INVALID_STATE,
                         "sandbox '%s' is %s: its volumes can change only while it is stopped",
                         info->name[0] ? info->name : info->id, sandbox_state_name(info->state));
        return err_remedy(err, "run 'holt stop' first; the next start mounts the volumes");
    }
    mounts = xcalloc(change->mount_count + 1, sizeof(*mounts));
    if (change->mount_count > 0)
        memcpy(mounts, change->mounts, change->mount_count * sizeof(*mounts));
    free(info->mounts);
    info->mounts = mounts;
    info->mount_count = change->mount_count;
    return 0;
}

/* Makes the changes to a copy of the sandbox's info. */
static int info_change(struct host *host, struct sandbox_info *info,
                       const struct sandbox_change *change, struct err *err)
{
    uint64_t ttl_ms = 0;
    int r;

    labels_drop(info, change);
    r = sandbox_labels_set(info, change->labels, change->label_count, err);
    if (r == 0)
        r = caller_check_labels(change->caller, info->labels, info->label_count, err);
    if (r == 0 && change->has_ttl)
        r = host_limit_ttl(host, info->owner, change->ttl_ms, &ttl_ms, err);
    if (r < 0)
        return r;
    if (change->name)
        (void)snprintf(info->name, sizeof(info->name), "%s", change->name);
    limits_change(&info->limits, &change->limits);
    info->quota_bytes = change->quota_bytes ? change->quota_bytes : info->quota_bytes;
    times_change(info, change);
    if (change->has_ttl)
        info->expires_ms = ttl_ms ? clock_wall_ms() + ttl_ms : 0;
    return change->has_mounts ? mounts_change(info, change, err) : 0;
}

/* Applies the limits to the running machine, if there is one. */
static int machine_change(struct sandbox *sandbox, const struct sandbox_limits *limits,
                          struct err *err)
{
    return sandbox->machine ? machine_set_limits(sandbox->machine, limits, err) : 0;
}

/* Gives the volume another quota, if that has changed. */
static int quota_change(struct sandbox *sandbox, uint64_t from, uint64_t to, struct err *err)
{
    return from != to ? volume_set_quota(sandbox->volume, to, err) : 0;
}

/* Counts the new limits for the owner instead of the old ones. */
static int charge_change(struct sandbox *sandbox, const struct sandbox_info *info,
                         const struct owner_charge *old, struct err *err)
{
    struct owner_charge charge;
    int r;

    owner_charge_fill(info->owner, &info->limits, info->quota_bytes, &charge);
    lock_take(&sandbox->host->lock);
    r = owner_table_change(sandbox->host->owners, old, &charge, err);
    if (r == 0)
        sandbox->charge = charge;
    lock_release(&sandbox->host->lock);
    return r;
}

/* Undoes charge_change, above a ceiling if it was lowered meanwhile. */
static void charge_restore(struct sandbox *sandbox, const struct owner_charge *old)
{
    lock_take(&sandbox->host->lock);
    owner_table_count_in(sandbox->host->owners, old);
    owner_table_subtract(sandbox->host->owners, &sandbox->charge);
    sandbox->charge = *old;
    lock_release(&sandbox->host->lock);
}

/* Replaces the parts of the info that a change can have; info keeps the old ones. */
static void info_commit(struct sandbox *sandbox, struct sandbox_info *info,
                        const struct sandbox_change *change)
{
    struct sandbox_info *own = &sandbox->info;
    struct sandbox_mount *mounts;
    struct label *labels;

    lock_take(&sandbox->host->lock);
    lock_take(&sandbox->lock);
    labels = own->labels;
    mounts = own->mounts;
    own->labels = info->labels;
    own->label_count = info->label_count;
    own->mounts = info->mounts;
    own->mount_count = info->mount_count;
    sandbox->reserved = NULL; /* with the exchange: info is no longer what was reserved */
    own->limits = info->limits;
    own->quota_bytes = info->quota_bytes;
    own->idle_timeout_ms = info->idle_timeout_ms;
    own->idle_action = info->idle_action;
    own->snapshots_max = info->snapshots_max;
    if (change->expire_action)
        own->expire_action = info->expire_action;
    if (change->has_ttl)
        sandbox_expire_at(sandbox, info->expires_ms);
    lock_release(&sandbox->lock);
    lock_release(&sandbox->host->lock);
    info->labels = labels;
    info->mounts = mounts;
}

/* Reserves the new name, applies the limits and records the change. */
static int change_record(struct sandbox *sandbox, struct sandbox_info *info,
                         const struct sandbox_change *change, struct err *err)
{
    const struct owner_charge old_charge = sandbox->charge;
    char old_name[SANDBOX_NAME_MAX + 1];
    struct err ignored;
    int r;

    sandbox_name_copy(sandbox->info.name, old_name);
    r = change->name ? sandbox_rename(sandbox, change->name, err) : 0;
    if (r < 0)
        return r;
    r = charge_change(sandbox, info, &old_charge, err);
    if (r == 0)
        r = machine_change(sandbox, &info->limits, err);
    if (r == 0)
        r = quota_change(sandbox, sandbox->info.quota_bytes, info->quota_bytes, err);
    if (r == 0)
        r = registry_put_changed(sandbox->host->registry, info, err);
    if (r < 0) {
        (void)quota_change(sandbox, info->quota_bytes, sandbox->info.quota_bytes, &ignored);
        (void)machine_change(sandbox, &sandbox->info.limits, &ignored);
        charge_restore(sandbox, &old_charge);
        if (change->name)
            (void)sandbox_rename(sandbox, old_name, &ignored);
        return r;
    }
    if (change->name)
        process_table_rename(sandbox->process_table, change->name);
    return 0;
}

/* Reserves the new volumes, if there are any, and records the change. */
static int change_apply(struct sandbox *sandbox, struct sandbox_info *info,
                        const struct sandbox_change *change, struct err *err)
{
    int r = change->has_mounts ? sandbox_mounts_reserve(sandbox, info, err) : 0;

    if (r < 0)
        return r;
    r = change_record(sandbox, info, change, err);
    if (r < 0)
        sandbox_mounts_release(sandbox);
    else
        info_commit(sandbox, info, change);
    return r;
}

int sandbox_update(struct sandbox *sandbox, const struct sandbox_change *change, struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    enum sandbox_state state = SANDBOX_STOPPED;
    int r = change_check(change, err);

    if (r == 0)
        r = sandbox_begin(sandbox, OPERATION_UPDATE, &state, err);
    if (r != 0)
        return r;
    lock_take(&sandbox->lock);
    sandbox_info_copy(&sandbox->info, &info);
    lock_release(&sandbox->lock);
    r = info_change(sandbox->host, &info, change, err);
    if (r == 0)
        r = change_apply(sandbox, &info, change, err);
    if (r == 0)
        sandbox_event(sandbox, EVENT_SANDBOX_UPDATED,
                      json_pack("{s:s}", "name", change->name ? change->name : info.name));
    sandbox_finish(sandbox, state);
    return r;
}
