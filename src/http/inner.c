// SPDX-License-Identifier: Apache-2.0
#include "http/inner.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "http/exchange.h"

/* Not a family of the kernel: no address that accept(2) returns has it. */
enum { FAMILY_INNER = 0x484c };

/* What libmicrohttpd takes for the address of the client, and copies. */
struct inner_address {
    sa_family_t family;
    struct sockaddr_in6 client; /* large enough for IPv4; family 0: unknown */
    struct caller caller;
};

enum { SHARES = 256 };

static atomic_uint connections;
static atomic_uint shares[SHARES]; /* of owners; two that have the same place share it */

/* Returns the counter for the connections of an owner. */
static atomic_uint *share_of(const char *owner)
{
    unsigned hash = 5381;

    for (; *owner; owner++)
        hash = hash * 33 + (unsigned char)*owner;
    return &shares[hash % SHARES];
}

static const struct sockaddr *address_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    return info ? info->client_addr : NULL;
}

static const struct inner_address *inner_address_of(struct MHD_Connection *connection)
{
    const struct sockaddr *address = address_of(connection);

    return address && address->sa_family == FAMILY_INNER ? (const void *)address : NULL;
}

const struct caller *inner_caller(struct MHD_Connection *connection)
{
    const struct inner_address *inner = inner_address_of(connection);

    return inner ? &inner->caller : NULL;
}

const struct sockaddr *inner_client_address(struct MHD_Connection *connection)
{
    const struct inner_address *inner = inner_address_of(connection);

    return inner ? (const void *)&inner->client : address_of(connection);
}

static void client_address_copy(struct MHD_Connection *connection, struct sockaddr_in6 *ret)
{
    const struct sockaddr *client = inner_client_address(connection);

    if (client && client->sa_family == AF_INET6)
        memcpy(ret, client, sizeof(struct sockaddr_in6));
    if (client && client->sa_family == AF_INET)
        memcpy(ret, client, sizeof(struct sockaddr_in));
}

static void connection_release(const char *owner)
{
    atomic_fetch_sub(&connections, 1);
    atomic_fetch_sub(share_of(owner), 1);
}

static bool connection_reserve(const char *owner, unsigned max)
{
    bool has_room = atomic_fetch_add(&connections, 1) < max;
    bool has_share = atomic_fetch_add(share_of(owner), 1) < owner_share(owner, max);

    if (has_room && has_share)
        return true;
    connection_release(owner);
    return false;
}

void inner_close(int fd, const struct caller *caller)
{
    if (fd < 0)
        return;
    (void)fd_close(fd);
    connection_release(caller->owner);
}

static int pair_connect(struct MHD_Daemon *daemon, const struct inner_address *address, int *ret_fd,
                        struct err *err)
{
    cleanup_close int fd = -EBADF;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return err_sys(err, -errno, "make a connection for a channel");
    fd = pair[0];
    /* libmicrohttpd closes a socket that it does not take. */
    if (MHD_add_connection(daemon, pair[1], (const void *)address, sizeof(*address)) != MHD_YES)
        return err_set(err, ERR_EXHAUSTED, "connection limit reached");
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int inner_connect(const struct exchange *exchange, const struct caller *caller, int *ret_fd,
                  struct err *err)
{
    struct inner_address address = { .family = FAMILY_INNER, .caller = *caller };
    struct MHD_Daemon *daemon =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_DAEMON)->daemon;
    int r;

    if (!connection_reserve(caller->owner, exchange->listener->inner_max))
        return err_set(err, ERR_EXHAUSTED, "too many channels of all streams are in use");
    client_address_copy(exchange->connection, &address.client);
    r = pair_connect(daemon, &address, ret_fd, err);
    if (r < 0)
        connection_release(caller->owner);
    return r;
}
