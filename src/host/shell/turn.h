/* A command of a shell, for the two files that bring it from the queue to its end: shell_run.c has
 * its life, shell_turn.c what happens when its turn comes, which process takes it and what that is
 * given.
 */
#pragma once

#include "host/process/process_internal.h"
#include "host/shell/shell_internal.h"

enum run_state {
    RUN_QUEUED,
    RUN_WAITING, /* it is its turn, but the process has a command of an earlier life */
    RUN_RESTORING,
    RUN_RUNNING,
    RUN_ENDED,
};

struct shell_run {
    struct sandbox *sandbox; /* referenced, attached */
    struct shell *shell;     /* referenced */
    struct shell_run *next;
    struct process *process; /* referenced, from its turn on */
    int event_fd;
    char *text;
    bool is_hidden;
    bool is_told; /* STARTED was given */
    bool has_restored;
    enum run_state state;
    enum shell_kind kind; /* of a process that was started for it */
    uint64_t deadline_ms; /* 0: none */
    uint64_t silence_ms;  /* as in struct shell_command */
    uint64_t started_ms;
    bool is_timed_out; /* and the guest was told */
    atomic_bool is_canceled;
    struct shell_end_info end;
};

static inline struct shell_link *shell_run_link(const struct shell_run *run)
{
    return run->process->shell;
}

/* Its turn has come: the shell's process takes it, or one that is started for it; or it waits until
 * the process has ended a command of an earlier life. */
int turn_take(struct shell_run *run, struct err *err);

/* The kind that the remembered state is for, or bash, where there is one. */
enum shell_kind turn_wanted_kind(struct shell_run *run);

/* Starts a process of this kind and begins. */
int turn_spawn(struct shell_run *run, enum shell_kind kind, struct err *err);

/* Gives the process the command, or first what brings back the shell's state. */
int turn_begin(struct shell_run *run, struct err *err);

/* Takes the reference that the caller has to the process. */
void turn_use_process(struct shell_run *run, struct process *process);
void turn_let_process_go(struct shell_run *run);
bool turn_is_process_busy(const struct shell_run *run);
