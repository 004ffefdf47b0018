/* A session with a process, from its first event to its end. */
#pragma once

#include <stdbool.h>

struct connection;
struct holt_process;
struct line_times;

enum run_role {
    RUN_OWNER,  /* the process was started for us */
    RUN_GUEST,  /* the process continues when we detach */
    RUN_VIEWER, /* like RUN_GUEST, and we only read its output */
};

struct run_setup {
    struct connection *connection;
    struct holt_process *process; /* run_session takes it */
    enum run_role role;
    const char *command; /* its name, for messages */
    int signal_fd;       /* of run_signals_open; -1: signals are not forwarded */
    bool has_tty;        /* our terminal becomes raw, and that of the process gets its size */
    bool has_stdin;      /* our stdin is passed on */
    bool keeps_stdin;    /* the end of our stdin does not close that of the process */
    struct line_times *line_times; /* write the time before each line; NULL: do not */
};

/* Passes output, input and signals on until the process ends or we detach. Returns the exit status,
 * which is that of the process, or 0 for a viewer. */
int run_session(const struct run_setup *setup);
