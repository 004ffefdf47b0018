/* Viewers of a process's terminal that only count. */
#pragma once

#include <stdatomic.h>

#include "base/err.h"
#include "host/process/viewer.h"

static atomic_int resizes;

int stub_viewer_join(struct viewer *viewer, struct process *process, struct terminal_size size,
                     bool is_owner, struct err *err)
{
    (void)viewer, (void)process, (void)size, (void)is_owner, (void)err;
    return 0;
}

void stub_viewer_leave(struct viewer *viewer)
{
    (void)viewer;
}

int stub_viewer_resize(struct process *process, uint64_t number, struct terminal_size size,
                       struct err *err)
{
    (void)process, (void)number;
    if (size.rows == 1)
        return err_set(err, ERR_INVALID, "no terminal");
    resizes += size.rows * 1000 + size.columns;
    return 0;
}
