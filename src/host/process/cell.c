// SPDX-License-Identifier: Apache-2.0
#include "host/process/cell.h"

#include "base/cleanup.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "kernel/cgroup/cgroup.h"
#include "runtime/cell.h"
#include "wire/message.h"

#define CELL_GROUP "cell"

void cell_fds_close(struct cell_fds *fds)
{
    for (size_t i = 0; i < ARRAY_SIZE(fds->owned); i++)
        cleanup_close_fd(&fds->owned[i]);
}

int cell_put(struct machine *machine, struct buf *out, struct cell_fds *ret, struct err *err)
{
    struct runtime_cell cell = { .runsc_fd = -EBADF };
    int r = runtime_cell_open(&cell, err);

    if (r < 0)
        return r;
    ret->owned[1] = cell.runsc_fd;
    r = cgroup_open_child(machine->host->cgroups, machine->id, CELL_GROUP, machine->guest.first_uid,
                          &ret->owned[0], err);
    if (r < 0)
        return r;
    ret->all[0] = ret->owned[0];
    ret->all[1] = ret->owned[1];
    ret->all[2] = runtime_init_fd(machine->host->runtime);
    r = message_put_cell(out, &(struct message_cell){ .platform = cell.platform });
    return r < 0 ? err_sys(err, r, "encode the start of gVisor") : 0;
}

void cell_prepare(struct machine *machine)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(256);
    cleanup_with(cell_fds_close) struct cell_fds fds = CELL_FDS_INIT;
    struct err ignored; /* the first process reports it */

    if (machine->guest.ops->has_cells && cell_put(machine, &out, &fds, &ignored) == 0)
        (void)channel_send(&machine->channel, &out, fds.all, CELL_FDS);
}
