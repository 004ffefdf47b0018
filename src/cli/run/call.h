/* Runs a command somewhere and stays with it to its end. */
#pragma once

#include <jansson.h>

struct command;
struct run_options;

struct run_call {
    const struct command *command; /* ours, for messages */
    const char *method;            /* that answers with a stream of RunResponse */
    json_t *request;               /* all but "process"; taken */
    const struct run_options *options;
    char **args; /* ends with NULL */
};

/* The exit status, which is the command's own where it has one. */
int run_call(const struct run_call *call);
