// SPDX-License-Identifier: Apache-2.0
/* Isolation by gVisor inside of that of the native runtime: processes run in a container of runsc,
 * which holt-init starts in its own namespaces (guest/cell/cell.h). So files, limits, networks and
 * snapshots are those of the native runtime. */
#include <sched.h>
#include <stddef.h>

#include "base/err.h"
#include "runtime/cell.h"
#include "runtime/runtime.h"

static const char *const args[] = { NULL };

static int probe(struct err *err)
{
    struct runtime_cell cell;
    int r = runtime_cell_open(&cell, err);

    if (r == 0)
        runtime_cell_close(&cell);
    return r;
}

const struct runtime_ops runtime_gvisor = {
    .name = "gvisor",
    .strength = RUNTIME_OWN_KERNEL,
    .has_cells = true,
    .is_like_native = true,
    .builds_root = true,
    .namespaces =
        CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS,
    .args = args,
    .go = "",
    .own_processes = 1 + RUNTIME_CELL_PROCESSES,
    .probe = probe,
};
