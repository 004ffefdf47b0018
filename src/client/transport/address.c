// SPDX-License-Identifier: Apache-2.0
#include "client/transport/address.h"

#include <errno.h>
#include <fcntl.h>
#include <http_parser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "client/error.h"
#include "client/transport/deadline.h"
#include "holt.h"

enum { QUEUE_PAUSE_MS = 10 };

static const char unix_prefix[] = "unix://";
static const char http_prefix[] = "http://";
static const char https_prefix[] = "https://";

static int parse_unix(const char *text, struct address *ret, struct holt_error *error)
{
    const char *path = text + strlen(unix_prefix);

    if (*path != '/')
        return error_set(error, "invalid_argument", "the socket in '%s' is not an absolute path",
                         text);
    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return error_set(error, "invalid_argument", "the socket path '%.120s...' is too long",
                         path);
    *ret = (struct address){ .is_unix = true, .authority = "localhost" };
    (void)snprintf(ret->host, sizeof(ret->host), "%s", path);
    return 0;
}

static bool has_part(const struct http_parser_url *url, enum http_parser_url_fields part)
{
    return url->field_set & (1U << part);
}

/* A path or query would be ignored, so it is an error. */
static bool names_only_host(const struct http_parser_url *url, const char *text)
{
    const char *path = text + url->field_data[UF_PATH].off;

    if (has_part(url, UF_PATH) && (url->field_data[UF_PATH].len != 1 || *path != '/'))
        return false;
    return has_part(url, UF_HOST) && !has_part(url, UF_QUERY) && !has_part(url, UF_FRAGMENT) &&
           !has_part(url, UF_USERINFO);
}

static int parse_http(const char *text, bool is_tls, struct address *ret, struct holt_error *error)
{
    struct http_parser_url url;
    unsigned port;

    http_parser_url_init(&url);
    if (strlen(text) >= ADDRESS_HOST_MAX || http_parser_parse_url(text, strlen(text), 0, &url) ||
        !names_only_host(&url, text))
        return error_set(error, "invalid_argument", "'%.120s' is not an address like http://%s",
                         text, "host:port");
    port = has_part(&url, UF_PORT) ? url.port : is_tls ? 443 : 80;
    *ret = (struct address){ .is_tls = is_tls };
    (void)snprintf(ret->host, sizeof(ret->host), "%.*s", url.field_data[UF_HOST].len,
                   text + url.field_data[UF_HOST].off);
    (void)snprintf(ret->port, sizeof(ret->port), "%u", port);
    (void)snprintf(ret->authority, sizeof(ret->authority),
                   strchr(ret->host, ':') ? "[%s]:%u" : "%s:%u", ret->host, port);
    return 0;
}

int address_parse(const char *text, struct address *ret, struct holt_error *error)
{
    if (strncmp(text, unix_prefix, strlen(unix_prefix)) == 0)
        return parse_unix(text, ret, error);
    if (strncmp(text, http_prefix, strlen(http_prefix)) == 0)
        return parse_http(text, false, ret, error);
    if (strncmp(text, https_prefix, strlen(https_prefix)) == 0)
        return parse_http(text, true, ret, error);
    return error_set(error, "invalid_argument",
                     "'%.120s' is not a daemon's address: unix:///path/holt.sock, http://%s or "
                     "https://%s",
                     text, "host:port", "host:port");
}

static int no_answer(const struct address *address, int r, struct holt_error *error)
{
    const char *code = "unavailable";

    if (r == -EACCES)
        code = "permission_denied";
    else if (r == -ETIMEDOUT)
        code = "deadline_exceeded";
    return error_set(error, code, "no daemon answers at %s: %s",
                     address->is_unix ? address->host : address->authority, strerror(-r));
}

/* Connects. Returns 0 or -errno. A unix socket with a full queue fails at once and cannot be
 * polled. */
static int connect_by(int fd, const struct sockaddr *name, socklen_t len, int64_t deadline)
{
    socklen_t size = sizeof(int);
    int r, status = 0;

    while (connect(fd, name, len) < 0) {
        if (errno == EAGAIN && deadline_left(deadline) != 0) {
            deadline_sleep(QUEUE_PAUSE_MS, deadline);
            continue;
        }
        if (errno == EAGAIN)
            return -ETIMEDOUT;
        if (errno != EINPROGRESS)
            return -errno;
        r = deadline_wait(fd, POLLOUT, deadline);
        if (r < 0)
            return r;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &status, &size) < 0)
            return -errno;
        return -status;
    }
    return 0;
}

/* Blocking mode is for calls without a deadline; others wait in poll. */
static int make_blocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

static int connect_unix(const struct address *address, int64_t deadline)
{
    const bool is_patient = deadline == HOLT_NO_DEADLINE;
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    cleanup_close int fd =
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (is_patient ? 0 : SOCK_NONBLOCK), 0);
    int r;

    if (fd < 0)
        return -errno;
    (void)snprintf(name.sun_path, sizeof(name.sun_path), "%.*s", (int)sizeof(name.sun_path) - 1,
                   address->host);
    r = connect_by(fd, (const struct sockaddr *)&name, sizeof(name), deadline);
    if (r == 0 && !is_patient)
        r = make_blocking(fd);
    return r < 0 ? r : TAKE_FD(fd);
}

static int connect_one(const struct addrinfo *found, int64_t deadline)
{
    cleanup_close int fd = socket(
        found->ai_family, found->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, found->ai_protocol);
    const int on = 1;
    int r;

    if (fd < 0)
        return -errno;
    r = connect_by(fd, found->ai_addr, found->ai_addrlen, deadline);
    if (r == 0)
        r = make_blocking(fd);
    if (r < 0)
        return r;
    /* A request is one write, so Nagle's algorithm would only add latency. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return TAKE_FD(fd);
}

static int connect_tcp(const struct address *address, int64_t deadline, struct holt_error *error)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    int r = getaddrinfo(address->host, address->port, &hints, &list), fd = -EADDRNOTAVAIL;

    if (r != 0)
        return error_set(error, "unavailable", "cannot find %s: %s", address->authority,
                         gai_strerror(r));
    for (const struct addrinfo *next = list; next && fd < 0 && fd != -ETIMEDOUT;
         next = next->ai_next)
        fd = connect_one(next, deadline);
    freeaddrinfo(list);
    return fd < 0 ? no_answer(address, fd, error) : fd;
}

int address_connect(const struct address *address, int64_t deadline, struct holt_error *error)
{
    int fd;

    if (!address->is_unix)
        return connect_tcp(address, deadline, error);
    fd = connect_unix(address, deadline);
    return fd < 0 ? no_answer(address, fd, error) : fd;
}
