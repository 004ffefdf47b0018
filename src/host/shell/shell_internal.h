/* Internal interface of the shell folder. Shells are under the sandbox's lock, their shell_link
 * under the machine's. */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/shell/shell.h"

enum { SHELL_STATE_MAX = 1 << 20 }; /* bytes of the saved state of a shell */

struct shell {
    struct shell *next; /* in the sandbox's list, which holds a reference */
    atomic_int refs;
    char name[SHELL_NAME_MAX + 1];
    enum shell_kind kind;
    char user[PROCESS_USER_MAX + 1]; /* "": root; while it has a process or is dormant */
    char tier[PROCESS_TIER_MAX + 1]; /* the same; "": the sandbox's own runtime */
    struct process *process;         /* referenced; NULL: none, or it has ended */
    struct shell_run *queue;         /* the first one runs */
    unsigned queued;
    uint64_t commands;
    bool is_dormant;      /* the next process restores the saved state */
    bool is_changed;      /* since the state was saved */
    uint64_t state_input; /* terminal input in bytes when the state was saved */
};

/* Returns the shell of this name, or NULL. Locked. */
struct shell *shell_find(struct sandbox *sandbox, const char *name);

struct shell *shell_new(const char *name);
void shell_unref(struct shell *shell);

/* Inserts the shell into the list, which is sorted by name. Locked. */
void shell_enlist(struct sandbox *sandbox, struct shell *shell);

/* Returns the running process of the shell with a reference, or NULL. Drops a process that has
 * ended. */
struct process *shell_live_process(struct sandbox *sandbox, struct shell *shell);

/* Returns whether the shell ended by itself or at a client's request, so that its state is not
 * restored. */
bool shell_is_gone(const struct process_end *end);

/* Returns whether the shell has state that another user or tier must not get. Locked. */
bool shell_has_user(struct shell *shell);

/* Starts a process of this kind with the shell's user and tier for the shell, and returns it with a
 * reference. If the program does not exist, the outcome of the process says so. */
int shell_spawn(struct sandbox *sandbox, struct shell *shell, enum shell_kind kind,
                struct process **ret, struct err *err);

/* Runs an internal command, if the shell is idle, for HIDDEN_MS at most. Appends its stdout to
 * output (NULL: discarded). Returns 0 if the command succeeded, else -errno. */
int shell_run_hidden(struct sandbox *sandbox, struct shell *shell, const char *text,
                     struct buf *output);
