/* Errors that name their object. Low-level calls return -errno; the caller that knows the object
 * fills a struct err. */
#pragma once

#include <limits.h>
#include <stdbool.h>

enum err_kind {
    ERR_NONE,
    ERR_INVALID,         /* the request is invalid */
    ERR_NOT_FOUND,       /* the named object does not exist */
    ERR_EXISTS,          /* the name already exists */
    ERR_DENIED,          /* not allowed */
    ERR_EXHAUSTED,       /* a limit is reached */
    ERR_BUSY,            /* not possible in this state */
    ERR_UNSUPPORTED,     /* not supported by this machine or backend */
    ERR_INTERNAL,        /* a system call failed unexpectedly */
    ERR_UNAUTHENTICATED, /* the caller has not authenticated */
    ERR_UNAVAILABLE,     /* the service is not reachable for now */
    ERR_DEADLINE,        /* the caller's deadline passed first; the operation may have completed */
    ERR_CANCELED,        /* the caller cancelled the operation */
    ERR_KINDS
};

/* How a kind appears to clients. This table is the only source of it. */
struct err_kind_row {
    const char *name;     /* in configuration, logs and tests */
    const char *code;     /* Connect protocol code */
    unsigned http_status; /* status of a unary reply */
    int exit_status;      /* exit status of holt commands that do not run another program */
    bool is_retryable;    /* the same call may succeed later, unless the cause says otherwise */
    int errnum;
};

/* Causes that programs need to distinguish. Their wire names are established ones, in which a
 * sandbox is a "session". */
enum err_cause {
    CAUSE_NONE,
    CAUSE_SESSION_NOT_FOUND,
    CAUSE_SESSION_EXISTS,
    CAUSE_SESSION_PAUSED,
    CAUSE_SESSION_DESTROYING,
    CAUSE_PROCESS_NOT_FOUND,
    CAUSE_PROCESS_EXISTS,
    CAUSE_PROCESS_ENDED,
    CAUSE_SNAPSHOT_NOT_FOUND,
    CAUSE_SNAPSHOT_EXISTS,
    CAUSE_ROLLBACK_IN_PROGRESS,
    CAUSE_INVALID_STATE,
    CAUSE_MAX_SESSIONS_REACHED,
    CAUSE_SNAPSHOTS_NOT_AVAILABLE,
    CAUSE_POOL_FULL,
    CAUSE_SHUTTING_DOWN,
    CAUSE_TOOLS_IN_FLIGHT,
    CAUSE_QUOTA_EXCEEDED,    /* of one sandbox */
    CAUSE_CAPACITY_EXCEEDED, /* limit of the daemon */
    CAUSE_TEMPLATE_NOT_FOUND,
    CAUSE_TEMPLATE_IN_USE,
    CAUSE_FILE_NOT_FOUND,
    CAUSE_FILE_EXISTS,
    CAUSE_NO_SPACE,
    CAUSE_CEILING_REACHED, /* of one owner */
    ERR_CAUSES
};

/* Fixed size and without pointers: nothing to free, and a child can send it whole before it exits.
 */
struct err {
    enum err_kind kind;
    enum err_cause cause;
    int errnum;
    char msg[240];
    char remedy[200]; /* what a person can do, if the call site knows; else "" */
};

_Static_assert(sizeof(struct err) <= PIPE_BUF, "a struct err must fit one atomic pipe write");

/* Sets an error in the caller's terms. Returns the negative errno of its kind. */
int err_set(struct err *err, enum err_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets an error with a cause, which determines its kind. Returns like err_set. */
int err_refuse(struct err *err, enum err_cause cause, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets an error for a failed system call: kind internal, errnum = -r, the reason appended to the
 * message. Returns r. */
int err_sys(struct err *err, int r, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Prepends context to an error that is already set. Returns the negative errno of err. */
int err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets one sentence that a person can act on, which replaces the remedy of the cause or kind. The
 * error must be set. Returns like err_wrap. */
int err_remedy(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the error's own remedy, else that of its cause, else that of its kind; NULL if there is
 * none. */
const char *err_remedy_of(const struct err *err);

/* Returns whether the same call may succeed later without any change. */
bool err_is_retryable(const struct err *err);

/* Returns the row of a kind; that of ERR_NONE ("unknown") for an invalid kind. */
const struct err_kind_row *err_kind_row(enum err_kind kind);

/* Returns the kind of a Connect code; ERR_NONE for a code that Holt does not use. */
enum err_kind err_kind_of_code(const char *code);

/* Returns the stable lower-case name of a kind, as in configuration and logs. */
const char *err_kind_name(enum err_kind kind);

/* Returns "SessionPaused", ...; NULL for CAUSE_NONE. */
const char *err_cause_name(enum err_cause cause);
