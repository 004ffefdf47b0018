// SPDX-License-Identifier: Apache-2.0
/* Compares states of a sandbox's files, and makes templates of them. */
#include "store/diff/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/volume/volume.h"

static int view_open(struct sandbox *sandbox, struct volume *volume, const char *snapshot,
                     struct volume_view *ret, struct err *err)
{
    if (snapshot && *snapshot && !volume_has_snapshot(volume, snapshot))
        return err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "sandbox '%s' has no snapshot '%.100s'",
                          sandbox->info.id, snapshot);
    return volume_view(volume, snapshot, ret, err);
}

/* The two states to compare. A volume is NULL once its sandbox is no longer pinned. */
struct diff_sides {
    struct sandbox *sandboxes[2];
    struct volume *volumes[2];
    struct volume_view views[2];
};

static void sides_unpin(struct diff_sides *sides)
{
    for (size_t i = 0; i < ARRAY_SIZE(sides->volumes); i++) {
        if (sides->volumes[i])
            sandbox_unpin(sides->sandboxes[i]);
        sides->volumes[i] = NULL;
    }
}

static void sides_done(struct diff_sides *sides)
{
    for (size_t i = 0; i < ARRAY_SIZE(sides->views); i++)
        volume_view_done(sides->volumes[i], &sides->views[i]);
    sides_unpin(sides);
}

static int sides_pin(struct diff_sides *sides, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(sides->volumes); i++) {
        struct sandbox *sandbox = sides->sandboxes[i];

        sides->volumes[i] = sandbox_pin(sandbox);
        if (!sides->volumes[i])
            return err_refuse(err, CAUSE_INVALID_STATE,
                              "sandbox '%s' has no volume in its present state", sandbox->info.id);
    }
    if (strcmp(sides->sandboxes[0]->info.template, sides->sandboxes[1]->info.template) != 0)
        return err_set(err, ERR_INVALID,
                       "sandboxes '%s' and '%s' have different templates; only sandboxes of one "
                       "template can be compared",
                       sides->sandboxes[0]->info.id, sides->sandboxes[1]->info.id);
    return 0;
}

/* Returns the time of the earlier of the two snapshots; 0: neither is a snapshot. */
static int find_taken(struct sandbox *sandbox, const struct sandbox_diff *what, uint64_t *ret_ms,
                      struct err *err)
{
    struct snapshot_info *snapshots;
    size_t count;
    int r =
        registry_list_snapshots(sandbox->host->registry, sandbox->info.id, &snapshots, &count, err);

    *ret_ms = 0;
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        uint64_t taken_ms = snapshots[i].created_ms;

        if (((what->from && strcmp(snapshots[i].name, what->from) == 0) ||
             (what->to && strcmp(snapshots[i].name, what->to) == 0)) &&
            (*ret_ms == 0 || taken_ms < *ret_ms))
            *ret_ms = taken_ms;
    }
    free(snapshots);
    return 0;
}

/* A slow client may read the result for hours. Where the views are only descriptors, the sandboxes
 * need not stay pinned, so that they can be destroyed. */
static int sides_open(struct diff_sides *sides, const struct sandbox_diff *what, struct err *err)
{
    const char *const states[] = { what->is_from_codebase ? what->to : what->from, what->to };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(states); i++)
        r = view_open(sides->sandboxes[i], sides->volumes[i], states[i], &sides->views[i], err);
    if (r == 0 && what->is_from_codebase)
        r = volume_view_set_version(sides->volumes[0], &sides->views[0],
                                    sides->sandboxes[0]->info.codebase_base, err);
    if (r == 0 && !sides->views[0].temporary && !sides->views[1].temporary)
        sides_unpin(sides);
    return r;
}

int sandbox_diff(struct sandbox *sandbox, const struct sandbox_diff *what, diff_fn each,
                 void *context, struct err *err)
{
    struct sandbox *other = what->to_sandbox ? what->to_sandbox : sandbox;
    cleanup_with(sides_done) struct diff_sides sides = { .sandboxes = { sandbox, other } };
    char base[SNAPSHOT_NAME_MAX + 1];
    struct sandbox_diff wanted = *what;
    int r = 0;

    if (what->is_from_codebase && !sandbox->info.codebase[0])
        return sandbox_lacks_codebase(sandbox, err);
    r = sides_pin(&sides, err);
    if (r < 0)
        return r;
    if (!wanted.from && !wanted.is_from_codebase && !what->to_sandbox) {
        lock_take(&sandbox->lock);
        memcpy(base, sandbox->info.base, sizeof(base));
        lock_release(&sandbox->lock);
        wanted.from = base;
    }
    wanted.options.is_of_volumes = other != sandbox;
    r = wanted.options.taken_ms ? 0 : find_taken(sandbox, &wanted, &wanted.options.taken_ms, err);
    if (r == 0)
        r = sides_open(&sides, &wanted, err);
    if (r == 0)
        r = diff_run(&sides.views[0], &sides.views[1], &wanted.options, each, context, err);
    return r;
}

/* Copies from a temporary snapshot, so that the template has the files of one moment. */
int sandbox_commit(struct sandbox *sandbox, const char *template, struct template_info *ret,
                   struct err *err)
{
    static const char temporary[] = SNAPSHOT_OWN_PREFIX "commit";
    enum sandbox_state state;
    struct err ignored;
    int r = sandbox_begin(sandbox, OPERATION_SNAPSHOT, &state, err);

    if (r < 0)
        return r;
    r = sandbox_quiesce(sandbox, true, err);
    if (r == 0) {
        r = volume_snapshot(sandbox->volume, temporary, err);
        (void)sandbox_quiesce(sandbox, false, &ignored);
    }
    if (r == 0) {
        fault_point("commit.taken");
        r = template_commit(sandbox->host->store, sandbox->volume, temporary, template, ret, err);
        fault_point("commit.made");
        (void)volume_remove_snapshot(sandbox->volume, temporary, &ignored);
        fault_point("commit.tidied");
    }
    if (r == 0)
        sandbox_event(sandbox, EVENT_TEMPLATE_COMMITTED, json_pack("{s:s}", "template", template));
    sandbox_finish(sandbox, state);
    return r;
}
