/* Starts one process of the sandbox. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "wire/message.h"

/* What every process of the sandbox gets. */
struct spawn_rules {
    const void *filter; /* array of struct sock_filter, or NULL */
    size_t filter_len;  /* in bytes */
    uint64_t capabilities;
    bool allows_setuid; /* else whatever is executed has no more rights than who executes it */
};

struct spawn {
    const struct spawn_rules *rules;
    const struct message_spawn *message;
    int fds[3];      /* what becomes 0, 1 and 2 */
    int terminal_fd; /* becomes the controlling terminal; -1: none */
    int cgroup_fd;   /* to be born in; -1: that of holt-init */
    /* Of a shell: what becomes side_first and the numbers behind it. */
    const int *side_fds;
    int side_first, side_count;
};

/* Returns the pid, or -errno with the step that failed. */
pid_t spawn_start(const struct spawn *spawn, enum failed_step *ret_step);
