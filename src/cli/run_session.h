/* One run from its first event to its outcome. */
#pragma once

#include <stdbool.h>

struct holt_stream;

struct run_setup {
    struct holt_stream *stream; /* of RunResponse */
    const char *host;
    const char *command; /* its name, for messages */
    int signal_fd;
    bool has_tty;
    bool has_stdin;
};

/* Passes output, input and signals until the process has ended: the exit status. */
int run_session(const struct run_setup *setup);
