/* Passes stdin on to the process, in a thread of its own: beside its output where the daemon can do
 * that, else over a second connection. */
#pragma once

#include <stdbool.h>

struct holt_stream;
struct run_target;

struct run_input {
    const struct run_target *target;
    const struct holt_stream *stream;
    bool keeps_open; /* the end of our stdin is not the end of the process's */
    int leave_fd;    /* an eventfd that is told of the keys to leave (leave_keys.h); -1: none */
};

/* Starts the thread and never waits for it: it ends with the program. 0 or -errno. */
int run_input_start(const struct run_input *what);

/* Whether stdin can ever have a byte; /dev/null also stands for a stdin that was closed. */
bool run_input_is_possible(void);
