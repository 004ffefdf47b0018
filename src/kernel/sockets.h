/* The memory that the kernel holds for sockets, above all what it charges to no control group. */
#pragma once

#include <stdint.h>

/* What the kernel counts for the sockets of all network namespaces together. */
struct sockets_total {
    uint64_t bytes;    /* of TCP and UDP */
    uint64_t pressure; /* from which it makes TCP slow, everywhere; 0: unknown */
};

/* Reads the total from descriptors of /proc/net/sockstat and of /proc/sys/net/ipv4/tcp_mem. */
void sockets_read_total(int sockstat_fd, int tcp_mem_fd, struct sockets_total *ret);

/* Returns how many sockets the network namespace of this thread has, or -errno. */
long sockets_count(void);

/* Adds up, for the network namespace of this thread, what no control group is charged for: the data
 * of connections that were not accepted, and replies of the kernel on netlink sockets. Includes all
 * data of datagram sockets, because their error queues are not charged either. Returns 0 or
 * -errno. */
int sockets_read_uncharged(uint64_t *ret_bytes);
