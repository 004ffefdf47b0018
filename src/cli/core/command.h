/* A command is one file with one const struct command; the list of them is in main.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/options.h"

struct command {
    const char *group;    /* the heading that --help lists it under */
    const char *name;     /* one word, or two: "template import" */
    const char *operands; /* after the options, as --help shows them; "" for none. Completion
                             derives the kind of an operand (ID, TEMPLATE, ...) from these words. */
    const char *summary;
    const char *example; /* extra lines for --help, or NULL */
    const struct option_table *options;
    bool takes_command; /* the operands are a command line: option parsing ends at the first one */
    bool passes_status; /* the exit status is that of a process in a sandbox; failures of Holt
                           itself are 125 */

    /* argv[0] is the last word of the name. Returns the exit status. */
    int (*run)(int argc, char **argv);
};

/* Every command's own options struct starts with this one. */
struct common_options {
    bool wants_help;
};

/* For commands that print a result. */
struct output_options {
    struct common_options common;
    bool wants_json; /* never together with is_quiet, which precedes */
    bool is_quiet;
    bool wants_bytes; /* sizes as plain numbers */
};

/* Rows for tables that target a struct which starts with output_options. */
#define OPTION_OUTPUT                                                                              \
    {                                                                                              \
        "output", 'o', "FORMAT", "'table' (the default) or 'json'", OPTION_CALL(option_set_output) \
    }
#define OPTION_JSON                                                                                \
    {                                                                                              \
        "json", 0, NULL, "the same as --output json", OPTION_CALL(option_set_json)                 \
    }
#define OPTION_QUIET                                                                               \
    {                                                                                              \
        "quiet", 'q', NULL, "print only ids", OPTION_CALL(option_set_quiet)                        \
    }
#define OPTION_BYTES                                                                               \
    {                                                                                              \
        "bytes", 0, NULL, "print sizes as plain numbers of bytes",                                 \
            OPTION_FLAG(struct output_options, wants_bytes)                                        \
    }
#define OPTION_QUIET_NAMES                                                                         \
    {                                                                                              \
        "quiet", 'q', NULL, "print only names", OPTION_CALL(option_set_quiet)                      \
    }

int option_set_output(void *into, const char *value, struct err *err);
int option_set_json(void *into, const char *value, struct err *err);
int option_set_quiet(void *into, const char *value, struct err *err);

/* The row that every command's table ends with. */
#define OPTION_HELP                                                                                \
    {                                                                                              \
        "help", 'h', NULL, "show this help", OPTION_FLAG(struct common_options, wants_help)        \
    }

extern const struct command command_run;
extern const struct command command_create;
extern const struct command command_ls;
extern const struct command command_inspect;
extern const struct command command_stats;
extern const struct command command_top;
extern const struct command command_update;
extern const struct command command_pause;
extern const struct command command_resume;
extern const struct command command_stop;
extern const struct command command_start;
extern const struct command command_rm;
extern const struct command command_prune;
extern const struct command command_cp;
extern const struct command command_exec;
extern const struct command command_launch;
extern const struct command command_ps;
extern const struct command command_logs;
extern const struct command command_attach;
extern const struct command command_kill;
extern const struct command command_wait;
extern const struct command command_port;
extern const struct command command_port_ls;
extern const struct command command_shell;
extern const struct command command_sh;
extern const struct command command_shells;
extern const struct command command_shells_rm;
extern const struct command command_tool;
extern const struct command command_tools;
extern const struct command command_turn;
extern const struct command command_snapshot;
extern const struct command command_snapshots;
extern const struct command command_snapshots_rm;
extern const struct command command_snapshots_note;
extern const struct command command_rollback;
extern const struct command command_fork;
extern const struct command command_export;
extern const struct command command_import;
extern const struct command command_diff;
extern const struct command command_changes;
extern const struct command command_codebase_add;
extern const struct command command_codebase_apply;
extern const struct command command_codebase_branch;
extern const struct command command_codebase_ls;
extern const struct command command_codebase_log;
extern const struct command command_codebase_rm;
extern const struct command command_perm_ls;
extern const struct command command_perm_set;
extern const struct command command_perm_add;
extern const struct command command_perm_rm;
extern const struct command command_perm_why;
extern const struct command command_perm_test;
extern const struct command command_commit;
extern const struct command command_discard;
extern const struct command command_rebase;
extern const struct command command_merge;
extern const struct command command_template_build;
extern const struct command command_template_import;
extern const struct command command_template_prune;
extern const struct command command_template_pull;
extern const struct command command_template_push;
extern const struct command command_template_commit;
extern const struct command command_template_ls;
extern const struct command command_template_rm;
extern const struct command command_template_net;
extern const struct command command_template_share;
extern const struct command command_template_runtime;
extern const struct command command_mcp;
extern const struct command command_backup;
extern const struct command command_backup_gc;
extern const struct command command_backup_ls;
extern const struct command command_backup_restore;
extern const struct command command_backup_rm;
extern const struct command command_registry_login;
extern const struct command command_registry_logout;
extern const struct command command_registry_ls;
extern const struct command command_secret_ls;
extern const struct command command_secret_rm;
extern const struct command command_secret_rotate;
extern const struct command command_secret_set;
extern const struct command command_agent_ls;
extern const struct command command_agent_show;
extern const struct command command_agent_run;
extern const struct command command_agent_serve;
extern const struct command command_agent_install;
extern const struct command command_volume_adopt;
extern const struct command command_volume_create;
extern const struct command command_volume_ls;
extern const struct command command_volume_rm;
extern const struct command command_net_show;
extern const struct command command_net_set;
extern const struct command command_net_allow;
extern const struct command command_net_deny;
extern const struct command command_net_log;
extern const struct command command_net_learn;
extern const struct command command_net_test;
extern const struct command command_llm_models;
extern const struct command command_llm_usage;
extern const struct command command_owner_ls;
extern const struct command command_owner_show;
extern const struct command command_owner_set;
extern const struct command command_owner_rm;
extern const struct command command_volume_share;
extern const struct command command_console;
extern const struct command command_console_ls;
extern const struct command command_console_revoke;
extern const struct command command_token_create;
extern const struct command command_token_ls;
extern const struct command command_token_rm;
extern const struct command command_audit;
extern const struct command command_events;
extern const struct command command_info;
extern const struct command command_doctor;
extern const struct command command_completion;
extern const struct command command_version;
extern const struct command command_help;

/* The tables of a command that has no option but --help, of one that prints a result, and of one
 * whose results have names. */
extern const struct option_table option_table_help;
extern const struct option_table option_table_output;
extern const struct option_table option_table_output_names;

/* All commands in the order of --help, terminated by NULL. */
extern const struct command *const commands[];

/* Parses the command's options into a struct that starts with common_options; ret_next is the index
 * of the first operand. Returns false with the exit status if help was printed or an option is
 * wrong. */
bool command_parse(const struct command *command, void *into, int argc, char **argv, int *ret_next,
                   int *ret_status);

/* The same for ID [--] COMMAND...: options may precede or follow the ID, up to "--". Stores the
 * indexes of the ID and of the command (argc: absent). */
struct command_words {
    int id;
    int command;
};
bool command_parse_with_id(const struct command *command, void *options, int argc, char **argv,
                           struct command_words *ret, int *ret_status);

/* The same for a command without options of its own that takes between least and most operands
 * (most 0: no maximum); another number is reported as "needs NEEDS". */
struct operands {
    int least, most;
    const char *needs; /* "an ID" */
};
bool command_parse_plain(const struct command *command, const struct operands *operands, int argc,
                         char **argv, int *ret_next, int *ret_status);

/* Returns whether the number of operands is right; if not, reports it. */
bool command_has_operands(const struct command *command, const struct operands *operands,
                          int count);

/* Flushes stdout. Returns the exit status. */
int command_printed(void);

/* Reports wrong operands. Returns the exit status. */
int command_misused(const struct command *command, const char *why);

/* Returns the command with the longest name that the words begin with, and its number of words;
 * NULL: none. */
const struct command *command_find(int count, char *const *words, int *ret_used);

/* Returns whether the command has a name of two words that starts with this one. */
bool command_is_below(const struct command *command, const char *word);

/* Runs the command that words name, and returns its exit status. */
int commands_run(int count, char **words);

/* Prints help on the command or the group that words name; without words, on holt. */
int commands_help(int count, char **words);
