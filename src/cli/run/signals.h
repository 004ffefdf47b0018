/* The signals that `holt run` takes on behalf of the command it runs. */
#pragma once

#include <stdbool.h>

struct run_signal {
    int number;
    bool is_from_kernel; /* typed at the terminal or its hang-up, not sent with kill(2) */
};

/* Blocks the signals to be passed on, and returns the descriptor to poll for them, or -errno. */
int run_signals_open(bool has_tty);

/* The next one: 1, or 0 when there is none. */
int run_signals_next(int fd, struct run_signal *ret);
