/* Errors that name their noun. Leaf calls return -errno; whoever knows the noun fills a struct err.
 */
#pragma once

#include <limits.h>

enum err_kind {
    ERR_NONE,
    ERR_INVALID,     /* the request cannot be right */
    ERR_NOT_FOUND,   /* the thing named does not exist */
    ERR_EXISTS,      /* the name is taken */
    ERR_DENIED,      /* not allowed */
    ERR_EXHAUSTED,   /* a limit is reached */
    ERR_BUSY,        /* not now; later may work */
    ERR_UNSUPPORTED, /* this machine or backend cannot */
    ERR_INTERNAL,    /* a system call failed that should not have */
    ERR_KINDS
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
    ERR_CAUSES
};

/* Fixed size and without pointers: nothing to free, and a dying child can send it whole. */
struct err {
    enum err_kind kind;
    enum err_cause cause;
    int errnum;
    char msg[240];
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

/* The stable lower-case name of a kind, as configuration, logs and the wire spell it. */
const char *err_kind_name(enum err_kind kind);

/* "SessionPaused", ...; NULL for CAUSE_NONE. */
const char *err_cause_name(enum err_cause cause);
