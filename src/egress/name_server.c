// SPDX-License-Identifier: Apache-2.0
/* The name servers that holt-net asks, for sandboxes and for the names of proxies. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "egress/egress_internal.h"

static bool zone_has(const struct zone *zone, const char *name)
{
    size_t len = strlen(name), zone_len = strlen(zone->name);

    return len >= zone_len && strcmp(name + len - zone_len, zone->name) == 0 &&
           (len == zone_len || name[len - zone_len - 1] == '.');
}

/* Returns the name servers for a name: those of the longest zone that it is in, or the host's. */
static const struct sockaddr_storage *servers_find(const struct egress *egress, const char *name,
                                                   size_t *ret_count)
{
    const struct zone *best = NULL;

    for (size_t i = 0; i < egress->zone_count; i++) {
        const struct zone *zone = &egress->zones[i];

        if (zone_has(zone, name) && (!best || strlen(zone->name) > strlen(best->name)))
            best = zone;
    }
    *ret_count = best ? best->server_count : egress->resolver_count;
    return best ? best->servers : egress->resolvers;
}

static socklen_t server_length(const struct sockaddr_storage *server)
{
    return server->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* Sends the question from a new socket, which it returns, or -errno. */
static int server_ask(const struct sockaddr_storage *server, const struct dns_query *question,
                      uint16_t id)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(DNS_UDP_MAX);
    cleanup_close int fd = socket(server->ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)server, server_length(server)) < 0)
        return -errno;
    if (dns_query_write(question, id, &out) < 0)
        return -EMSGSIZE;
    if (send(fd, out.data, out.len, MSG_NOSIGNAL) < 0)
        return -errno;
    return TAKE_FD(fd);
}

int name_server_ask(const struct egress *egress, const struct dns_query *question, unsigned *tries,
                    uint16_t *ret_id)
{
    size_t count;
    const struct sockaddr_storage *servers = servers_find(egress, question->name, &count);

    while (count > 0 && *tries < NAME_SERVER_TRIES_MAX) {
        const struct sockaddr_storage *server = &servers[(*tries)++ % count];
        uint16_t id = (uint16_t)random_u64();
        int fd = server_ask(server, question, id);

        if (fd >= 0) {
            *ret_id = id;
            return fd;
        }
    }
    return -ENOENT;
}
