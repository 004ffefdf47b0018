/* A shell as the files about shells see it. Under the sandbox's lock; what its process says is
 * under the machine's. */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/shell/shell.h"

enum { SHELL_STATE_MAX = 1 << 20 }; /* bytes of what is remembered of one shell */

struct shell {
    struct shell *next; /* in the sandbox's list, which holds a reference */
    atomic_int refs;
    char name[SHELL_NAME_MAX + 1];
    enum shell_kind kind;
    struct process *process; /* referenced; NULL: none, or an end that was seen */
    struct shell_run *queue; /* the first has its turn */
    unsigned queued;
    uint64_t commands;
    bool is_dormant;      /* the next process begins with what is remembered */
    bool is_changed;      /* since that was written down */
    uint64_t state_input; /* bytes typed at its terminal by then */
};

/* Locked. NULL: there is none. */
struct shell *shell_find(struct sandbox *sandbox, const char *name);

struct shell *shell_new(const char *name);
void shell_unref(struct shell *shell);

/* Locked. Puts it into the list, by name. */
void shell_enlist(struct sandbox *sandbox, struct shell *shell);

/* A process that the shell may use, referenced, or NULL; one that has ended is let go. */
struct process *shell_live_process(struct sandbox *sandbox, struct shell *shell);

/* Whether an end was of the shell's own making, or wanted: there is nothing to go on from. */
bool shell_is_gone(const struct process_end *end);

/* Starts a process of this kind for it; returned referenced. Whether the program exists is said by
 * the end of the process. */
int shell_spawn(struct sandbox *sandbox, struct shell *shell, enum shell_kind kind,
                struct process **ret, struct err *err);

/* A command of Holt's own, unseen: only if nobody else uses the shell, and for a moment at most.
 * Its stdout goes into output (NULL: nowhere). 0 when it ran and ended well, else -errno. */
int shell_run_hidden(struct sandbox *sandbox, struct shell *shell, const char *text,
                     struct buf *output);
