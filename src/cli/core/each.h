/* Commands that do the same to each of their operands. */
#pragma once

#include <stdbool.h>

#include "base/options.h"

struct command;
struct holt;
struct holt_error;

struct each {
    const struct command *command;
    const char *needs;  /* the operands, for messages: "an ID" */
    bool is_of_sandbox; /* the first operand is the sandbox of the others */

    /* Acts on one operand; sandbox is NULL unless is_of_sandbox. Returns 0 or -1. */
    int (*act)(struct holt *holt, const char *sandbox, const char *operand,
               struct holt_error *error);
};

/* --force and --help: with --force, an operand that does not exist is no error. */
extern const struct option_table each_force_table;

/* Acts on each operand; reports a failure and continues, as rm(1) does. Returns the exit status.
 * The options of the command are each_force_table or option_table_help. */
int each_run(const struct each *each, int argc, char **argv);
