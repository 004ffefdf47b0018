// SPDX-License-Identifier: Apache-2.0
/* Takes, prunes and removes snapshots. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"
#include "host/observe/metrics_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/shell/state.h"
#include "kernel/cgroup/cgroup.h"
#include "store/store.h"
#include "store/volume/volume.h"

static void sandbox_set_quiesced(struct sandbox *sandbox, bool on)
{
    lock_take(&sandbox->lock);
    sandbox->is_quiesced = on;
    cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
}

/* A file-by-file copy could catch a process between two writes that belong together, so the
 * processes are frozen meanwhile. Those of a paused sandbox already are. */
int sandbox_quiesce(struct sandbox *sandbox, bool on, struct err *err)
{
    int r = 0;

    if (store_is_atomic(sandbox->host->store) || !sandbox->machine ||
        sandbox->info.state != SANDBOX_ACTIVE)
        return 0;
    sandbox_set_quiesced(sandbox, on);
    if (on)
        r = sandbox_wait_starting(sandbox, err);
    if (r == 0)
        r = sandbox_freeze(sandbox, on, err);
    if (r < 0)
        sandbox_set_quiesced(sandbox, false);
    return r;
}

static int snapshot_take(struct sandbox *sandbox, const char *name, struct err *err)
{
    struct err ignored;
    int r = sandbox_quiesce(sandbox, true, err);

    if (r < 0)
        return r;
    r = volume_snapshot(sandbox->volume, name, err);
    (void)sandbox_quiesce(sandbox, false, &ignored);
    if (r < 0 && err->kind == ERR_EXISTS)
        return err_refuse(err, CAUSE_SNAPSHOT_EXISTS, "sandbox '%s' already has a snapshot '%s'",
                          sandbox->info.id, name);
    return r;
}

/* Updates the info for a snapshot that was added. */
static void info_add_snapshot(struct sandbox_info *info, const struct snapshot_info *snapshot)
{
    memcpy(info->base, snapshot->name, sizeof(info->base));
    if (snapshot->turn > info->turns)
        info->turns = snapshot->turn;
    info->snapshot_count++;
}

int sandbox_record_snapshot(struct sandbox *sandbox, const struct snapshot_info *snapshot,
                            struct err *err)
{
    struct sandbox_info info;
    int r;

    lock_take(&sandbox->lock);
    sandbox_info_copy(&sandbox->info, &info);
    lock_release(&sandbox->lock);
    info_add_snapshot(&info, snapshot);
    r = registry_put_snapshot(sandbox->host->registry, &info, snapshot, err);
    sandbox_info_done(&info);
    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    info_add_snapshot(&sandbox->info, snapshot);
    lock_release(&sandbox->lock);
    return 0;
}

static int snapshot_take_and_record(struct sandbox *sandbox, struct snapshot_info *snapshot,
                                    struct err *err)
{
    struct err ignored;
    int r;

    shells_save(sandbox);
    snapshot->created_ms = clock_wall_ms(); /* not later than the snapshot, for diff.c */
    r = snapshot_take(sandbox, snapshot->name, err);
    if (r < 0)
        return r;
    fault_point("snapshot.taken");
    memcpy(snapshot->parent, sandbox->info.base, sizeof(snapshot->parent));
    snapshot->space_used = volume_usage_settled(sandbox->volume);
    r = sandbox_record_snapshot(sandbox, snapshot, err);
    if (r < 0)
        (void)volume_remove_snapshot(sandbox->volume, snapshot->name, &ignored);
    else
        shells_link_snapshot(sandbox, snapshot->name);
    fault_point("snapshot.recorded");
    return r;
}

/* Storage comes first: an interrupted removal then leaves a record without files, which recovery
 * drops, and not files without a record. */
int sandbox_drop_snapshot(struct sandbox *sandbox, const char *name, struct err *err)
{
    char parent[SNAPSHOT_NAME_MAX + 1];
    int r = volume_remove_snapshot(sandbox->volume, name, err);

    if (r < 0 && err->kind == ERR_NOT_FOUND)
        return err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "sandbox '%s' has no snapshot '%s'",
                          sandbox->info.id, name);
    fault_point("prune.removed");
    if (r == 0)
        r = registry_remove_snapshot(sandbox->host->registry, sandbox->info.id, name, parent, err);
    if (r < 0)
        return r;
    fault_point("prune.recorded");
    shells_drop_snapshot(sandbox, name);
    lock_take(&sandbox->lock);
    if (strcmp(sandbox->info.base, name) == 0)
        memcpy(sandbox->info.base, parent, sizeof(parent));
    sandbox->info.snapshot_count--;
    lock_release(&sandbox->lock);
    return 0;
}

void sandbox_drop_temporary(struct sandbox *sandbox, const char *name)
{
    enum sandbox_state state;
    struct err ignored;

    if (sandbox_begin(sandbox, OPERATION_SNAPSHOT, &state, &ignored) < 0)
        return;
    (void)volume_remove_snapshot(sandbox->volume, name, &ignored);
    sandbox_finish(sandbox, state);
}

/* Keeps the newest snapshots_max turn and tool snapshots. A removal that fails is tried again
 * after the next turn. */
static void snapshot_prune(struct sandbox *sandbox)
{
    cleanup_free struct snapshot_info *list = NULL;
    uint32_t keep = sandbox->info.snapshots_max, unnamed = 0;
    size_t count = 0;
    struct err ignored;

    if (keep == 0 || registry_list_snapshots(sandbox->host->registry, sandbox->info.id, &list,
                                             &count, &ignored) < 0)
        return;
    for (size_t i = 0; i < count; i++)
        unnamed += list[i].kind != SNAPSHOT_NAMED;
    for (size_t i = 0; i < count && unnamed > keep; i++) {
        if (list[i].kind == SNAPSHOT_NAMED)
            continue;
        unnamed--;
        if (sandbox_drop_snapshot(sandbox, list[i].name, &ignored) == 0)
            sandbox_event(sandbox, EVENT_SNAPSHOT_PRUNED,
                          json_pack("{s:s}", "snapshot", list[i].name));
    }
}

static int snapshot_operation(struct sandbox *sandbox, enum operation operation,
                              struct snapshot_info *snapshot, struct err *err)
{
    uint64_t began_ns = clock_ns();
    enum sandbox_state state;
    int r = sandbox_begin(sandbox, operation, &state, err);

    if (r < 0)
        return metrics_note(sandbox->host->metrics, TIMED_SNAPSHOT, began_ns, r);
    if (snapshot->kind == SNAPSHOT_TURN) {
        snapshot->turn = sandbox->info.turns + 1;
        (void)snprintf(snapshot->name, sizeof(snapshot->name), "%s%04u",
                       sandbox->host->snapshots_prefix, snapshot->turn);
    }
    r = snapshot_take_and_record(sandbox, snapshot, err);
    if (r == 0)
        sandbox_event(sandbox,
                      snapshot->kind == SNAPSHOT_TURN ? EVENT_TURN_COMPLETED
                                                      : EVENT_SNAPSHOT_CREATED,
                      json_pack("{s:s}", "snapshot", snapshot->name));
    if (r == 0 && snapshot->kind != SNAPSHOT_NAMED)
        snapshot_prune(sandbox);
    sandbox_finish(sandbox, state);
    return metrics_note(sandbox->host->metrics, TIMED_SNAPSHOT, began_ns, r);
}

int sandbox_turn(struct sandbox *sandbox, struct snapshot_info *ret, struct err *err)
{
    *ret = (struct snapshot_info){ .kind = SNAPSHOT_TURN };
    return snapshot_operation(sandbox, OPERATION_TURN, ret, err);
}

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

int sandbox_snapshot(struct sandbox *sandbox, const char *name, enum snapshot_kind kind,
                     struct snapshot_info *ret, struct err *err)
{
    const char *turns = sandbox->host->snapshots_prefix;
    bool turns_differ = strcmp(turns, SNAPSHOT_TURN_PREFIX) != 0;

    *ret = (struct snapshot_info){ .kind = kind };
    if (strlen(name) > SNAPSHOT_NAME_MAX)
        return err_set(err, ERR_INVALID, "the snapshot name is longer than %d bytes",
                       SNAPSHOT_NAME_MAX);
    if (has_prefix(name, SNAPSHOT_TURN_PREFIX) || has_prefix(name, SNAPSHOT_OWN_PREFIX) ||
        has_prefix(name, turns))
        return err_set(
            err, ERR_INVALID,
            "invalid snapshot name '%.40s': the prefixes %s%sturn- and holt- are reserved", name,
            turns_differ ? turns : "", turns_differ ? ", " : "");
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return snapshot_operation(sandbox, OPERATION_SNAPSHOT, ret, err);
}

int sandbox_remove_snapshot(struct sandbox *sandbox, const char *snapshot, struct err *err)
{
    enum sandbox_state state;
    int r = sandbox_begin(sandbox, OPERATION_SNAPSHOT, &state, err);

    if (r < 0)
        return r;
    r = sandbox_drop_snapshot(sandbox, snapshot, err);
    if (r == 0)
        sandbox_event(sandbox, EVENT_SNAPSHOT_REMOVED, json_pack("{s:s}", "snapshot", snapshot));
    sandbox_finish(sandbox, state);
    return r;
}

int sandbox_note_snapshot(struct sandbox *sandbox, const char *snapshot, const char *note,
                          struct snapshot_info *ret, struct err *err)
{
    cleanup_free struct snapshot_info *list = NULL;
    size_t count = 0;
    int r = registry_note_snapshot(sandbox->host->registry, sandbox->info.id, snapshot, note, err);

    if (r == 0)
        r = sandbox_list_snapshots(sandbox, &list, &count, err);
    if (r < 0)
        return r;
    sandbox_event(sandbox, EVENT_SNAPSHOT_UPDATED,
                  json_pack("{s:s, s:s}", "snapshot", snapshot, "note", note));
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, snapshot) == 0)
            *ret = list[i];
    return 0;
}

int sandbox_list_snapshots(struct sandbox *sandbox, struct snapshot_info **ret, size_t *ret_count,
                           struct err *err)
{
    return registry_list_snapshots(sandbox->host->registry, sandbox->info.id, ret, ret_count, err);
}
