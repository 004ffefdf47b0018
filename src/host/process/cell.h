/* How a process of the runtime gvisor is sent to the guest. */
#pragma once

#include <errno.h>

#include "wire/frame.h"

struct buf;
struct err;
struct machine;

/* The descriptors of a FRAME_CELL, and those among them that the caller closes. */
struct cell_fds {
    int all[CELL_FDS];
    int owned[2];
};

#define CELL_FDS_INIT                                                                              \
    {                                                                                              \
        .owned = { -EBADF, -EBADF }                                                                \
    }

/* Appends the frame that starts the container unless it runs. ERR_UNSUPPORTED without runsc. */
int cell_put(struct machine *machine, struct buf *out, struct cell_fds *ret, struct err *err);

/* Starts the container of a sandbox of this runtime, before its first process asks for it. Nothing
 * happens for other runtimes. */
void cell_prepare(struct machine *machine);

void cell_fds_close(struct cell_fds *fds);
