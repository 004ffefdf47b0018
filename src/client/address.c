// SPDX-License-Identifier: Apache-2.0
#include "client/address.h"

#include <errno.h>
#include <http_parser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "client/error.h"
#include "holt.h"

static const char unix_prefix[] = "unix://";
static const char http_prefix[] = "http://";

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

/* An address names a machine and a port; whoever wrote more meant something that we would ignore.
 */
static bool names_only_host(const struct http_parser_url *url, const char *text)
{
    const char *path = text + url->field_data[UF_PATH].off;

    if (has_part(url, UF_PATH) && (url->field_data[UF_PATH].len != 1 || *path != '/'))
        return false;
    return has_part(url, UF_HOST) && !has_part(url, UF_QUERY) && !has_part(url, UF_FRAGMENT) &&
           !has_part(url, UF_USERINFO);
}

static int parse_http(const char *text, struct address *ret, struct holt_error *error)
{
    struct http_parser_url url;
    unsigned port;

    http_parser_url_init(&url);
    if (strlen(text) >= ADDRESS_HOST_MAX || http_parser_parse_url(text, strlen(text), 0, &url) ||
        !names_only_host(&url, text))
        return error_set(error, "invalid_argument", "'%.120s' is not an address like http://%s",
                         text, "host:port");
    port = has_part(&url, UF_PORT) ? url.port : 80;
    *ret = (struct address){ .is_unix = false };
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
        return parse_http(text, ret, error);
    return error_set(error, "invalid_argument",
                     "'%.120s' is not a daemon's address: unix:///path/holt.sock or http://%s",
                     text, "host:port");
}

static int connect_unix(const struct address *address, struct holt_error *error)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return error_set(error, "internal", "create a socket: %s", strerror(errno));
    (void)snprintf(name.sun_path, sizeof(name.sun_path), "%.*s", (int)sizeof(name.sun_path) - 1,
                   address->host);
    if (connect(fd, (const struct sockaddr *)&name, sizeof(name)) < 0)
        return error_set(error, errno == EACCES ? "permission_denied" : "unavailable",
                         "no daemon answers at %s: %s", address->host, strerror(errno));
    return TAKE_FD(fd);
}

static int connect_one(const struct addrinfo *found)
{
    cleanup_close int fd =
        socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    const int on = 1;

    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0)
        return -errno;
    /* A request is one write; waiting for more to fill a packet would only add latency. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return TAKE_FD(fd);
}

static int connect_tcp(const struct address *address, struct holt_error *error)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    int r = getaddrinfo(address->host, address->port, &hints, &list), fd = -EADDRNOTAVAIL;

    if (r != 0)
        return error_set(error, "unavailable", "cannot find %s: %s", address->authority,
                         gai_strerror(r));
    for (const struct addrinfo *next = list; next && fd < 0; next = next->ai_next)
        fd = connect_one(next);
    freeaddrinfo(list);
    if (fd < 0)
        return error_set(error, "unavailable", "no daemon answers at %s: %s", address->authority,
                         strerror(-fd));
    return fd;
}

int address_connect(const struct address *address, struct holt_error *error)
{
    return address->is_unix ? connect_unix(address, error) : connect_tcp(address, error);
}
