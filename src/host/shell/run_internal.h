/* A queued or running command of a shell. run.c handles the queue and the events, dispatch.c
 * chooses the process and sends it the command. */
#pragma once

#include "host/process/process_internal.h"
#include "host/shell/shell_internal.h"

enum run_state {
    RUN_QUEUED,
    RUN_WAITING, /* first in the queue, but the process still runs a command of a previous daemon */
    RUN_RESTORING,
    RUN_PREPARING, /* sets variables and the directory */
    RUN_RUNNING,
    RUN_ENDED,
};

struct shell_run {
    struct sandbox *sandbox; /* referenced, attached */
    struct shell *shell;     /* referenced */
    struct shell_run *next;
    struct process *process; /* referenced; NULL while queued */
    int event_fd;
    char *text;
    char *preparation; /* a script to run before; NULL: none */
    bool has_prepared; /* it has run */
    char *user;        /* of a new shell; NULL: root */
    char *tier;        /* likewise; NULL: the sandbox's own runtime */
    bool is_hidden;
    bool is_start_reported; /* SHELL_EVENT_STARTED was returned */
    bool has_restored;
    enum run_state state;
    enum shell_kind kind; /* of the process started for this command */
    uint64_t deadline_ms; /* 0: none */
    uint64_t silence_ms;  /* as in struct shell_command */
    uint64_t started_ms;
    bool is_timed_out; /* and the guest was told to interrupt it */
    atomic_bool is_canceled;
    struct shell_end_info end;
    char preparation_failed; /* what the preparation has printed; 0: nothing, all is well */
};

/* What a preparation prints when it fails. */
enum { SHELL_PREPARE_NO_DIRECTORY = 'd', SHELL_PREPARE_NO_VARIABLE = 'v' };

/* Writes the script that exports env and enters cwd of a command; NULL if it has neither.
 * ERR_INVALID for a name that no variable of a shell can have. */
int shell_preparation_make(const struct shell_command *command, char **ret, struct err *err);

static inline struct shell_link *shell_run_link(const struct shell_run *run)
{
    return run->process->shell;
}

/* Sends the command, which is first in the queue, to the shell's process or a new one, or makes
 * it wait until the process has ended a command of a previous daemon. */
int shell_run_dispatch(struct shell_run *run, struct err *err);

/* Returns the kind of the saved state, or bash. */
enum shell_kind shell_run_wanted_kind(struct shell_run *run);

/* Starts a process of this kind and sends it the command. */
int shell_run_spawn(struct shell_run *run, enum shell_kind kind, struct err *err);

/* Sends the process the command, or first the saved state of the shell. */
int shell_run_begin(struct shell_run *run, struct err *err);

/* Sets the process; takes the caller's reference. */
void shell_run_set_process(struct shell_run *run, struct process *process);
void shell_run_drop_process(struct shell_run *run);
bool shell_run_is_process_busy(const struct shell_run *run);
