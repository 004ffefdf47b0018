/* Starts runsc for a cell: see guest/cell/cell.h. */
#pragma once

#include <sys/types.h>

struct guest;

/* Starts runsc with the sandbox's root as it is now. fds: the cgroup, runsc, holt-init. Returns 0,
 * the process that waits for it, and the stream to the inner holt-init, or -errno. */
int cell_launch(const struct guest *guest, const char *platform, const int *fds, pid_t *ret_pid,
                int *ret_stream_fd);
