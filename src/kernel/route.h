/* Routes of the network namespace of the calling thread. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/* A range of addresses; IPv4 ones are v4-mapped, with 96 more bits. */
struct route_range {
    struct in6_addr address;
    unsigned bits;
};

enum route_kind {
    ROUTE_LOCAL,    /* "AnyIP": sockets of this namespace answer for the addresses */
    ROUTE_PROHIBIT, /* connect fails with EACCES */
};

struct route_entry {
    enum route_kind kind;
    struct route_range range;
};

/* Opens a socket for the next calls, which belongs to the namespace that this thread is in.
 * Returns a descriptor or -errno. */
int route_open(void);

/* Adds a route, or replaces the one of the same range. Returns 0 or -errno. */
int route_add(int fd, enum route_kind kind, const struct route_range *range);

/* Does that for a list, with few system calls. Returns 0 or the first -errno; the others of the
 * list may have been added then. */
int route_add_all(int fd, const struct route_entry *list, size_t count);

/* Removes a route. Returns 0, also when there is none, or -errno. */
int route_remove(int fd, enum route_kind kind, const struct route_range *range);

/* Removes all routes that route_add has added. Returns 0 or -errno. */
int route_flush(int fd);

/* Returns 1 if packets to an address, v4-mapped for IPv4, stay on this host (its own addresses,
 * also secondary ones, and ranges that were made local) or go to many hosts; 0 if they leave it or
 * have no route; or -errno. Needs no privileges and asks the kernel each time. */
int route_leads_here(int fd, const struct in6_addr *address);

/* Returns whether this namespace has a route to an IPv6 address of the internet. */
bool route_has_ipv6(void);

/* Returns whether the address is IPv4, v4-mapped. */
bool route_is_ipv4(const struct in6_addr *address);
