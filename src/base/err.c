// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int errnum;
} kinds[ERR_KINDS] = {
    [ERR_NONE] = { "none", 0 },
    [ERR_INVALID] = { "invalid", EINVAL },
    [ERR_NOT_FOUND] = { "not_found", ENOENT },
    [ERR_EXISTS] = { "exists", EEXIST },
    [ERR_DENIED] = { "denied", EACCES },
    [ERR_EXHAUSTED] = { "exhausted", ENOSPC },
    [ERR_BUSY] = { "busy", EBUSY },
    [ERR_UNSUPPORTED] = { "unsupported", EOPNOTSUPP },
    [ERR_INTERNAL] = { "internal", EIO },
};

static const struct {
    const char *name;
    enum err_kind kind;
} causes[ERR_CAUSES] = {
    [CAUSE_SESSION_NOT_FOUND] = { "SessionNotFound", ERR_NOT_FOUND },
    [CAUSE_SESSION_EXISTS] = { "SessionExists", ERR_EXISTS },
    [CAUSE_SESSION_PAUSED] = { "SessionPaused", ERR_BUSY },
    [CAUSE_SESSION_DESTROYING] = { "SessionDestroying", ERR_BUSY },
    [CAUSE_PROCESS_NOT_FOUND] = { "ProcessNotFound", ERR_NOT_FOUND },
    [CAUSE_PROCESS_EXISTS] = { "ProcessExists", ERR_EXISTS },
    [CAUSE_PROCESS_ENDED] = { "ProcessEnded", ERR_BUSY },
    [CAUSE_SNAPSHOT_NOT_FOUND] = { "SnapshotNotFound", ERR_NOT_FOUND },
    [CAUSE_SNAPSHOT_EXISTS] = { "SnapshotExists", ERR_EXISTS },
    [CAUSE_ROLLBACK_IN_PROGRESS] = { "RollbackInProgress", ERR_BUSY },
    [CAUSE_INVALID_STATE] = { "InvalidState", ERR_BUSY },
    [CAUSE_MAX_SESSIONS_REACHED] = { "MaxSessionsReached", ERR_EXHAUSTED },
    [CAUSE_SNAPSHOTS_NOT_AVAILABLE] = { "SnapshotsNotAvailable", ERR_UNSUPPORTED },
    [CAUSE_POOL_FULL] = { "PoolFull", ERR_EXHAUSTED },
    [CAUSE_SHUTTING_DOWN] = { "ShuttingDown", ERR_BUSY },
};

const char *err_kind_name(enum err_kind kind)
{
    return kind < ERR_KINDS ? kinds[kind].name : "unknown";
}

const char *err_cause_name(enum err_cause cause)
{
    return cause < ERR_CAUSES ? causes[cause].name : NULL;
}

static int set(struct err *err, enum err_kind kind, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static int set(struct err *err, enum err_kind kind, const char *format, va_list args)
{
    err->kind = kind;
    err->cause = CAUSE_NONE;
    err->errnum = kinds[kind].errnum;
    (void)vsnprintf(err->msg, sizeof(err->msg), format, args);
    return -err->errnum;
}

int err_set(struct err *err, enum err_kind kind, const char *format, ...)
{
    va_list args;
    int r;

    va_start(args, format);
    r = set(err, kind, format, args);
    va_end(args);
    return r;
}

int err_refuse(struct err *err, enum err_cause cause, const char *format, ...)
{
    va_list args;
    int r;

    va_start(args, format);
    r = set(err, causes[cause].kind, format, args);
    va_end(args);
    err->cause = cause;
    return r;
}

int err_sys(struct err *err, int r, const char *format, ...)
{
    char reason[64];
    size_t used;
    va_list args;

    err->kind = ERR_INTERNAL;
    err->cause = CAUSE_NONE;
    err->errnum = r < 0 ? -r : EIO;
    va_start(args, format);
    (void)vsnprintf(err->msg, sizeof(err->msg), format, args);
    va_end(args);

    /* A long noun must not push out the reason. */
    (void)snprintf(reason, sizeof(reason), ": %s", strerror(err->errnum));
    used = strlen(err->msg);
    if (used + strlen(reason) >= sizeof(err->msg))
        used = sizeof(err->msg) - 1 - strlen(reason);
    (void)snprintf(err->msg + used, sizeof(err->msg) - used, "%s", reason);
    return -err->errnum;
}

int err_wrap(struct err *err, const char *format, ...)
{
    char inner[sizeof(err->msg)];
    size_t used;
    va_list args;

    memcpy(inner, err->msg, sizeof(inner));
    va_start(args, format);
    (void)vsnprintf(err->msg, sizeof(err->msg), format, args);
    va_end(args);
    used = strlen(err->msg);
    (void)snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", inner);
    return err->errnum > 0 ? -err->errnum : -EIO;
}
