// SPDX-License-Identifier: Apache-2.0
/* Rollback: creates a new live tree from the snapshot beside the old one, records it, and only
 * then moves the machine. Before the record nothing has changed; after it, a restarted daemon
 * completes the rollback. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/observe/event_internal.h"
#include "host/observe/metrics_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/shell/state.h"
#include "store/volume/volume.h"

/* The live tree of a sandbox and the snapshot that it derives from. */
struct live_tree {
    uint32_t generation;
    char base[SNAPSHOT_NAME_MAX + 1];
    uint32_t codebase_base;
};

static void live_tree_switch(struct sandbox *sandbox, const struct live_tree *to)
{
    volume_switch(sandbox->volume, to->generation);
    lock_take(&sandbox->lock);
    sandbox->info.generation = to->generation;
    memcpy(sandbox->info.base, to->base, sizeof(to->base));
    sandbox->info.codebase_base = to->codebase_base;
    lock_release(&sandbox->lock);
}

/* Ends the processes of the machine and gives it the new root. A stopped sandbox has no machine. */
static int rollback_move_machine(struct sandbox *sandbox, const struct rollback *rollback,
                                 struct volume_mounts *ret_old, struct err *err)
{
    struct machine *machine = sandbox->machine;
    int r;

    if (!machine)
        return 0;
    r = rollback->is_frozen ? sandbox_freeze(sandbox, false, err) : 0;
    if (r < 0)
        return r;
    (void)sandbox_end_tier(sandbox, KILLER_ROLLBACK);
    r = machine_end_processes(machine, KILLER_ROLLBACK);
    if (r < 0)
        return err_sys(err, r, "end the processes of sandbox '%s'", sandbox->info.id);
    fault_point("rollback.killed");
    r = sandbox_enter(sandbox, machine, ret_old, err);
    fault_point("rollback.rooted");
    return r;
}

/* Switches back to the old tree and removes the new one. */
static void rollback_undo(struct sandbox *sandbox, const struct live_tree *old,
                          enum sandbox_state state)
{
    uint32_t generation = volume_generation(sandbox->volume);
    struct err ignored;

    live_tree_switch(sandbox, old);
    (void)sandbox_record(sandbox, state, &ignored);
    (void)volume_drop(sandbox->volume, generation);
}

static void rollback_prune_newer(struct sandbox *sandbox, const char *than)
{
    cleanup_free struct snapshot_info *list = NULL;
    size_t count = 0;
    bool is_newer = false;
    struct err ignored;

    if (registry_list_snapshots(sandbox->host->registry, sandbox->info.id, &list, &count,
                                &ignored) < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (is_newer && sandbox_drop_snapshot(sandbox, list[i].name, &ignored) == 0)
            sandbox_event(sandbox, EVENT_SNAPSHOT_PRUNED,
                          json_pack("{s:s}", "snapshot", list[i].name));
        is_newer = is_newer || strcmp(list[i].name, than) == 0;
    }
}

/* A snapshot of before a rebase lacks what others committed, so a commit must not take that as
 * undone: its changes are compared with the version that they were made to. */
static int rollback_rebase(const struct sandbox *sandbox, struct live_tree *tree, struct err *err)
{
    uint32_t now = 0, then = 0;
    int r;

    if (!volume_has_codebase(sandbox->volume))
        return 0;
    r = volume_layer_version(sandbox->volume, sandbox->info.generation, &now, err);
    if (r == 0)
        r = volume_layer_version(sandbox->volume, tree->generation, &then, err);
    if (r == 0 && then < now)
        tree->codebase_base = then;
    return r;
}

/* Makes the new live tree, which nothing uses yet. */
static int rollback_branch(struct sandbox *sandbox, const struct rollback *rollback,
                           uint32_t *ret_generation, struct err *err)
{
    struct volume *volume = sandbox->volume;
    int r = volume_branch(volume, rollback->snapshot, ret_generation, err);

    if (r < 0 || !rollback->prepare)
        return r;
    r = rollback->prepare(sandbox, *ret_generation, rollback->context, err);
    if (r < 0)
        (void)volume_drop(volume, *ret_generation);
    return r;
}

int rollback_run(struct sandbox *sandbox, const struct rollback *rollback, enum sandbox_state state,
                 struct err *err)
{
    struct volume_mounts old_root = { .count = 0 };
    struct live_tree old = { .generation = sandbox->info.generation,
                             .codebase_base = sandbox->info.codebase_base };
    struct live_tree new = old;
    struct err ignored;
    int r = rollback_branch(sandbox, rollback, &new.generation, err);

    if (r < 0)
        return r;
    fault_point("rollback.branched");
    if (!rollback->prepare)
        r = rollback_rebase(sandbox, &new, err);
    if (r < 0) {
        (void)volume_drop(sandbox->volume, new.generation);
        return r;
    }
    memcpy(old.base, sandbox->info.base, sizeof(old.base));
    (void)snprintf(new.base, sizeof(new.base), "%s",
                   rollback->prepare ? old.base : rollback->snapshot);
    if (rollback->prepare)
        new.codebase_base = rollback->codebase_base;
    live_tree_switch(sandbox, &new);
    r = sandbox_record(sandbox, SANDBOX_ROLLING_BACK, err);
    fault_point("rollback.recorded");
    if (r == 0)
        r = rollback_move_machine(sandbox, rollback, &old_root, err);
    if (r < 0) {
        rollback_undo(sandbox, &old, state);
        return r;
    }
    if (!rollback->prepare)
        shells_restore_snapshot(sandbox, rollback->snapshot);
    /* The rollback is complete even if this fails: the next write, or recovery, corrects the
     * state. That is also why it does not wait for the disk. */
    (void)sandbox_record_later(&sandbox, 1, state, &ignored);
    fault_point("rollback.done");
    tree_cleaner_add(sandbox, &old_root, old.generation);
    return 0;
}

static int rollback_check(struct sandbox *sandbox, const char *snapshot, struct err *err)
{
    if (volume_has_snapshot(sandbox->volume, snapshot))
        return 0;
    return err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "sandbox '%s' has no snapshot '%.100s'",
                      sandbox->info.id, snapshot);
}

int sandbox_rollback(struct sandbox *sandbox, const char *snapshot, bool wants_newer_pruned,
                     struct err *err)
{
    uint64_t began_ns = clock_ns();
    enum sandbox_state state;
    int r = sandbox_begin(sandbox, OPERATION_ROLLBACK, &state, err);

    if (r < 0)
        return metrics_note(sandbox->host->metrics, TIMED_ROLLBACK, began_ns, r);
    r = rollback_check(sandbox, snapshot, err);
    if (r == 0) {
        sandbox_set_state(sandbox, SANDBOX_ROLLING_BACK);
        r = sandbox_wait_starting(sandbox, err);
    }
    if (r == 0)
        r = rollback_run(sandbox, &(struct rollback){ .snapshot = snapshot }, state, err);
    if (r == 0)
        sandbox_event(sandbox, EVENT_SANDBOX_ROLLED_BACK,
                      json_pack("{s:s, s:I}", "snapshot", snapshot, "generation",
                                (json_int_t)sandbox->info.generation));
    if (r == 0 && wants_newer_pruned)
        rollback_prune_newer(sandbox, snapshot);
    sandbox_finish(sandbox, state);
    return metrics_note(sandbox->host->metrics, TIMED_ROLLBACK, began_ns, r);
}
