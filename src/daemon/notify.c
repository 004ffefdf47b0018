// SPDX-License-Identifier: Apache-2.0
#include "daemon/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

enum { TEXT_MAX = 1024 };

/* sd_notify(3) without libsystemd: one datagram. */
static void datagram_send(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    cleanup_close int fd = -EBADF;
    size_t len = path ? strlen(path) : 0;

    if (len == 0 || len >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, path, len);
    if (*path == '@') /* an abstract name, not NUL-terminated */
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

void notify_systemd(const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;

    va_start(args, format);
    if (vsnprintf(text, sizeof(text), format, args) > 0)
        datagram_send(text);
    va_end(args);
}

/* WATCHDOG_PID names the process that the interval is meant for. */
uint64_t notify_watchdog_us(void)
{
    const char *text = getenv("WATCHDOG_USEC"), *pid_text = getenv("WATCHDOG_PID");
    uint64_t us = 0, pid = 0;

    if (!text || parse_u64(text, &us) < 0)
        return 0;
    if (pid_text && (parse_u64(pid_text, &pid) < 0 || pid != (uint64_t)getpid()))
        return 0;
    return us;
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
