// SPDX-License-Identifier: Apache-2.0
#include "api/listen.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"

enum { BACKLOG = 512, GROUP_BYTES_MAX = 4096 };

/* -1, which chown takes as "leave it", where there is no such group. */
static gid_t group_find(const char *name)
{
    char text[GROUP_BYTES_MAX];
    struct group group, *found = NULL;

    if (getgrnam_r(name, &group, text, sizeof(text), &found) != 0 || !found)
        return (gid_t)-1;
    return found->gr_gid;
}

/* Nobody can connect before listen(2), so the moment between bind and chmod is harmless. */
static int unix_bind(int fd, const struct sockaddr_un *address, const char **ret_step)
{
    *ret_step = "remove the old socket at";
    if (unlink(address->sun_path) < 0 && errno != ENOENT)
        return -errno;
    *ret_step = "bind";
    if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        return -errno;
    *ret_step = "set owner and mode of";
    if (chown(address->sun_path, (uid_t)-1, group_find("holt")) < 0 ||
        chmod(address->sun_path, 0660) < 0)
        return -errno;
    *ret_step = "listen on";
    return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

int listen_unix(const char *path, int *ret_fd, struct err *err)
{
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const char *step;
    int r;

    if (fd < 0)
        return err_sys(err, -errno, "make a socket");
    if (strlen(path) >= sizeof(address.sun_path))
        return err_set(err, ERR_INVALID, "socket path %s is longer than %zu bytes", path,
                       sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    r = unix_bind(fd, &address, &step);
    if (r < 0)
        return err_sys(err, r, "%s %s", step, path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static void addrinfo_free_slot(struct addrinfo **list)
{
    if (*list)
        freeaddrinfo(*list);
}

static int address_resolve(const char *text, struct addrinfo **ret, struct err *err)
{
    const struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM };
    cleanup_free char *host = xstrdup(text);
    char *port = strrchr(host, ':');
    char *name = host;
    int r;

    if (!port)
        return err_set(err, ERR_INVALID, "cannot listen on '%s': not ADDR:PORT", text);
    if (*name == '[' && port > name && port[-1] == ']') {
        name++;
        port[-1] = '\0';
    }
    *port++ = '\0';
    r = getaddrinfo(name, port, &hints, ret);
    if (r != 0)
        return err_set(err, ERR_INVALID, "cannot listen on '%s': %s", text, gai_strerror(r));
    return 0;
}

/* Accepted sockets inherit the options: no event waits for another, and a dead peer is noticed. */
static int tcp_bind(int fd, const struct addrinfo *address)
{
    static const struct {
        int level, name;
    } options[] = {
        { SOL_SOCKET, SO_REUSEADDR },
        { SOL_SOCKET, SO_KEEPALIVE },
        { IPPROTO_TCP, TCP_NODELAY },
    };
    const int on = 1;

    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        if (setsockopt(fd, options[i].level, options[i].name, &on, sizeof(on)) < 0)
            return -errno;
    if (bind(fd, address->ai_addr, address->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return 0;
}

int listen_tcp(const char *address, int *ret_fd, struct err *err)
{
    cleanup_with(addrinfo_free_slot) struct addrinfo *resolved = NULL;
    cleanup_close int fd = -EBADF;
    int r = address_resolve(address, &resolved, err);

    if (r < 0)
        return r;
    assert(resolved);
    fd = socket(resolved->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, -errno, "make a socket for %s", address);
    r = tcp_bind(fd, resolved);
    if (r == -EADDRINUSE)
        return err_set(err, ERR_BUSY,
                       "cannot listen on %s: another program has it; choose with --listen",
                       address);
    if (r < 0)
        return err_sys(err, r, "cannot listen on %s", address);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

void listen_describe(int fd, char *text, size_t size)
{
    struct sockaddr_storage address = { 0 };
    socklen_t len = sizeof(address);
    char host[INET6_ADDRSTRLEN], port[8];
    bool is_v6;

    (void)snprintf(text, size, "?");
    if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
        getnameinfo((struct sockaddr *)&address, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    is_v6 = address.ss_family == AF_INET6;
    (void)snprintf(text, size, "%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}
