// SPDX-License-Identifier: Apache-2.0
/* holt-tools: a tool worker. holt-init starts it with its socket as descriptor 3 and no other
 * descriptors, with the seccomp filter and the capabilities of the sandbox. */
#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/serve.h"

enum {
    SOCKET_FD = 3,
    MEMORY_KEPT = 16 * 1024 * 1024, /* for the next request: page faults cost as much as the work */
};

int main(void)
{
    /* A process of the sandbox may run it, without the socket, as /proc/PID/exe. */
    if (fcntl(SOCKET_FD, F_SETFD, FD_CLOEXEC) < 0)
        return 1;
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    (void)prctl(PR_SET_NAME, "holt-tools", 0, 0, 0);
    (void)umask(022);
    (void)mallopt(M_MMAP_THRESHOLD, MEMORY_KEPT);
    (void)mallopt(M_TRIM_THRESHOLD, MEMORY_KEPT);
    return tools_serve(SOCKET_FD) < 0;
}
