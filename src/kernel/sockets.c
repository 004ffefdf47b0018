// SPDX-License-Identifier: Apache-2.0
#include "kernel/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { TEXT_BYTES = 1024, REPLY_BYTES = 32 << 10 };

/* Returns the number after a word, from the line that begins with another; 0 if there is none. */
static uint64_t line_number(const char *text, const char *line, const char *word)
{
    const char *end, *found;

    while (text && strncmp(text, line, strlen(line)) != 0) {
        text = strchr(text, '\n');
        text += text ? 1 : 0;
    }
    if (!text)
        return 0;
    end = strchrnul(text, '\n');
    found = strstr(text, word);
    return found && found < end ? strtoull(found + strlen(word), NULL, 10) : 0;
}

static ssize_t text_read(int fd, char text[TEXT_BYTES])
{
    ssize_t n = pread(fd, text, TEXT_BYTES - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return n;
}

void sockets_read_total(int sockstat_fd, int tcp_mem_fd, struct sockets_total *ret)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char text[TEXT_BYTES], *end;

    *ret = (struct sockets_total){ .bytes = 0 };
    if (text_read(sockstat_fd, text) > 0)
        ret->bytes =
            (line_number(text, "TCP:", " mem ") + line_number(text, "UDP:", " mem ")) * page;
    if (text_read(tcp_mem_fd, text) > 0) { /* low, pressure, high */
        (void)strtoull(text, &end, 10);
        ret->pressure = strtoull(end, NULL, 10) * page;
    }
}

long sockets_count(void)
{
    cleanup_close int fd = open("/proc/thread-self/net/sockstat", O_RDONLY | O_CLOEXEC);
    char text[TEXT_BYTES];

    if (fd < 0 || text_read(fd, text) < 0)
        return -errno;
    return (long)line_number(text, "sockets:", " used ");
}

/* A line is "sk Eth Pid Groups Rmem Wmem ...". */
static uint64_t netlink_bytes(void)
{
    FILE *file = fopen("/proc/thread-self/net/netlink", "re");
    char line[TEXT_BYTES];
    uint64_t sum = 0;

    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file)) {
        unsigned bytes;

        if (sscanf(line, "%*s %*s %*s %*s %u", &bytes) == 1) /* NOLINT(cert-err34-c): the kernel */
            sum += bytes;
    }
    (void)fclose(file);
    return sum;
}

/* Returns the bytes in the queues of received data and of errors, if the socket counts. A
 * connection that was not accepted has no inode. */
static uint64_t message_bytes(struct nlmsghdr *message, int protocol)
{
    struct inet_diag_msg *socket = NLMSG_DATA(message);
    unsigned left = message->nlmsg_len - NLMSG_LENGTH(sizeof(*socket));

    if (message->nlmsg_len < NLMSG_LENGTH(sizeof(*socket)) ||
        (protocol == IPPROTO_TCP && socket->idiag_inode != 0))
        return 0;
    for (struct rtattr *part = (struct rtattr *)(void *)(socket + 1); RTA_OK(part, left);
         part = RTA_NEXT(part, left))
        if (part->rta_type == INET_DIAG_SKMEMINFO && RTA_PAYLOAD(part) >= sizeof(uint32_t))
            return ((const uint32_t *)RTA_DATA(part))[SK_MEMINFO_RMEM_ALLOC];
    return 0;
}

/* Returns 1 when the list is complete, 0 if there is more, or -errno. */
static int reply_read(int fd, int protocol, uint64_t *bytes)
{
    _Alignas(struct nlmsghdr) char reply[REPLY_BYTES];
    ssize_t n = recv(fd, reply, sizeof(reply), 0);
    unsigned left = n > 0 ? (unsigned)n : 0;

    if (n <= 0)
        return n < 0 ? -errno : -EIO;
    for (struct nlmsghdr *message = (struct nlmsghdr *)(void *)reply; NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
        if (message->nlmsg_type == NLMSG_DONE)
            return 1;
        if (message->nlmsg_type == NLMSG_ERROR)
            return -EOPNOTSUPP;
        *bytes += message_bytes(message, protocol);
    }
    return 0;
}

static int sockets_add(int fd, uint8_t family, uint8_t protocol, uint64_t *bytes)
{
    const uint32_t connected = 1U << TCP_ESTABLISHED | 1U << TCP_CLOSE_WAIT;
    const struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 query;
    } request = {
        .header = { .nlmsg_len = sizeof(request),
                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        .query = { .sdiag_family = family,
                   .sdiag_protocol = protocol,
                   .idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1),
                   .idiag_states = protocol == IPPROTO_TCP ? connected : UINT32_MAX },
    };
    int r = send(fd, &request, sizeof(request), 0) < 0 ? -errno : 0;

    while (r == 0)
        r = reply_read(fd, protocol, bytes);
    return r < 0 ? r : 0;
}

int sockets_read_uncharged(uint64_t *ret_bytes)
{
    static const uint8_t families[] = { AF_INET, AF_INET6 };
    cleanup_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    int r = fd < 0 ? -errno : 0;

    *ret_bytes = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(families); i++) {
        r = sockets_add(fd, families[i], IPPROTO_TCP, ret_bytes);
        if (r == 0)
            r = sockets_add(fd, families[i], IPPROTO_UDP, ret_bytes);
    }
    *ret_bytes += netlink_bytes();
    return r;
}
