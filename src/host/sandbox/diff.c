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

/* The two states to compare. */
struct diff_views {
    struct volume_view old, new;
};

static int views_open(struct sandbox *sandbox, struct volume *volume,
                      const struct sandbox_diff *what, struct diff_views *ret, struct err *err)
{
    int r = view_open(sandbox, volume, what->from, &ret->old, err);

    if (r < 0)
        return r;
    r = view_open(sandbox, volume, what->to, &ret->new, err);
    if (r < 0)
        volume_view_done(volume, &ret->old);
    return r;
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

        if ((strcmp(snapshots[i].name, what->from) == 0 ||
             (what->to && strcmp(snapshots[i].name, what->to) == 0)) &&
            (*ret_ms == 0 || taken_ms < *ret_ms))
            *ret_ms = taken_ms;
    }
    free(snapshots);
    return 0;
}

/* A slow client may read the result for hours. Where the views are only descriptors, the sandbox
 * need not stay pinned, so that it can be destroyed. */
static void unpin_early(struct sandbox *sandbox, const struct diff_views *views,
                        struct volume **volume)
{
    if (views->old.temporary || views->new.temporary)
        return;
    sandbox_unpin(sandbox);
    *volume = NULL;
}

int sandbox_diff(struct sandbox *sandbox, const struct sandbox_diff *what, diff_fn each,
                 void *context, struct err *err)
{
    char base[SNAPSHOT_NAME_MAX + 1];
    struct sandbox_diff wanted = *what;
    struct diff_views views = { .old.tree_count = 0 };
    struct volume *volume = sandbox_pin(sandbox);
    int r;

    if (!volume)
        return err_refuse(err, CAUSE_INVALID_STATE,
                          "sandbox '%s' has no volume in its present state", sandbox->info.id);
    if (!wanted.from) {
        lock_take(&sandbox->lock);
        memcpy(base, sandbox->info.base, sizeof(base));
        lock_release(&sandbox->lock);
        wanted.from = base;
    }
    r = wanted.options.taken_ms ? 0 : find_taken(sandbox, &wanted, &wanted.options.taken_ms, err);
    if (r == 0)
        r = views_open(sandbox, volume, &wanted, &views, err);
    if (r == 0) {
        unpin_early(sandbox, &views, &volume);
        r = diff_run(&views.old, &views.new, &wanted.options, each, context, err);
        volume_view_done(volume, &views.new);
        volume_view_done(volume, &views.old);
    }
    if (volume)
        sandbox_unpin(sandbox);
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
