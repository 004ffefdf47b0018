/* Shells of a sandbox. Each has a name and runs commands one after the other, in the state
 * (directory, variables, functions, options, jobs) that the previous command left. A shell is an
 * ordinary process, which is started when it is first used, and again after it has ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/process/process.h"
#include "wire/shell.h"

struct err;
struct sandbox;
struct shell_run;

enum {
    SHELL_NAME_MAX = 64,
    SHELL_TEXT_MAX = 1 << 20,
    SHELL_QUEUE_MAX = 64, /* queued commands of one shell */
    SHELLS_MAX = 256,     /* per sandbox */
};

struct shell_info {
    char name[SHELL_NAME_MAX + 1];
    enum shell_kind kind;            /* SHELL_NONE: never started */
    char process[16];                /* id of its process; "": none */
    bool is_busy;                    /* runs a command */
    unsigned waiting;                /* commands queued after the running one */
    uint64_t commands;               /* since the daemon started */
    char user[PROCESS_USER_MAX + 1]; /* "": root */
    char tier[PROCESS_TIER_MAX + 1]; /* "": the sandbox's own runtime */
};

const char *shell_kind_name(enum shell_kind kind); /* "bash", "sh", "" */

struct shell_end_info {
    int exit_code; /* of the command, or of the shell if the command ended that; 124 timed out */
    bool is_timed_out;
    bool is_shell_ended;
    char reason[240]; /* why the shell has ended, if known; else "" */
    uint64_t duration_ms;
};

enum shell_event_kind {
    SHELL_EVENT_STARTED,
    SHELL_EVENT_STDOUT,
    SHELL_EVENT_STDERR,
    SHELL_EVENT_SILENCE, /* no event for silence_ms */
    SHELL_EVENT_ENDED
};

struct shell_event {
    enum shell_event_kind kind;
    size_t len;                /* of output: bytes in the caller's buffer */
    struct shell_end_info end; /* of ended */
};

struct shell_command {
    const char *name;    /* of the shell, which is created if it does not exist */
    const char *text;    /* copied */
    uint64_t timeout_ms; /* for waiting and running together; 0: none */
    uint64_t silence_ms; /* time without an event until SHELL_EVENT_SILENCE; 0: never */
    const char *user;    /* of a new shell; ERR_BUSY if it has another one. NULL: any, or root */
    const char *tier;    /* likewise, see process.h; NULL: any, or the sandbox's own runtime */
    char *const *env;    /* "NAME=value" to export before, NULL-terminated; copied; or NULL */
    const char *cwd;     /* directory to enter before; copied; NULL: where it is */
};

/* Appends a command to the queue of the shell. */
int shell_run_new(struct sandbox *sandbox, const struct shell_command *command,
                  struct shell_run **ret, struct err *err);

/* Waits for the next event: STARTED, then output in data, finally ENDED. Returns 0, -ECANCELED
 * once the peer of watch_fd (a connection; -1: none) has hung up, or another error with err set,
 * if the command did not run. */
int shell_run_next(struct shell_run *run, int watch_fd, void *data, size_t size,
                   struct shell_event *ret, struct err *err);

/* Makes shell_run_next return -ECANCELED. May be called from any thread while the run is not
 * freed. */
void shell_run_cancel(struct shell_run *run);

/* Returns the id of the process that runs the command, from STARTED on. */
const char *shell_run_process(const struct shell_run *run);

/* Frees the run. A running command is interrupted, and ends before this returns. Accepts NULL. */
void shell_run_free(struct shell_run *run);

/* Starts the shell unless it runs. The second one uses user, tier, env and cwd of a command. */
int shell_open_with(struct sandbox *sandbox, const struct shell_command *command,
                    struct shell_info *ret, struct err *err);
int shell_open(struct sandbox *sandbox, const char *name, struct shell_info *ret, struct err *err);

/* Returns a shell, and starts nothing. */
int shell_get(struct sandbox *sandbox, const char *name, struct shell_info *ret, struct err *err);

/* Lists the shells by name; the caller frees *ret. */
int shell_list(struct sandbox *sandbox, struct shell_info **ret, size_t *ret_count,
               struct err *err);

/* Ends the shell with its children; snapshots keep its state. */
int shell_remove(struct sandbox *sandbox, const char *name, struct err *err);
