// SPDX-License-Identifier: Apache-2.0
#include "daemon/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/xalloc.h"

/* sd_notify(3) without libsystemd: one datagram. */
void notify_systemd(void)
{
    static const char ready[] = "READY=1";
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    cleanup_close int fd = -EBADF;
    size_t len = path ? strlen(path) : 0;

    if (len == 0 || len >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, path, len);
    if (*path == '@') /* an abstract name, which has no NUL at its end */
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)sendto(fd, ready, strlen(ready), MSG_NOSIGNAL, (struct sockaddr *)&address,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

static void line_write(int fd, const char *line)
{
    if (fd < 0)
        return;
    (void)write_all(fd, line, strlen(line));
    (void)fd_close(fd);
}

void notify_ready(int fd)
{
    line_write(fd, "ready\n");
}

void notify_error(int fd, const char *reason)
{
    cleanup_free char *line = xasprintf("error: %s\n", reason);

    line_write(fd, line);
}
