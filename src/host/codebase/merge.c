// SPDX-License-Identifier: Apache-2.0
#include "host/codebase/merge.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/codebase/codebase.h"
#include "host/codebase/protection.h"
#include "host/codebase/rework.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/codebase/apply.h"
#include "store/codebase/settle.h"

#define TEMPORARY ".holt-merge"

DEFINE_CLEANUP(apply_plan_free, struct apply_plan *);

/* The three trees of a merge: the copy is ours. */
struct merge_trees {
    int base_fd, theirs_fd;
    const char *name;   /* of theirs */
    bool are_committed; /* theirs is a version */
};

static void trees_done(struct merge_trees *trees)
{
    trees->base_fd = fd_close(trees->base_fd);
    trees->theirs_fd = fd_close(trees->theirs_fd);
}

static int version_open(const struct sandbox *sandbox, uint32_t version, int *ret_fd,
                        struct err *err)
{
    *ret_fd = codebase_open_version(sandbox->host->store, sandbox->info.codebase, version);
    return *ret_fd < 0 ? err_sys(err, *ret_fd, "open version %u of codebase '%s'", version,
                                 sandbox->info.codebase)
                       : 0;
}

/* What another sandbox has changed becomes a change of this one, so its rules must allow it. What
 * was committed does not. */
static int plan_check(struct sandbox *sandbox, const struct apply_plan *plan, struct err *err)
{
    struct protection protection;
    int r = protection_open(sandbox, &protection, err);

    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < apply_count(plan); i++)
        r = protection_check(&protection, apply_path(plan, i), err);
    protection_done(&protection);
    return r;
}

/* Changes the copy, unless there are conflicts. */
static int copy_merge(const struct rework *rework, const struct merge_trees *trees,
                      enum codebase_side side, struct codebase_merging *ret, struct err *err)
{
    cleanup_with(apply_plan_free_slot) struct apply_plan *plan = NULL;
    struct settling settling = { side, trees->name, &ret->conflicts };
    const struct apply apply = {
        .dir_fd = rework->copy_fd,
        .from_fd = trees->base_fd,
        .to_fd = trees->theirs_fd,
        .temporary = TEMPORARY,
        .keeps_owner = true,
        .conflict = conflict_settle,
        .context = &settling,
    };
    int r = apply_plan(&apply, &plan, err);

    if (r < 0 || ret->conflicts.count > 0)
        return r;
    ret->files = apply_count(plan);
    if (!trees->are_committed)
        r = plan_check(rework->sandbox, plan, err);
    return r < 0 ? r : apply_run(plan, err);
}

static void merge_event(struct sandbox *sandbox, enum event_type type,
                        const struct codebase_merging *merging)
{
    sandbox_event(sandbox, type,
                  json_pack("{s:s, s:I}", "codebase", sandbox->info.codebase, "version",
                            (json_int_t)merging->base));
}

static int rebase_run(struct rework *rework, enum codebase_side side, struct codebase_merging *ret,
                      struct err *err)
{
    cleanup_with(trees_done) struct merge_trees trees = { -EBADF, -EBADF, "the codebase", true };
    struct sandbox *sandbox = rework->sandbox;
    struct codebase_info info;
    int r = codebase_find(sandbox->host, &caller_root, sandbox->info.codebase, &info, err);

    if (r < 0 || info.head == ret->base)
        return r;
    r = version_open(sandbox, ret->base, &trees.base_fd, err);
    if (r == 0)
        r = version_open(sandbox, info.head, &trees.theirs_fd, err);
    if (r == 0)
        r = copy_merge(rework, &trees, side, ret, err);
    if (r == 0 && ret->conflicts.count == 0)
        r = rework_finish(rework, info.head, false, err);
    if (r < 0 || ret->conflicts.count > 0)
        return r;
    ret->base = info.head;
    merge_event(sandbox, EVENT_CODEBASE_REBASED, ret);
    return 0;
}

int sandbox_rebase_codebase(struct sandbox *sandbox, enum codebase_side side,
                            struct codebase_merging *ret, struct err *err)
{
    struct rework rework;
    int r;

    *ret = (struct codebase_merging){ .files = 0 };
    r = rework_begin(&rework, sandbox, err);
    if (r < 0)
        return r;
    ret->base = sandbox->info.codebase_base;
    r = rebase_run(&rework, side, ret, err);
    rework_end(&rework);
    return r;
}

/* Versions follow each other, so the older of the two bases is one that both derive from. */
static int merge_run(struct rework *rework, struct sandbox *from, enum codebase_side side,
                     struct codebase_merging *ret, struct err *err)
{
    cleanup_with(trees_done) struct merge_trees trees = { -EBADF, -EBADF, from->info.id, false };
    const uint32_t theirs = from->info.codebase_base;
    int r = rework_open_other(rework, from, &trees.theirs_fd, err);

    if (r == 0)
        r = version_open(rework->sandbox, ret->base < theirs ? ret->base : theirs, &trees.base_fd,
                         err);
    if (r == 0)
        r = copy_merge(rework, &trees, side, ret, err);
    if (r < 0 || ret->conflicts.count > 0 || ret->files == 0)
        return r;
    r = rework_finish(rework, ret->base, false, err);
    if (r == 0)
        merge_event(rework->sandbox, EVENT_CODEBASE_MERGED, ret);
    return r;
}

int sandbox_merge_codebase(struct sandbox *sandbox, struct sandbox *from, enum codebase_side side,
                           struct codebase_merging *ret, struct err *err)
{
    struct rework rework;
    int r;

    *ret = (struct codebase_merging){ .files = 0 };
    r = rework_begin(&rework, sandbox, err);
    if (r < 0)
        return r;
    ret->base = sandbox->info.codebase_base;
    r = merge_run(&rework, from, side, ret, err);
    rework_end(&rework);
    return r;
}
