/* Netlink sockets of the sandbox. No limit covers the memory of replies that a program does not
 * read, so the number of these sockets is limited: a filter of holt-init, which all processes
 * inherit, passes every request for one to holt-init. It makes the socket if there are few. The
 * same filter passes on sysinfo and sched_getaffinity, see guest/resources.h. */
#pragma once

#include "guest/watch.h"

struct netlink_guard {
    struct watch watch;
    int protocols_fd; /* the kernel's count of sockets */
};

/* Installs the filter and fills *ret. Returns 0 or -errno; then there is no limit. */
int netlink_guard_open(struct netlink_guard *ret);

/* Answers one request. */
struct resources;
void netlink_guard_ready(struct netlink_guard *guard, struct resources *resources);
