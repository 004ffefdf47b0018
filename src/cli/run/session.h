/* One run from its first event to its outcome. */
#pragma once

#include <stdbool.h>

struct holt_stream;

/* What we are to the process. */
enum run_role {
    RUN_OWNER,  /* it was started for us */
    RUN_GUEST,  /* it goes on when we leave */
    RUN_VIEWER, /* the same, and all we do is look */
};

struct run_setup {
    struct holt_stream *stream; /* of RunResponse, or one that has more */
    enum run_role role;
    const char *host;
    const char *command; /* its name, for messages */
    int signal_fd;       /* -1: none are passed on */
    bool has_tty;        /* ours is to be raw, and the process's as large as ours */
    bool has_stdin;      /* ours is passed on */
    bool keeps_stdin;    /* the process's stays open at the end of ours */
};

/* Passes output, input and signals until the process has ended, or until we leave: the exit status,
 * which is the process's own, or 0 for who only looks. */
int run_session(const struct run_setup *setup);
