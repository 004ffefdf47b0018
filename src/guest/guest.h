/* The state of holt-init: one connection to the daemon, one sandbox, its processes. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "guest/boot.h"
#include "guest/link.h"
#include "guest/net/netlink.h"
#include "guest/process/names.h"
#include "guest/process/spawn.h"
#include "guest/watch.h"
#include "wire/message.h"

enum { GUEST_PROCESSES_MAX = 4096 };

_Static_assert(GUEST_PROCESSES_MAX *(FRAME_HEADER_SIZE + MESSAGE_STATE_SIZE) + LINK_OUT_BUSY <
                   LINK_OUT_MAX,
               "the output buffer must hold the states of all processes at once");

struct cell;
struct connection;
struct process;

struct guest {
    int epoll_fd;
    struct watch signals;
    struct watch listener; /* fd < 0: the sandbox ends with the connection */
    struct link link;
    struct boot_result base;
    struct netlink_guard netlink;
    struct spawn_rules rules;
    struct buf filter; /* owns the memory of rules.filter */
    struct names names;
    bool is_inner;     /* inside a cell */
    struct cell *cell; /* NULL: it never had one */
    bool is_booted;
    bool is_rooted; /* nothing may run before a root is entered */
    struct process *processes;
    unsigned process_count;
    unsigned shell_count;      /* processes that are shells */
    uint32_t last_process;     /* highest process id that was ever started */
    struct process *forgotten; /* freed at the end of the turn, because pending events may still
                                  point to them */
    struct connection
        *connections[FRAME_CONNECTIONS_MAX]; /* indexed by number % FRAME_CONNECTIONS_MAX */
    unsigned connection_count;
    unsigned next_connection;           /* round-robin start of the next pump */
    struct connection *old_connections; /* freed at the end of the turn, like `forgotten` */
};
