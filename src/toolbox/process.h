/* Tools that are a process: what it is, and what is said about its end. */
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
    TOOL_LOOKERS_MAX = 8, /* at a time in a sandbox, for clients that may only look */
};

/* What to run. Texts belong to it. */
struct tool_command {
    char *args[TOOL_ARGS_MAX + 1];
    char *env[TOOL_ENV_MAX + 1];
    int arg_count, env_count;
    char *cwd;
    uint64_t timeout_ms; /* 0: no other than the job's */
};

void tool_command_done(struct tool_command *command);

/* Both take copies. */
void tool_command_add(struct tool_command *command, const char *arg);
void tool_command_set(struct tool_command *command, const char *variable);

/* What is told of one kind of process. */
struct tool_recipe {
    const char *name; /* of the tool */

    /* What to run: 1; 0 when the job was refused; negative with err set. `attempt` counts from 0:
     * the program of the one before did not exist. */
    int (*make)(struct tool_job *job, int attempt, struct tool_command *ret, struct err *err);

    /* Appends what there is to say beyond what it wrote; NULL: nothing. errors is what it wrote to
     * stderr, or the beginning of that. */
    void (*explain)(struct tool_job *job, const struct process_end *end, const char *errors,
                    struct buf *out);

    const char *silence;   /* what is said when it has written nothing */
    int attempts;          /* how many programs may be tried */
    bool is_shell;         /* stderr under a heading, the exit code in the end */
    bool is_failure_error; /* another exit code than 0 means that it could not be done */
    uint64_t text_max;     /* bytes of the result, whatever the caller would take; 0: no limit */
};

/* NULL: there is none of this name. */
const struct tool_recipe *tool_git_recipe(const char *tool);

/* Runs something to its end, for its answer: the exit code, or a negative errno with err set. */
int tool_capture(struct tool_job *job, const struct tool_command *command, struct buf *out,
                 struct err *err);
