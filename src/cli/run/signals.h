/* The signals that `holt run` forwards to its command. */
#pragma once

#include <stdbool.h>

struct run_signal {
    int number;
    bool is_from_kernel; /* of the terminal: a key or its hang-up; not of kill(2) */
};

/* Blocks the signals to forward; returns the descriptor to poll for them, or -errno. */
int run_signals_open(bool has_tty);

/* Returns 1 and the next signal, or 0 if there is none. */
int run_signals_next(int fd, struct run_signal *ret);
