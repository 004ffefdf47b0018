// SPDX-License-Identifier: Apache-2.0
#include "http/listen.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

enum {
    BACKLOG = 512,
    GROUP_BYTES_MAX = 4096,
    FIRST_GIVEN_FD = 3, /* SD_LISTEN_FDS_START */
    GIVEN_MAX = 16,
};

/* Returns the group, or -1, for which chown changes nothing. */
static gid_t group_find(const char *name)
{
    char text[GROUP_BYTES_MAX];
    struct group group, *found = NULL;

    if (getgrnam_r(name, &group, text, sizeof(text), &found) != 0 || !found)
        return (gid_t)-1;
    return found->gr_gid;
}

/* Clients cannot connect before listen(2), so the gap between bind and chmod is harmless. */
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

DEFINE_CLEANUP(freeaddrinfo, struct addrinfo *);

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

/* Accepted sockets inherit the options: no delay of small writes (Nagle), and a dead peer is
 * detected within two minutes. */
static int tcp_prepare(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        { SOL_SOCKET, SO_KEEPALIVE, 1 },   { IPPROTO_TCP, TCP_NODELAY, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, 60 }, { IPPROTO_TCP, TCP_KEEPINTVL, 15 },
        { IPPROTO_TCP, TCP_KEEPCNT, 4 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        if (setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int)) < 0)
            return -errno;
    return 0;
}

static int tcp_bind(int fd, const struct addrinfo *address)
{
    const int on = 1;
    int r = tcp_prepare(fd);

    if (r < 0)
        return r;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, address->ai_addr, address->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return 0;
}

int listen_tcp(const char *address, int *ret_fd, struct err *err)
{
    cleanup_with(freeaddrinfo_slot) struct addrinfo *resolved = NULL;
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

static int socket_number(int fd, int name)
{
    socklen_t len = sizeof(int);
    int value = -1;

    return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

static int given_add(int fd, struct listen_given *given, struct err *err)
{
    int domain = socket_number(fd, SO_DOMAIN);
    bool is_tcp = domain == AF_INET || domain == AF_INET6;
    int *slot = is_tcp ? &given->tcp_fd : &given->unix_fd;

    if ((!is_tcp && domain != AF_UNIX) || socket_number(fd, SO_TYPE) != SOCK_STREAM ||
        socket_number(fd, SO_ACCEPTCONN) != 1)
        return err_set(err, ERR_INVALID,
                       "descriptor %d of LISTEN_FDS is not a stream socket that listens", fd);
    if (*slot >= 0)
        return err_set(err, ERR_INVALID, "LISTEN_FDS has two %s sockets; one is the most",
                       is_tcp ? "TCP" : "unix");
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ||
        (is_tcp && tcp_prepare(fd) < 0))
        return err_sys(err, -errno, "prepare descriptor %d of LISTEN_FDS", fd);
    *slot = fd;
    return 0;
}

/* Returns how many sockets were passed to this process and not to its parent. */
static int given_count(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    uint64_t number;

    if (!pid || parse_u64(pid, &number) < 0 || number != (uint64_t)getpid())
        return 0;
    return count && parse_u64(count, &number) == 0 && number <= GIVEN_MAX ? (int)number : 0;
}

int listen_take_given(struct listen_given *ret, struct err *err)
{
    int count = given_count();
    int r = 0;

    *ret = (struct listen_given){ .unix_fd = -EBADF, .tcp_fd = -EBADF };
    for (int i = 0; i < count && r == 0; i++)
        r = given_add(FIRST_GIVEN_FD + i, ret, err);
    return r;
}
