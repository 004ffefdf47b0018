/* Tools that are a process: what it is, and what is said about its end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct tool_job;

enum { TOOL_ARGS_MAX = 1100, TOOL_ENV_MAX = 24 };

/* What to run. Texts belong to the list. */
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
