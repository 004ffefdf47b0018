/* Running a command to its end, for `holt run` and `holt exec`. */
#pragma once

#include <stdbool.h>

struct command;
struct run_options;

struct run_request {
    const struct command *command; /* of holt, for messages */
    const char *sandbox;           /* NULL: a throw-away sandbox */
    const char *key;               /* of idempotency; NULL: none */
    struct run_options *options;
    char **args;    /* ends with NULL */
    bool has_stdin; /* pass stdin on, which is always done on a terminal */
};

/* Runs the command and passes its input, output and signals on. Returns the exit status. */
int run_follow(const struct run_request *request);
