/* A process inside a sandbox: its output as a stream of events, and an outcome that is never
 * guessed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shell.h"

struct err;
struct machine;
struct output_reader;
struct process;
struct reader_event;
struct record;

enum {
    PROCESS_INPUT_MAX = 64 * 1024,
    PROCESS_ARGS_MAX = 4096,
    PROCESS_ARGS_BYTES_MAX = 1 << 20,
    PROCESS_TAG_MAX = 128, /* bytes of a tag or an idempotency key */
    PROCESS_USER_MAX = 64,
    PROCESS_EXIT_HOLT = 125, /* the exit code of what is not the process's own doing */
};

enum output_stream { PROCESS_OUT, PROCESS_ERR, PROCESS_STREAMS };

enum restart { RESTART_NO, RESTART_ON_FAILURE, RESTART_ALWAYS };

struct process_spec {
    char *const *args; /* NULL-terminated, at least one */
    char *const *env;  /* NULL-terminated "NAME=value", or NULL */
    const char *cwd;   /* NULL: /workspace; with a user, "~" and relative ones begin at its home */
    const char *user;  /* a name or number of the sandbox's own, or several with ':' between: the
                          first that there is; NULL: root */
    bool has_stdin;    /* otherwise stdin is empty */
    bool has_terminal; /* a PTY instead of pipes */
    uint16_t rows, columns;
    uint64_t timeout_ms;  /* 0: none */
    const char *tag;      /* whatever the client wants to find it by; NULL: none */
    const char *key;      /* idempotency: a second start with it is refused; NULL: none */
    enum restart restart; /* when it has ended by itself */
    uint16_t port;        /* of a service: where it listens, and what is forwarded; 0: none */
    bool is_detached;     /* nobody listens: it never waits for a reader, and goes on without one */
    enum shell_kind shell;  /* it takes commands: see host/shell/shell.h */
    bool waits_for_writers; /* it has not ended while anybody can write its output, unless it was
                               sent SIGKILL or SIGTERM */
};

enum outcome {
    OUTCOME_NONE,
    OUTCOME_EXITED,
    OUTCOME_SIGNALED,
    OUTCOME_TIMED_OUT,
    OUTCOME_OOM,
    OUTCOME_KILLED,
    OUTCOME_LOST,
    OUTCOME_NOT_STARTED,
};

/* "exited", "timed-out", ... */
const char *outcome_word(enum outcome outcome);

/* On whose behalf Holt ended a process. */
enum killer {
    KILLER_NONE,
    KILLER_USER,   /* a signal that a client sent */
    KILLER_CLIENT, /* the client it ran for went away */
    KILLER_ROLLBACK,
    KILLER_STOP,
    KILLER_DESTROY,
    KILLER_QUOTA,
};

/* What was not to be had, of a process that was not started. */
enum obstacle { OBSTACLE_OTHER, OBSTACLE_CWD, OBSTACLE_COMMAND, OBSTACLE_USER };

struct process_end {
    enum outcome outcome;
    enum obstacle obstacle; /* of not started; known to this life of the daemon only */
    enum killer killer;     /* of killed */
    int exit_code;          /* 128+n for a signal, 124 timed out, 126/127 not started */
    int signal;
    char reason[240]; /* empty unless killed, lost or not started */
    uint64_t duration_ms;
    uint64_t cpu_ms;
    uint64_t memory_peak_bytes; /* the largest that it, or one it waited for, was at a time */
};

/* Starts a process; returns before it is known whether the command exists (the end says so). The
 * caller owns one reference. */
int process_start(struct machine *machine, const struct process_spec *spec, struct process **ret,
                  struct err *err);

/* The process of this sandbox with this id, with a reference, or ERR_NOT_FOUND. */
int process_find(struct machine *machine, const char *id, struct process **ret, struct err *err);

const char *process_id(const struct process *process);

/* What is known of it; lives as long as the process, and longer for who takes a reference. */
struct record *process_record(struct process *process);

/* Waits until the sandbox has started it, or has said why not: whether it was. */
bool process_await_start(struct process *process);

/* What process_next reads with; NULL: it was started detached. */
struct output_reader *process_reader(struct process *process);

/* The next of what it writes, or its end, for the one who started it and did not detach it: the
 * process waits for this reader. As reader_next; after process_abandon there is none. */
int process_next(struct process *process, int watch_fd, void *data, size_t size,
                 struct reader_event *ret);

/* Waits until the guest has room, then sends len (at most PROCESS_INPUT_MAX) bytes to stdin and
 * closes it behind them when eof is set. ERR_BUSY when stdin is closed already, or the process is
 * over. */
int process_send_input(struct process *process, const void *data, size_t len, bool eof,
                       struct err *err);

/* The same, for a client who may go meanwhile: -ECANCELED, and nothing sent, when watch_fd hangs up
 * before there is room. */
int process_offer_input(struct process *process, int watch_fd, const void *data, size_t len,
                        bool eof, struct err *err);

/* With tree, the signal goes to everything the process started. */
int process_signal(struct process *process, int signal, bool tree, struct err *err);

/* Kills it and everything it started, on this behalf. */
void process_kill(struct process *process, enum killer killer);

/* Limits it, with all that it starts, to so much memory and CPUs (0: no limit of its own), below
 * the limits of its sandbox. Waits until it has been started; of one that is over there is nothing
 * to limit. */
int process_limit(struct process *process, uint64_t memory_bytes, uint32_t cpu_millis,
                  struct err *err);

/* ERR_INVALID for a process without a terminal. */
int process_resize(struct process *process, uint16_t rows, uint16_t columns, struct err *err);

/* Drops the caller's reference; the process goes on, and waits for nobody. */
void process_abandon(struct process *process);

struct process *process_ref(struct process *process);

/* Accepts NULL. */
void process_unref(struct process *process);
