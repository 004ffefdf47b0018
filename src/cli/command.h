/* A command is one file with one const struct command; the list of them is in main.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/options.h"

struct command {
    const char *name;     /* one word, or two: "template import" */
    const char *operands; /* behind the options, as --help shows them; "" for none */
    const char *summary;
    const struct option_table *options;

    /* argv[0] is the last word of the name. Returns the exit status. */
    int (*run)(int argc, char **argv);
};

/* Every command's own options struct starts with this one. */
struct common_options {
    bool wants_help;
};

/* The row that every command's table ends with. */
#define OPTION_HELP                                                                                \
    {                                                                                              \
        "help", 'h', NULL, "show this help", option_set_help                                       \
    }

int option_set_help(void *into, const char *value, struct err *err);

extern const struct command command_run, command_template_import, command_template_ls,
    command_template_rm, command_doctor, command_version, command_help;

/* All of them, in the order of --help; ends with NULL. */
extern const struct command *const commands[];

/* Parses the command's options into a struct that starts with common_options; ret_next is the index
 * of the first operand. False when there is nothing left to do, with the exit status: help was
 * asked for, or the options are wrong. */
bool command_parse(const struct command *command, void *into, int argc, char **argv, int *ret_next,
                   int *ret_status);

/* Reports wrong operands. Returns the exit status. */
int command_misused(const struct command *command, const char *why);

/* Runs the command that words name, and returns its exit status. */
int commands_run(int count, char **words);

/* Help on the command or the group of commands that words name; without words, on holt. */
int commands_help(int count, char **words);
