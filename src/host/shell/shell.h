/* Shells of a sandbox: each has a name, and takes one command after the other. What a command
 * leaves behind (directory, variables, functions, options, jobs) the next one finds. A shell is an
 * ordinary process; it is started when it is first used, and again when it has ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shell.h"

struct err;
struct sandbox;
struct shell_run;

enum {
    SHELL_NAME_MAX = 64,
    SHELL_TEXT_MAX = 1 << 20,
    SHELL_QUEUE_MAX = 64, /* commands that wait for one shell */
    SHELLS_MAX = 256,     /* of a sandbox */
};

struct shell_info {
    char name[SHELL_NAME_MAX + 1];
    enum shell_kind kind; /* SHELL_NONE: not known, it has never run */
    char process[16];     /* id of its process; "": it has none now */
    bool is_busy;         /* with a command */
    unsigned waiting;     /* commands behind that */
    uint64_t commands;    /* that it was given by this life of the daemon */
};

const char *shell_kind_name(enum shell_kind kind); /* "bash", "sh", "" */

struct shell_end_info {
    int exit_code; /* of the command, or of the shell that it ended; 124 timed out */
    bool is_timed_out;
    bool is_shell_ended;
    char reason[240]; /* why the shell has ended, if Holt knows; else "" */
    uint64_t duration_ms;
};

enum shell_event_kind {
    SHELL_EVENT_STARTED,
    SHELL_EVENT_STDOUT,
    SHELL_EVENT_STDERR,
    SHELL_EVENT_SILENCE, /* for whoever has asked for it */
    SHELL_EVENT_ENDED
};

struct shell_event {
    enum shell_event_kind kind;
    size_t len;                /* of output: bytes put into the caller's buffer */
    struct shell_end_info end; /* of ended */
};

struct shell_command {
    const char *name;    /* of the shell, which is made if need be */
    const char *text;    /* copied */
    uint64_t timeout_ms; /* of waiting and running together; 0: none */
    uint64_t silence_ms; /* without another event, after which that is one; 0: never */
};

/* Puts a command behind those that wait for the shell. */
int shell_run_new(struct sandbox *sandbox, const struct shell_command *command,
                  struct shell_run **ret, struct err *err);

/* Waits for the next event: STARTED, output into data, at last ENDED. Returns 0, -ECANCELED once
 * the peer of watch_fd (a connection; -1: none) has hung up, or another error with err set: the
 * command has then not run. */
int shell_run_next(struct shell_run *run, int watch_fd, void *data, size_t size,
                   struct shell_event *ret, struct err *err);

/* Makes shell_run_next return -ECANCELED, from any thread that keeps the run from being freed. */
void shell_run_cancel(struct shell_run *run);

/* The process that the command runs in, from STARTED on. */
const char *shell_run_process(const struct shell_run *run);

/* A command that has not ended is interrupted, and ends before this returns. Accepts NULL. */
void shell_run_free(struct shell_run *run);

/* Makes sure that the shell is there and runs. */
int shell_open(struct sandbox *sandbox, const char *name, struct shell_info *ret, struct err *err);

/* By name; the caller frees *ret. */
int shell_list(struct sandbox *sandbox, struct shell_info **ret, size_t *ret_count,
               struct err *err);

/* Ends it with all that it started; what snapshots remember of it stays. */
int shell_remove(struct sandbox *sandbox, const char *name, struct err *err);
