// SPDX-License-Identifier: Apache-2.0
/* usage: queues ring|udp|tcp|raw|netlink|usersock|unix|unaccepted|errors|stamps [SOCKETS]
 * Fills the queues of as many sockets as it gets, and prints how many MiB the kernel holds for
 * them. "ring" maps packet rings instead. An error is printed by its name if there is no first
 * socket. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SOCKETS_MAX = 16000, RINGS = 16, RING_BYTES = 16 << 20, SENDS = 400 };

static unsigned long long held_bytes(int fd, int which)
{
    unsigned info[SK_MEMINFO_VARS] = { 0 };
    socklen_t len = sizeof(info);

    return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) < 0 ? 0 : info[which];
}

static void enlarge(int fd)
{
    const int bytes = 1 << 20;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

/* Fills the queue of a socket that is bound to its own address. */
static unsigned long long fill_self(int fd, const void *address, socklen_t len)
{
    static char data[32 << 10];

    for (int i = 0; i < SENDS; i++)
        if (sendto(fd, data, sizeof(data), MSG_DONTWAIT, address, len) < 0)
            break;
    return held_bytes(fd, SK_MEMINFO_RMEM_ALLOC);
}

static long long take_ring(long n)
{
    struct tpacket_req ring = { .tp_block_size = 1 << 20,
                                .tp_block_nr = RING_BYTES >> 20,
                                .tp_frame_size = 1 << 11,
                                .tp_frame_nr = RING_BYTES >> 11 };
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

    if (n >= RINGS)
        return -ENOSPC;
    /* The old way to ask for the same. */
    if (fd < 0)
        fd = socket(AF_INET, SOCK_PACKET, htons(ETH_P_ALL));
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)) < 0)
        return -errno;
    return RING_BYTES;
}

static long long take_datagrams(int type, long n)
{
    /* An address of its own for each, so that one packet is in one queue. */
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (unsigned)n) };
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, type, type == SOCK_RAW ? 253 /* for experiments */ : 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return -errno;
    enlarge(fd);
    return (long long)fill_self(fd, &address, len);
}

static long long take_udp(long n)
{
    return take_datagrams(SOCK_DGRAM, n);
}

static long long take_raw(long n)
{
    return take_datagrams(SOCK_RAW, n);
}

/* A connection to itself: both queues of it fill. */
static long long take_tcp(long n)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (unsigned)n) };
    socklen_t len = sizeof(address);
    static char data[64 << 10];
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0)
        return -errno;
    enlarge(fd);
    if (bind(fd, (struct sockaddr *)&address, len) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
        connect(fd, (struct sockaddr *)&address, len) < 0)
        return -errno;
    for (int i = 0; i < SENDS; i++)
        if (send(fd, data, sizeof(data), MSG_DONTWAIT) < 0)
            break;
    return (long long)(held_bytes(fd, SK_MEMINFO_RMEM_ALLOC) +
                       held_bytes(fd, SK_MEMINFO_WMEM_QUEUED));
}

static long long take_unix(long n)
{
    static char data[32 << 10];
    int fds[2];

    (void)n;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
        return -errno;
    enlarge(fds[0]);
    for (int i = 0; i < SENDS; i++)
        if (send(fds[0], data, sizeof(data), MSG_DONTWAIT) < 0)
            break;
    return (long long)held_bytes(fds[0], SK_MEMINFO_WMEM_ALLOC);
}

/* The replies to requests for the one device that there is. */
static long long take_netlink(long n)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg info;
    } request = { .header = { .nlmsg_len = sizeof(request),
                              .nlmsg_type = RTM_GETLINK,
                              .nlmsg_flags = NLM_F_REQUEST },
                  .info = { .ifi_index = 1 } };
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

    (void)n;
    if (fd < 0)
        return -errno;
    enlarge(fd);
    for (int i = 0; i < SENDS; i++)
        if (send(fd, &request, sizeof(request), MSG_DONTWAIT) < 0)
            break;
    return (long long)held_bytes(fd, SK_MEMINFO_RMEM_ALLOC);
}

/* Messages from one process to another. */
static long long take_usersock(long n)
{
    struct sockaddr_nl address = { .nl_family = AF_NETLINK };
    socklen_t len = sizeof(address);
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);

    (void)n;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return -errno;
    enlarge(fd);
    return (long long)fill_self(fd, &address, len);
}

/* Returns a listener that never accepts, whose connections inherit its buffer. */
static int idle_listener(struct sockaddr_in *ret)
{
    socklen_t len = sizeof(*ret);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    *ret = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    enlarge(fd);
    if (fd < 0 || bind(fd, (struct sockaddr *)ret, len) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)ret, &len) < 0)
        return -errno;
    return fd;
}

/* A connection that is closed before it is accepted. The bytes that it took are counted, since its
 * socket has no descriptor. */
static long long take_unaccepted(long n)
{
    static struct sockaddr_in address;
    static char data[64 << 10];
    struct pollfd ready = { .events = POLLOUT };
    long long sent = 0;

    if (n == 0 && idle_listener(&address) < 0)
        return -errno;
    ready.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (ready.fd < 0)
        return -errno;
    (void)connect(ready.fd, (struct sockaddr *)&address, sizeof(address));
    while (sent < SENDS * (long long)sizeof(data) && poll(&ready, 1, 500) == 1) {
        ssize_t part = send(ready.fd, data, sizeof(data), MSG_NOSIGNAL);

        if (part <= 0)
            break;
        sent += part;
    }
    (void)close(ready.fd);
    return sent > 0 ? sent : -EAGAIN; /* the queue of the listener is full */
}

/* Sent datagrams that are kept for their time stamps, and errors about closed ports. */
static long long take_errors(long n)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(9),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const int stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE, on = 1;
    static char data[16 << 10];
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    (void)n;
    if (fd < 0)
        return -errno;
    enlarge(fd);
    (void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof(stamps));
    (void)setsockopt(fd, SOL_IP, IP_RECVERR, &on, sizeof(on));
    for (int i = 0; i < SENDS; i++)
        (void)sendto(fd, data, sizeof(data), MSG_DONTWAIT, (struct sockaddr *)&address,
                     sizeof(address));
    return (long long)held_bytes(fd, SK_MEMINFO_RMEM_ALLOC);
}

/* Sent datagrams that are kept for their time stamps, which each asks for itself. */
static long long take_stamps(long n)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(9),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    static char data[60000];
    struct iovec part = { data, sizeof(data) };
    char control[CMSG_SPACE(sizeof(uint32_t))] = { 0 };
    struct msghdr message = { .msg_name = &address,
                              .msg_namelen = sizeof(address),
                              .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control,
                              .msg_controllen = sizeof(control) };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    (void)n;
    if (fd < 0)
        return -errno;
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SO_TIMESTAMPING;
    header->cmsg_len = CMSG_LEN(sizeof(uint32_t));
    *(uint32_t *)(void *)CMSG_DATA(header) = SOF_TIMESTAMPING_TX_SOFTWARE;
    for (int i = 0; i < SENDS; i++)
        (void)sendmsg(fd, &message, MSG_DONTWAIT);
    return (long long)held_bytes(fd, SK_MEMINFO_RMEM_ALLOC);
}

static const struct {
    const char *name;
    long long (*take)(long n);
} kinds[] = {
    { "ring", take_ring },       { "udp", take_udp },
    { "tcp", take_tcp },         { "raw", take_raw },
    { "netlink", take_netlink }, { "usersock", take_usersock },
    { "unix", take_unix },       { "unaccepted", take_unaccepted },
    { "errors", take_errors },   { "stamps", take_stamps },
};

int main(int argc, char **argv)
{
    long most = argc > 2 ? strtol(argv[2], NULL, 10) : SOCKETS_MAX;
    long long held = 0, r = -EINVAL;
    struct rlimit files;

    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (argc < 2 || strcmp(kinds[i].name, argv[1]) != 0)
            continue;
        r = kinds[i].take(0);
        for (long n = 1; n < most && r >= 0; n++) {
            held += r;
            r = kinds[i].take(n);
        }
    }
    if (r < 0 && held == 0)
        (void)printf("%s\n", strerrorname_np((int)-r));
    else
        (void)printf("%lld\n", held >> 20);
    return 0;
}
