/* Starts one process of the sandbox. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "wire/message.h"

/* Settings that apply to every process of the sandbox. */
struct spawn_rules {
    const void *filter; /* array of struct sock_filter, or NULL */
    size_t filter_len;  /* in bytes */
    uint64_t capabilities;
    bool allows_setuid; /* if false, exec never gains privileges (no_new_privs) */
};

struct spawn {
    const struct spawn_rules *rules;
    const struct message_spawn *message;
    int fds[3];      /* become 0, 1 and 2 */
    int terminal_fd; /* becomes the controlling terminal; -1: none */
    int cgroup_fd;   /* cgroup to start in; -1: that of holt-init */
    /* Of a shell: these become side_first and the following numbers. */
    const int *side_fds;
    int side_first, side_count;
};

/* Starts the process. Returns its pid, or -errno and the step that failed. */
pid_t spawn_start(const struct spawn *spawn, enum failed_step *ret_step);
