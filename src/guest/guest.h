/* holt-init's whole state: one connection, one sandbox, its processes. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "guest/boot.h"
#include "guest/link.h"
#include "guest/process/names.h"
#include "guest/process/spawn.h"
#include "guest/watch.h"
#include "wire/message.h"

enum { GUEST_PROCESSES_MAX = 4096 };

_Static_assert(GUEST_PROCESSES_MAX *(FRAME_HEADER_SIZE + MESSAGE_STATE_SIZE) + LINK_OUT_BUSY <
                   LINK_OUT_MAX,
               "a connection takes the states of all processes at once");

struct connection;
struct process;

struct guest {
    int epoll_fd;
    struct watch signals;
    struct watch listener; /* fd < 0: the sandbox ends with the connection */
    struct link link;
    struct boot_result base;
    struct spawn_rules rules;
    struct buf filter; /* memory of rules.filter */
    struct names names;
    bool is_booted;
    bool is_rooted; /* before that there is nothing that may run */
    struct process *processes;
    unsigned process_count;
    unsigned shell_count;      /* of them */
    uint32_t last_process;     /* the highest id of all that were ever started */
    struct process *forgotten; /* freed at the end of the turn: events may still name them */
    struct connection *connections[FRAME_CONNECTIONS_MAX]; /* by the remainder of the number */
    unsigned connection_count;
    unsigned next_connection;           /* whose turn it is to send */
    struct connection *old_connections; /* as `forgotten` */
};
