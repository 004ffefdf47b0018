/* Tools that run a process. A recipe makes the command and explains its outcome. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct process_end;
struct tool_job;

enum {
    TOOL_ARGS_MAX = 1100,
    TOOL_ENV_MAX = 32,
    TOOL_READ_ONLY_PROCESSES_MAX = 8, /* at a time in a sandbox, for read-only clients */
};

/* The command to run; owns its strings. */
struct tool_command {
    char *args[TOOL_ARGS_MAX + 1];
    char *env[TOOL_ENV_MAX + 1];
    int arg_count, env_count;
    char *cwd;
    uint64_t timeout_ms; /* 0: only that of the job */
};

void tool_command_done(struct tool_command *command);

/* Append a copy of an argument or of a variable (NAME=VALUE). */
void tool_command_add(struct tool_command *command, const char *arg);
void tool_command_set(struct tool_command *command, const char *variable);

struct tool_recipe {
    const char *name; /* of the tool */

    /* Makes the command and returns 1; returns 0 after tool_job_set_error, or negative with err
     * set. `attempt` counts from 0; it increases when the program does not exist. */
    int (*make)(struct tool_job *job, int attempt, struct tool_command *ret, struct err *err);

    /* Appends an explanation of the outcome for the model; NULL: none. errors is the stderr of the
     * process, or the beginning of it. */
    void (*explain)(struct tool_job *job, const struct process_end *end, const char *errors,
                    struct buf *out);

    /* Completes the result after the end of the process; NULL: nothing to do. */
    void (*finish)(struct tool_job *job);

    const char *silence;   /* text of the result of a process without output */
    int attempts;          /* number of programs to try */
    int retry_exit;        /* exit code that asks for the next attempt; 0: none */
    bool is_shell;         /* stderr under a heading, the exit code at the end */
    bool is_failure_error; /* a nonzero exit code is an error of the tool */
    uint64_t text_max;     /* bytes of the result, also for a larger budget; 0: no limit */
};

/* Returns the recipe of a git tool, or NULL. */
const struct tool_recipe *tool_git_recipe(const char *tool);

/* Returns the recipe of run_code, or NULL. */
const struct tool_recipe *tool_code_recipe(const char *tool);

/* Runs a command and appends its stdout to out. Returns the exit code, or negative with err set. */
int tool_capture(struct tool_job *job, const struct tool_command *command, struct buf *out,
                 struct err *err);
