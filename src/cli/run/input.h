/* A thread that passes stdin on to a process. */
#pragma once

#include <stdbool.h>

struct holt_process;

struct run_input {
    struct holt_process *process;
    bool keeps_open; /* the end of stdin does not close the stdin of the process */
    int leave_fd;    /* an eventfd for the keys that detach (leave_keys.h); -1: none */
};

/* Starts the thread, which may use the process until the end of the program. Returns 0 or -errno.
 */
int run_input_start(const struct run_input *options);

/* Lets the thread end, so that later input is for this program. No further one can be started. */
void run_input_stop(void);

/* Returns whether stdin is a pipe or socket that has data. */
bool run_input_is_waiting(void);

/* Returns whether stdin can have input: it is not /dev/null, which also replaces a closed stdin. */
bool run_input_is_possible(void);
