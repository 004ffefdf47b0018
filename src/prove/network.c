// SPDX-License-Identifier: Apache-2.0
/* The network of the host, and sockets that no policy sees. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "prove/prove.h"

#define METADATA "169.254.169.254"

enum { METADATA_PORT = 80, PATIENCE_S = 5 };

static int connect_to(const char *text, uint16_t port)
{
    const struct timeval patience = { .tv_sec = PATIENCE_S };
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), saved;

    (void)inet_pton(AF_INET, text, &address.sin_addr);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    saved = errno;
    (void)close(fd);
    errno = saved;
    return -1;
}

void attempt_loopback(const struct facts *facts, struct result *ret)
{
    token_read(facts, connect_to("127.0.0.1", (uint16_t)facts->port), ret, "connect");
}

void attempt_host_address(const struct facts *facts, struct result *ret)
{
    if (*facts->address) {
        token_read(facts, connect_to(facts->address, (uint16_t)facts->address_port), ret,
                   "connect");
        return;
    }
    errno = 0;
    absent(ret, "the host has only loopback");
}

/* A connection that is accepted and closed without a byte was refused by the policy: holt-net reads
 * the request first. So a server has to answer, as those of clouds do. */
void attempt_metadata(const struct facts *facts, struct result *ret)
{
    static const char request[] =
        "GET /latest/meta-data/ HTTP/1.1\r\nHost: " METADATA "\r\nConnection: close\r\n\r\n";
    int fd = connect_to(METADATA, METADATA_PORT);
    char answer[64];

    (void)facts;
    if (fd < 0) {
        held(ret, "connect");
        return;
    }
    errno = 0;
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) > 0 &&
        recv(fd, answer, sizeof(answer), 0) > 0)
        reached(ret, METADATA " answered");
    else
        held(ret, "no answer");
    (void)close(fd);
}

static void address_add(int fd)
{
    struct ifreq request = { .ifr_name = "lo" };
    struct sockaddr_in address = { .sin_family = AF_INET };

    request.ifr_flags = IFF_UP;
    (void)ioctl(fd, SIOCSIFFLAGS, &request);
    (void)snprintf(request.ifr_name, sizeof(request.ifr_name), "lo:1");
    (void)inet_pton(AF_INET, METADATA, &address.sin_addr);
    memcpy(&request.ifr_addr, &address, sizeof(address));
    (void)ioctl(fd, SIOCSIFADDR, &request);
}

/* Gives the control a network of its own, in which the address has a server. */
void prepare_metadata(const struct facts *facts)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(METADATA_PORT) };
    int fd, accepted;

    (void)facts;
    if (unshare(CLONE_NEWNET) < 0)
        return;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address_add(fd);
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0 ||
        fork() != 0)
        return;
    (void)alarm(2 * PATIENCE_S);
    accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    (void)!write(accepted, "HTTP/1.1 200 OK\r\n\r\n", 19);
    _exit(0);
}

static void socket_open(int family, int type, int protocol, struct result *ret)
{
    int fd = socket(family, type | SOCK_CLOEXEC, protocol);

    if (fd >= 0)
        reached(ret, "opened the socket");
    else
        held(ret, "socket");
    if (fd >= 0)
        (void)close(fd);
}

void attempt_raw_socket(const struct facts *facts, struct result *ret)
{
    (void)facts;
    socket_open(AF_INET, SOCK_RAW, IPPROTO_ICMP, ret);
}

void attempt_packet_socket(const struct facts *facts, struct result *ret)
{
    (void)facts;
    socket_open(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL), ret);
}

void attempt_vsock(const struct facts *facts, struct result *ret)
{
    (void)facts;
    socket_open(AF_VSOCK, SOCK_STREAM, 0, ret);
    if (!facts->is_inside && !ret->is_reached)
        ret->is_absent = true;
}
