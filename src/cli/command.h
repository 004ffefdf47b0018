/* A command is one file with one const struct command; the list of them is in main.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/options.h"

struct command {
    const char *group;    /* the heading that --help lists it under */
    const char *name;     /* one word, or two: "template import" */
    const char *operands; /* behind the options, as --help shows them; "" for none */
    const char *summary;
    const struct option_table *options;
    bool takes_command; /* the operands are another command's words: options end at the first */
    bool passes_status; /* exits as a process in a sandbox does; Holt's own failures are all 125 */

    /* argv[0] is the last word of the name. Returns the exit status. */
    int (*run)(int argc, char **argv);
};

/* Every command's own options struct starts with this one. */
struct common_options {
    bool wants_help;
};

/* Of commands that show things. */
struct output_options {
    struct common_options common;
    bool wants_json;
    bool is_quiet;
};

/* Rows for tables that target a struct which starts with output_options. */
#define OPTION_OUTPUT                                                                              \
    {                                                                                              \
        "output", 'o', "FORMAT", "'table' (the default) or 'json'", option_set_output              \
    }
#define OPTION_JSON                                                                                \
    {                                                                                              \
        "json", 0, NULL, "the same as --output json", option_set_json                              \
    }
#define OPTION_QUIET                                                                               \
    {                                                                                              \
        "quiet", 'q', NULL, "print only ids", option_set_quiet                                     \
    }

int option_set_output(void *into, const char *value, struct err *err);
int option_set_json(void *into, const char *value, struct err *err);
int option_set_quiet(void *into, const char *value, struct err *err);

/* The row that every command's table ends with. */
#define OPTION_HELP                                                                                \
    {                                                                                              \
        "help", 'h', NULL, "show this help", option_set_help                                       \
    }

int option_set_help(void *into, const char *value, struct err *err);

extern const struct command command_run, command_create, command_exec, command_ps, command_logs,
    command_attach, command_kill, command_wait, command_launch, command_port, command_ls,
    command_inspect, command_pause, command_resume, command_stop, command_start, command_rm,
    command_turn, command_snapshot, command_snapshots, command_snapshots_rm, command_rollback,
    command_fork, command_diff, command_shell, command_sh, command_shells, command_shells_rm,
    command_template_import, command_template_commit, command_template_ls, command_template_rm,
    command_token_create, command_token_ls, command_token_rm, command_audit, command_doctor,
    command_version, command_help;

/* The table of a command that has no option but --help. */
extern const struct option_table option_table_help;

/* All of them, in the order of --help; ends with NULL. */
extern const struct command *const commands[];

/* Parses the command's options into a struct that starts with common_options; ret_next is the index
 * of the first operand. False when there is nothing left to do, with the exit status: help was
 * asked for, or the options are wrong. */
bool command_parse(const struct command *command, void *into, int argc, char **argv, int *ret_next,
                   int *ret_status);

/* The same for ID [--] COMMAND...: options may stand on both sides of the ID, until "--" has ended
 * them. Where the ID and the command are (argc: nowhere). */
struct command_words {
    int id;
    int command;
};
bool command_parse_with_id(const struct command *command, void *options, int argc, char **argv,
                           struct command_words *ret, int *ret_status);

/* The same for a command without options of its own that takes from least to most operands (most 0:
 * any number); wrong ones are reported as "needs " and what needs says. */
struct operands {
    int least, most;
    const char *needs; /* "an ID" */
};
bool command_parse_plain(const struct command *command, const struct operands *operands, int argc,
                         char **argv, int *ret_next, int *ret_status);

/* Whether there are as many operands as there must be; false after a report. */
bool command_has_operands(const struct command *command, const struct operands *operands,
                          int count);

/* Ends a command that has printed something: the exit status. */
int command_printed(void);

/* Reports wrong operands. Returns the exit status. */
int command_misused(const struct command *command, const char *why);

/* Runs the command that words name, and returns its exit status. */
int commands_run(int count, char **words);

/* Help on the command or the group of commands that words name; without words, on holt. */
int commands_help(int count, char **words);
