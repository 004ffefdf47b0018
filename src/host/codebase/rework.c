// SPDX-License-Identifier: Apache-2.0
#include "host/codebase/rework.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "host/core/host_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/codebase/codebase.h"
#include "store/volume/volume.h"

enum { OWN_COPY, OTHER_COPY };

static const char temporary[] = SNAPSHOT_OWN_PREFIX "codebase";

static int copy_take(struct sandbox *sandbox, unsigned number, int *ret_fd, struct err *err)
{
    int r = volume_snapshot(sandbox->volume, temporary, err);

    fault_point("rework.taken");
    return r < 0 ? r : codebase_copy_make(sandbox->volume, temporary, number, ret_fd, err);
}

static int rework_prepare(struct rework *rework, struct err *err)
{
    struct sandbox *sandbox = rework->sandbox;
    struct err ignored;
    int r;

    sandbox_set_state(sandbox, SANDBOX_ROLLING_BACK);
    r = sandbox_wait_starting(sandbox, err);
    if (r == 0)
        r = sandbox_freeze(sandbox, true, err);
    if (r == 0)
        r = copy_take(sandbox, OWN_COPY, &rework->copy_fd, err);
    if (r < 0) {
        (void)sandbox_freeze(sandbox, false, &ignored);
        (void)volume_remove_snapshot(sandbox->volume, temporary, &ignored);
        (void)codebase_copies_remove(sandbox->host->store, sandbox->info.codebase);
    }
    return r;
}

int rework_begin(struct rework *rework, struct sandbox *sandbox, struct err *err)
{
    int r;

    *rework = (struct rework){ .sandbox = sandbox,
                               .work.codebase = sandbox->info.codebase,
                               .copy_fd = -EBADF };
    if (!sandbox->info.codebase[0])
        return sandbox_lacks_codebase(sandbox, err);
    r = sandbox_begin(sandbox, OPERATION_ROLLBACK, &rework->state, err);
    if (r < 0)
        return r;
    r = codebase_work_begin(sandbox->host, &rework->work, err);
    if (r == 0) {
        r = rework_prepare(rework, err);
        if (r < 0)
            codebase_work_end(sandbox->host, &rework->work);
    }
    if (r < 0)
        sandbox_finish(sandbox, rework->state);
    return r;
}

int rework_open_other(struct rework *rework, struct sandbox *other, int *ret_fd, struct err *err)
{
    enum sandbox_state state;
    struct err ignored;
    int r;

    if (other == rework->sandbox)
        return err_set(err, ERR_INVALID, "sandbox '%s' cannot be merged with itself",
                       other->info.id);
    if (strcmp(other->info.codebase, rework->sandbox->info.codebase) != 0)
        return err_set(err, ERR_INVALID, "sandboxes '%s' and '%s' have different codebases",
                       rework->sandbox->info.id, other->info.id);
    r = sandbox_begin(other, OPERATION_SNAPSHOT, &state, err);
    if (r < 0)
        return r;
    r = sandbox_quiesce(other, true, err);
    if (r == 0) {
        r = copy_take(other, OTHER_COPY, ret_fd, err);
        (void)sandbox_quiesce(other, false, &ignored);
        (void)volume_remove_snapshot(other->volume, temporary, &ignored);
    }
    sandbox_finish(other, state);
    return r;
}

struct layer_change {
    uint32_t version;
    int copy_fd;
};

static int layer_change(struct sandbox *sandbox, uint32_t generation, void *context,
                        struct err *err)
{
    const struct layer_change *change = context;

    return volume_set_layer(sandbox->volume, generation, change->version, change->copy_fd, err);
}

int rework_finish(struct rework *rework, uint32_t version, bool discards, struct err *err)
{
    struct layer_change change = { .version = version,
                                   .copy_fd = discards ? -EBADF : rework->copy_fd };
    const struct rollback rollback = { .snapshot = temporary,
                                       .prepare = layer_change,
                                       .context = &change,
                                       .codebase_base = version,
                                       .is_frozen = true };

    fault_point("rework.ready");
    return rollback_run(rework->sandbox, &rollback, rework->state, err);
}

void rework_end(struct rework *rework)
{
    struct sandbox *sandbox = rework->sandbox;
    struct err ignored;

    (void)sandbox_freeze(sandbox, false, &ignored);
    rework->copy_fd = fd_close(rework->copy_fd);
    (void)volume_remove_snapshot(sandbox->volume, temporary, &ignored);
    (void)codebase_copies_remove(sandbox->host->store, sandbox->info.codebase);
    codebase_work_end(sandbox->host, &rework->work);
    sandbox_finish(sandbox, rework->state);
}
