/* A process in a sandbox: its output as a stream of events, and its outcome. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "wire/shell.h"

struct err;
struct machine;
struct output_reader;
struct process;
struct reader_event;
struct record;

enum {
    PROCESS_INPUT_MAX = 64 * 1024,
    /* Of arguments and variables, with the NUL and the pointer of each, as the kernel counts them;
     * what else is in a spawn frame needs the rest of its 2 MiB. */
    PROCESS_ARGS_BYTES_MAX = (2 << 20) - (16 << 10),
    PROCESS_ARGS_MAX = PROCESS_ARGS_BYTES_MAX / 8,
    PROCESS_TAG_MAX = 128, /* bytes of a tag or an idempotency key */
    PROCESS_USER_MAX = 64,
    PROCESS_TIER_MAX = 16,
    PROCESS_EXIT_HOLT = 125, /* exit code of failures that the process did not cause */
};

enum output_stream { PROCESS_OUT, PROCESS_ERR, PROCESS_STREAMS };

enum restart { RESTART_NO, RESTART_ON_FAILURE, RESTART_ALWAYS };

struct process_spec {
    char *const *args; /* NULL-terminated, at least one */
    char *const *env;  /* NULL-terminated "NAME=value", or NULL */
    const char *cwd;   /* NULL: /workspace; with a user, "~" and relative paths start at its home */
    const char *user;  /* a name or uid of the sandbox, or several separated by ':', of which the
                          first that exists is used; NULL: root */
    const char *group; /* a name or gid: its only group; needs a user; NULL: those of the user */
    bool has_stdin;    /* otherwise stdin is empty */
    bool has_terminal; /* a PTY instead of pipes */
    uint16_t rows, columns;
    uint64_t timeout_ms;  /* 0: none */
    const char *tag;      /* a client's name for it; NULL: none */
    const char *key;      /* idempotency key: a second start fails; NULL: none */
    enum restart restart; /* after it exits without being killed by Holt */
    uint16_t port;        /* port of a service, which is forwarded; 0: none */
    uint16_t host_port;   /* the port on the host that it is forwarded to; 0: any */
    bool is_detached;     /* has no reader: never blocks on output, and outlives its client */
    const char *tier;     /* the runtime to run in, at least as strong as that of the sandbox; NULL:
                             that one */
    enum shell_kind shell;  /* see host/shell/shell.h */
    bool waits_for_writers; /* ends only when all writers have closed its output, or after SIGKILL
                               or SIGTERM */
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

/* Returns "exited", "timed-out", ... */
const char *process_outcome_name(enum outcome outcome);

/* Why Holt ended a process. */
enum killer {
    KILLER_NONE,
    KILLER_USER,   /* a client sent a signal */
    KILLER_CLIENT, /* the client disconnected */
    KILLER_ROLLBACK,
    KILLER_STOP,
    KILLER_DESTROY,
    KILLER_QUOTA,
};

/* Why a process was not started. */
enum start_failure {
    START_FAILURE_OTHER,
    START_FAILURE_CWD,
    START_FAILURE_COMMAND,
    START_FAILURE_USER
};

struct process_end {
    enum outcome outcome;
    enum start_failure start_failure; /* of not started; not stored in the journal */
    enum killer killer;               /* of killed */
    int exit_code;                    /* 128+n for a signal, 124 timed out, 126/127 not started */
    int signal;
    char reason[240]; /* empty unless killed, lost or not started */
    uint64_t duration_ms;
    uint64_t cpu_ms;
    uint64_t memory_peak_bytes; /* peak RSS of the process or a child that it waited for */
};

/* Copies a spec into one block of memory, which the caller frees. */
struct process_spec *process_spec_copy(const struct process_spec *spec);

/* Starts a process. Returns before the guest has executed the command; a failure to do so is an
 * outcome. The caller owns one reference. */
int process_start(struct machine *machine, const struct process_spec *spec, struct process **ret,
                  struct err *err);

/* Finds a running process by id and takes a reference, or returns ERR_NOT_FOUND. */
int process_find(struct machine *machine, const char *id, struct process **ret, struct err *err);

const char *process_id(const struct process *process);

/* Returns the record, valid until the process's last reference is dropped, or the record's if
 * the caller takes one. */
struct record *process_record(struct process *process);

/* Waits until the guest has started the process or reported a failure. Returns whether it was
 * started. */
bool process_wait_started(struct process *process);

/* Returns the reader of process_next; NULL for a detached process. */
struct output_reader *process_reader(struct process *process);

/* Like reader_next, with the reader of the client that started the process, which has
 * back-pressure. Not valid for a detached process or after process_abandon. */
int process_next(struct process *process, int watch_fd, void *data, size_t size,
                 struct reader_event *ret);

/* Waits until the guest has room, then sends len (at most PROCESS_INPUT_MAX) bytes to stdin, and
 * closes it if eof is set. ERR_BUSY if stdin is closed or the process has ended. */
int process_send_input(struct process *process, const void *data, size_t len, bool eof,
                       struct err *err);

/* Like process_send_input, but returns -ECANCELED and sends nothing if watch_fd hangs up before
 * there is room. */
int process_offer_input(struct process *process, int watch_fd, const void *data, size_t len,
                        bool eof, struct err *err);

/* Sends a signal to the process or, with tree, to everything in its cgroup. */
int process_signal(struct process *process, int signal, bool tree, struct err *err);

/* Kills the process and everything in its cgroup; the outcome names the killer. */
void process_kill(struct process *process, enum killer killer);

/* Sets memory and CPU limits (0: none) for the process and its children, below the limits of the
 * sandbox. Waits until the process has been started; does nothing if it has ended. */
int process_limit(struct process *process, uint64_t memory_bytes, uint32_t cpu_millis,
                  struct err *err);

/* Resizes the terminal for a client that is no viewer (viewer.h). ERR_INVALID for a process without
 * one. */
int process_resize(struct process *process, uint16_t rows, uint16_t columns, struct err *err);

/* Drops the caller's reference. The process continues without back-pressure from this client. */
void process_abandon(struct process *process);

struct process *process_ref(struct process *process);

/* Accepts NULL. */
void process_unref(struct process *process);
DEFINE_CLEANUP(process_unref, struct process *);
