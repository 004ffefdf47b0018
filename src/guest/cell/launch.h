/* Starts runsc for a cell: see guest/cell/cell.h. */
#pragma once

#include <sys/types.h>

struct guest;

/* The process that waits for runsc, the stream to the inner holt-init, and the socket of
 * cell_attach_root. */
struct launched {
    pid_t pid;
    int stream_fd, control_fd;
};

/* Starts runsc without a root for its processes. fds: the cgroup, runsc, holt-init. Returns 0 or
 * -errno. */
int cell_launch(const struct guest *guest, const char *platform, const int *fds,
                struct launched *ret);

/* Attaches the sandbox's root, as it is now, below the root of the container, where the inner
 * holt-init can enter it. Once. Returns 0 or -errno. */
int cell_attach_root(int control_fd);
