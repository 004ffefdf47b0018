// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/mark.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "host/sandbox/sandbox_internal.h"

int sandbox_mark(struct sandbox *sandbox, struct sandbox_mark *ret, struct err *err)
{
    static atomic_uint last;
    enum sandbox_state state;
    struct err ignored;
    int r = sandbox_begin(sandbox, OPERATION_SNAPSHOT, &state, err);

    if (r < 0)
        return r;
    (void)snprintf(ret->snapshot, sizeof(ret->snapshot), SNAPSHOT_OWN_PREFIX "mark-%u",
                   atomic_fetch_add(&last, 1) + 1);
    ret->taken_ms = clock_wall_ms();
    r = sandbox_quiesce(sandbox, true, err);
    if (r == 0) {
        r = volume_snapshot(sandbox->volume, ret->snapshot, err);
        (void)sandbox_quiesce(sandbox, false, &ignored);
    }
    sandbox_finish(sandbox, state);
    return r;
}

int sandbox_diff_mark(struct sandbox *sandbox, const struct sandbox_mark *mark, diff_fn each,
                      void *context, struct err *err)
{
    struct sandbox_diff what = { .from = mark->snapshot, .options.taken_ms = mark->taken_ms };

    return sandbox_diff(sandbox, &what, each, context, err);
}

void sandbox_unmark(struct sandbox *sandbox, const struct sandbox_mark *mark)
{
    enum sandbox_state state;
    struct err ignored;

    if (sandbox_begin(sandbox, OPERATION_UNMARK, &state, &ignored) < 0)
        return;
    (void)volume_remove_snapshot(sandbox->volume, mark->snapshot, &ignored);
    sandbox_finish(sandbox, state);
}
