/* holt-init's whole state: one connection, one sandbox, its processes. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "guest/boot.h"
#include "guest/link.h"
#include "guest/spawn.h"
#include "guest/watch.h"

enum { GUEST_PROCESSES_MAX = 4096 };

struct process;

struct guest {
    int epoll_fd;
    struct watch signals;
    struct watch listener; /* fd < 0: the sandbox ends with the connection */
    struct link link;
    struct boot_result base;
    struct spawn_rules rules;
    struct buf filter; /* memory of rules.filter */
    bool is_booted;
    bool is_rooted; /* before that there is nothing that may run */
    struct process *processes;
    unsigned process_count;
    struct process *forgotten; /* freed at the end of the turn: events may still name them */
};
