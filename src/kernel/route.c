// SPDX-License-Identifier: Apache-2.0
#include "kernel/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"

enum {
    PROTOCOL_HOLT = 72, /* marks routes as Holt's; not assigned in rtnetlink.h */
    V4_BITS = 96,       /* of the prefix of v4-mapped addresses */
    LOOPBACK = 1,       /* the index of lo in every namespace */
    REPLY_BYTES = 32 << 10,
    BATCH_MAX = 64, /* requests that are sent together */
};

struct request {
    struct nlmsghdr header;
    struct rtmsg route;
    char attributes[128];
};

bool route_is_ipv4(const struct in6_addr *address)
{
    return IN6_IS_ADDR_V4MAPPED(address);
}

int route_open(void)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    return fd < 0 ? -errno : fd;
}

static void attribute_add(struct request *request, unsigned short type, const void *data,
                          size_t len)
{
    struct rtattr *attribute = (void *)((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));

    attribute->rta_type = type;
    attribute->rta_len = (unsigned short)RTA_LENGTH(len);
    memcpy(RTA_DATA(attribute), data, len);
    request->header.nlmsg_len =
        (uint32_t)(NLMSG_ALIGN(request->header.nlmsg_len) + RTA_ALIGN(attribute->rta_len));
}

/* Sends a request and returns the kernel's answer. */
static int request_send(int fd, const struct request *request)
{
    _Alignas(struct nlmsghdr) char reply[1024];
    struct nlmsghdr *header = (void *)reply;
    const struct nlmsgerr *answer = NLMSG_DATA(header);
    ssize_t n;

    if (send(fd, request, request->header.nlmsg_len, MSG_NOSIGNAL) < 0)
        return -errno;
    n = recv(fd, reply, sizeof(reply), 0);
    if (n < 0)
        return -errno;
    if ((size_t)n < NLMSG_LENGTH(sizeof(*answer)) || header->nlmsg_type != NLMSG_ERROR)
        return -EPROTO;
    return answer->error;
}

/* All are in the table "local", which is looked up first. Its local routes need a source of their
 * own: without one the kernel takes the destination, and a connection to a port that it would also
 * choose for the client could be one to itself. */
static void request_fill(struct request *request, unsigned short type, enum route_kind kind,
                         const struct route_range *range)
{
    static const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
    const uint32_t loopback4 = htonl(INADDR_LOOPBACK), interface = LOOPBACK;
    bool is_v4 = route_is_ipv4(&range->address) && range->bits >= V4_BITS;

    *request = (struct request){
        .header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                    .nlmsg_type = type,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
        .route = { .rtm_family = is_v4 ? AF_INET : AF_INET6,
                   .rtm_dst_len = (unsigned char)(is_v4 ? range->bits - V4_BITS : range->bits),
                   .rtm_table = RT_TABLE_LOCAL,
                   .rtm_protocol = PROTOCOL_HOLT,
                   .rtm_scope = kind == ROUTE_LOCAL && is_v4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                   .rtm_type = kind == ROUTE_LOCAL ? RTN_LOCAL : RTN_PROHIBIT },
    };
    if (type == RTM_NEWROUTE)
        request->header.nlmsg_flags |= NLM_F_CREATE | NLM_F_REPLACE;
    if (request->route.rtm_dst_len > 0)
        attribute_add(request, RTA_DST, range->address.s6_addr + (is_v4 ? 12 : 0), is_v4 ? 4 : 16);
    if (kind == ROUTE_LOCAL) /* the kernel refuses a device for the other kind */
        attribute_add(request, RTA_OIF, &interface, sizeof(interface));
    if (kind == ROUTE_LOCAL && is_v4)
        attribute_add(request, RTA_PREFSRC, &loopback4, sizeof(loopback4));
    else if (kind == ROUTE_LOCAL)
        attribute_add(request, RTA_PREFSRC, &loopback, sizeof(loopback));
}

int route_add(int fd, enum route_kind kind, const struct route_range *range)
{
    struct request request;

    request_fill(&request, RTM_NEWROUTE, kind, range);
    return request_send(fd, &request);
}

/* Reads answers until that of the last request, which alone asks for one; of the others the kernel
 * reports failures. */
static int batch_answer(int fd, uint32_t last)
{
    int first_error = 0;

    for (;;) {
        _Alignas(struct nlmsghdr) char reply[1024];
        const struct nlmsghdr *header = (void *)reply;
        const struct nlmsgerr *answer = (const void *)(reply + NLMSG_HDRLEN);
        ssize_t n = recv(fd, reply, sizeof(reply), 0);

        if (n < 0)
            return -errno;
        if ((size_t)n < NLMSG_LENGTH(sizeof(*answer)) || header->nlmsg_type != NLMSG_ERROR)
            return -EPROTO;
        if (first_error == 0)
            first_error = answer->error;
        if (header->nlmsg_seq == last)
            return first_error;
    }
}

static int batch_send(int fd, const struct route_entry *list, size_t count)
{
    char batch[BATCH_MAX * sizeof(struct request)];
    size_t len = 0;

    for (size_t i = 0; i < count; i++) {
        struct request request;

        request_fill(&request, RTM_NEWROUTE, list[i].kind, &list[i].range);
        request.header.nlmsg_seq = (uint32_t)i + 1;
        if (i + 1 < count)
            request.header.nlmsg_flags &= (uint16_t)~NLM_F_ACK;
        memcpy(batch + len, &request, request.header.nlmsg_len);
        len += NLMSG_ALIGN(request.header.nlmsg_len);
    }
    if (send(fd, batch, len, MSG_NOSIGNAL) < 0)
        return -errno;
    return batch_answer(fd, (uint32_t)count);
}

int route_add_all(int fd, const struct route_entry *list, size_t count)
{
    int r = 0;

    for (size_t done = 0; r == 0 && done < count; done += BATCH_MAX)
        r = batch_send(fd, list + done, count - done < BATCH_MAX ? count - done : BATCH_MAX);
    return r;
}

int route_remove(int fd, enum route_kind kind, const struct route_range *range)
{
    struct request request;
    int r;

    request_fill(&request, RTM_DELROUTE, kind, range);
    r = request_send(fd, &request);
    return r == -ESRCH || r == -ENOENT ? 0 : r;
}

/* Reads a route of a dump; returns whether it is Holt's. */
static bool route_read(struct nlmsghdr *header, enum route_kind *ret_kind, struct route_range *ret)
{
    struct rtmsg *route = NLMSG_DATA(header);
    struct rtattr *attribute = RTM_RTA(route);
    bool is_v4 = route->rtm_family == AF_INET;
    unsigned left = RTM_PAYLOAD(header);

    if (route->rtm_protocol != PROTOCOL_HOLT || route->rtm_table != RT_TABLE_LOCAL)
        return false;
    *ret_kind = route->rtm_type == RTN_LOCAL ? ROUTE_LOCAL : ROUTE_PROHIBIT;
    *ret = (struct route_range){ .bits = route->rtm_dst_len + (is_v4 ? V4_BITS : 0U) };
    if (is_v4)
        ret->address.s6_addr[10] = ret->address.s6_addr[11] = 0xff;
    for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
        if (attribute->rta_type == RTA_DST)
            memcpy(ret->address.s6_addr + (is_v4 ? 12 : 0), RTA_DATA(attribute), is_v4 ? 4 : 16);
    return true;
}

struct found {
    enum route_kind kind;
    struct route_range range;
};

struct found_list {
    struct found *list;
    size_t count;
};

/* Adds Holt's routes of one answer to the list. Returns 1 at the end of the dump. */
static int dump_read(char *reply, size_t len, struct found_list *found)
{
    struct nlmsghdr *header = (void *)reply;
    unsigned left = (unsigned)len;

    for (; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
        struct found one;

        if (header->nlmsg_type == NLMSG_DONE)
            return 1;
        if (header->nlmsg_type == NLMSG_ERROR)
            return ((const struct nlmsgerr *)NLMSG_DATA(header))->error;
        if (!route_read(header, &one.kind, &one.range))
            continue;
        found->list = xreallocarray(found->list, found->count + 1, sizeof(one));
        found->list[found->count++] = one;
    }
    return 0;
}

static int routes_list(int fd, unsigned char family, struct found_list *found)
{
    struct request request = {
        .header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                    .nlmsg_type = RTM_GETROUTE,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        .route = { .rtm_family = family },
    };
    cleanup_free char *reply = xcalloc(1, REPLY_BYTES);
    int r = 0;

    if (send(fd, &request, request.header.nlmsg_len, MSG_NOSIGNAL) < 0)
        return -errno;
    while (r == 0) {
        ssize_t n = recv(fd, reply, REPLY_BYTES, 0);

        r = n < 0 ? -errno : dump_read(reply, (size_t)n, found);
    }
    return r < 0 ? r : 0;
}

int route_flush(int fd)
{
    static const unsigned char families[] = { AF_INET, AF_INET6 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(families); i++) {
        struct found_list found = { .list = NULL };

        r = routes_list(fd, families[i], &found);
        for (size_t j = 0; r == 0 && j < found.count; j++)
            r = route_remove(fd, found.list[j].kind, &found.list[j].range);
        free(found.list);
    }
    return r;
}

/* Reads the answer to the request with a number; older ones are dropped. */
static int lookup_read(int fd, uint32_t number)
{
    _Alignas(struct nlmsghdr) char reply[1024];
    struct nlmsghdr *header = (void *)reply;

    for (;;) {
        ssize_t n = recv(fd, reply, sizeof(reply), MSG_DONTWAIT); /* it is there already */

        if (n < 0)
            return -errno;
        if ((size_t)n < NLMSG_LENGTH(sizeof(struct rtmsg)))
            return -EPROTO;
        if (header->nlmsg_seq != number)
            continue;
        if (header->nlmsg_type == NLMSG_ERROR)
            return ((const struct nlmsgerr *)NLMSG_DATA(header))->error;
        return ((const struct rtmsg *)NLMSG_DATA(header))->rtm_type;
    }
}

int route_leads_here(int fd, const struct in6_addr *address)
{
    static _Thread_local uint32_t last_number;
    bool is_v4 = route_is_ipv4(address);
    struct request request = {
        .header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                    .nlmsg_type = RTM_GETROUTE,
                    .nlmsg_flags = NLM_F_REQUEST,
                    .nlmsg_seq = ++last_number },
        .route = { .rtm_family = is_v4 ? AF_INET : AF_INET6, .rtm_dst_len = is_v4 ? 32 : 128 },
    };
    int r;

    attribute_add(&request, RTA_DST, address->s6_addr + (is_v4 ? 12 : 0), is_v4 ? 4 : 16);
    if (send(fd, &request, request.header.nlmsg_len, MSG_NOSIGNAL) < 0)
        return -errno;
    r = lookup_read(fd, request.header.nlmsg_seq);
    if (r == -ENETUNREACH || r == -EHOSTUNREACH || r == -EACCES)
        return 0;
    if (r < 0)
        return r;
    return r != RTN_UNICAST && r != RTN_UNREACHABLE && r != RTN_PROHIBIT && r != RTN_BLACKHOLE;
}

bool route_has_ipv6(void)
{
    cleanup_close int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(53) };

    /* 2000::/3 is what is assigned to the internet; connecting a datagram socket sends nothing. */
    (void)inet_pton(AF_INET6, "2001:4860::1", &address.sin6_addr);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}
