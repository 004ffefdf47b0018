/* `holt run` with options that a throw-away machine does not have: a sandbox is created for the
 * command, and removed at its end unless it is detached. */
#pragma once

#include <stdbool.h>

#include "cli/options/words.h"
#include "cli/run/options.h"

struct run_named {
    struct run_options run;
    const char *name;
    struct words volumes; /* "NAME:PATH[:ro]" */
    struct words ports;   /* "PORT" or "HOSTPORT:PORT" */
    bool is_detached;
};

/* Returns whether one of these options is given. */
bool run_named_is_wanted(const struct run_named *options);

/* Runs the command, whose words end with NULL. Returns the exit status: that of the command, or of
 * its start if it is detached. */
int run_named(struct run_named *options, char **args);

void run_named_done(struct run_named *options);
