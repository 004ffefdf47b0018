/* Errors that name their noun. Leaf calls return -errno; whoever knows the noun fills a struct err.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

enum err_kind {
    ERR_NONE,
    ERR_INVALID,         /* the request cannot be right */
    ERR_NOT_FOUND,       /* the thing named does not exist */
    ERR_EXISTS,          /* the name is taken */
    ERR_DENIED,          /* not allowed */
    ERR_EXHAUSTED,       /* a limit is reached */
    ERR_BUSY,            /* not in this state */
    ERR_UNSUPPORTED,     /* this machine or backend cannot */
    ERR_INTERNAL,        /* a system call failed that should not have */
    ERR_UNAUTHENTICATED, /* who asks has not said who they are */
    ERR_UNAVAILABLE,     /* there is nobody to ask, for now */
    ERR_DEADLINE,        /* the caller's time was over first; it may have happened all the same */
    ERR_CANCELED,        /* the caller no longer wanted it */
    ERR_KINDS
};

/* What a kind is to everybody outside. This table is the only place that says it. */
struct err_kind_row {
    const char *name;     /* in configuration, logs and tests */
    const char *code;     /* of the Connect protocol */
    unsigned http_status; /* of a unary reply */
    int exit_status;      /* of a command of holt that runs nobody else's */
    bool is_retryable;    /* whether the same call may succeed later, if no cause says otherwise */
    int errnum;
};

/* The refusals that a program must tell apart. The names on the wire are those that the field
 * knows, where a sandbox is a "session". */
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
    CAUSE_CAPACITY_EXCEEDED, /* of the daemon: as many as there can be at one time */
    CAUSE_TEMPLATE_NOT_FOUND,
    CAUSE_TEMPLATE_IN_USE,
    CAUSE_FILE_NOT_FOUND,
    CAUSE_FILE_EXISTS,
    CAUSE_NO_SPACE,
    ERR_CAUSES
};

/* Fixed size and without pointers: nothing to free, and a dying child can send it whole. */
struct err {
    enum err_kind kind;
    enum err_cause cause;
    int errnum;
    char msg[240];
    char remedy[200]; /* what a person can do about it, where the call site knows; else "" */
};

_Static_assert(sizeof(struct err) <= PIPE_BUF, "a struct err must fit one atomic pipe write");

/* A refusal in the caller's terms. Returns the negative errno that stands for kind. */
int err_set(struct err *err, enum err_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A refusal with a cause, whose kind follows from it. Returns as err_set does. */
int err_refuse(struct err *err, enum err_cause cause, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A failed system call: kind internal, errnum = -r, and the reason behind the message. Returns r.
 */
int err_sys(struct err *err, int r, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts context in front of an error that is already set. Returns the errno that err carries. */
int err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One sentence that a person can act on, in the place of what the cause or the kind would say. The
 * error must be set. Returns as err_wrap does. */
int err_remedy(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What to do about it: the error's own remedy, else its cause's, else its kind's; NULL: nothing
 * that we know of. */
const char *err_remedy_of(const struct err *err);

/* Whether the same call may succeed later without anybody changing anything. */
bool err_is_retryable(const struct err *err);

/* The row of a kind; that of ERR_NONE ("unknown") for what is none. */
const struct err_kind_row *err_kind_row(enum err_kind kind);

/* The kind that a Connect code stands for; ERR_NONE for a code that Holt does not use. */
enum err_kind err_kind_of_code(const char *code);

/* The stable lower-case name of a kind, as configuration and logs spell it. */
const char *err_kind_name(enum err_kind kind);

/* "SessionPaused", ...; NULL for CAUSE_NONE. */
const char *err_cause_name(enum err_cause cause);
