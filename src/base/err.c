// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/control.h"

/* Codes and statuses: https://connectrpc.com/docs/protocol/#error-codes. Exit statuses: holt(1). */
static const struct err_kind_row kinds[ERR_KINDS] = {
    [ERR_NONE] = { "none", "unknown", 500, 125, false, 0 },
    [ERR_INVALID] = { "invalid", "invalid_argument", 400, 2, false, EINVAL },
    [ERR_NOT_FOUND] = { "not_found", "not_found", 404, 3, false, ENOENT },
    [ERR_EXISTS] = { "exists", "already_exists", 409, 4, false, EEXIST },
    [ERR_DENIED] = { "denied", "permission_denied", 403, 5, false, EACCES },
    [ERR_UNAUTHENTICATED] = { "unauthenticated", "unauthenticated", 401, 6, false, EPERM },
    [ERR_EXHAUSTED] = { "exhausted", "resource_exhausted", 429, 7, false, ENOSPC },
    [ERR_BUSY] = { "busy", "failed_precondition", 400, 8, false, EBUSY },
    [ERR_UNSUPPORTED] = { "unsupported", "unimplemented", 501, 9, false, EOPNOTSUPP },
    [ERR_UNAVAILABLE] = { "unavailable", "unavailable", 503, 10, true, ESHUTDOWN },
    [ERR_DEADLINE] = { "deadline", "deadline_exceeded", 504, 11, true, ETIMEDOUT },
    [ERR_CANCELED] = { "canceled", "canceled", 499, 12, true, ECANCELED },
    [ERR_INTERNAL] = { "internal", "internal", 500, 125, false, EIO },
};

/* Remedies of kinds, for errors without a cause. */
static const char *const kind_remedies[ERR_KINDS] = {
    [ERR_UNAUTHENTICATED] = "set HOLT_TOKEN to the daemon's token",
    [ERR_INTERNAL] = "see the daemon's log",
    [ERR_DEADLINE] = "allow more time, and check whether the operation has completed",
};

static const struct {
    const char *name;
    enum err_kind kind;
    bool is_retryable;
    const char *remedy;
} causes[ERR_CAUSES] = {
    [CAUSE_SESSION_NOT_FOUND] = { "SessionNotFound", ERR_NOT_FOUND, false,
                                  "list sandboxes with 'holt ls'" },
    [CAUSE_SESSION_EXISTS] = { "SessionExists", ERR_EXISTS, false, "choose another name, or none" },
    [CAUSE_SESSION_PAUSED] = { "SessionPaused", ERR_BUSY, false, "resume it with 'holt resume'" },
    [CAUSE_SESSION_DESTROYING] = { "SessionDestroying", ERR_BUSY, false, "create a new sandbox" },
    [CAUSE_PROCESS_NOT_FOUND] = { "ProcessNotFound", ERR_NOT_FOUND, false,
                                  "list processes with 'holt ps --all'" },
    [CAUSE_PROCESS_EXISTS] = { "ProcessExists", ERR_EXISTS, false, NULL },
    [CAUSE_PROCESS_ENDED] = { "ProcessEnded", ERR_BUSY, false, "see its output with 'holt logs'" },
    [CAUSE_SNAPSHOT_NOT_FOUND] = { "SnapshotNotFound", ERR_NOT_FOUND, false,
                                   "list snapshots with 'holt snapshots'" },
    [CAUSE_SNAPSHOT_EXISTS] = { "SnapshotExists", ERR_EXISTS, false, "choose another name" },
    [CAUSE_ROLLBACK_IN_PROGRESS] = { "RollbackInProgress", ERR_BUSY, true,
                                     "try again after the rollback" },
    [CAUSE_INVALID_STATE] = { "InvalidState", ERR_BUSY, false,
                              "see the state of the sandbox with 'holt inspect'" },
    [CAUSE_MAX_SESSIONS_REACHED] = { "MaxSessionsReached", ERR_EXHAUSTED, true,
                                     "remove sandboxes with 'holt rm', or raise sandboxes.max" },
    [CAUSE_SNAPSHOTS_NOT_AVAILABLE] = { "SnapshotsNotAvailable", ERR_UNSUPPORTED, false,
                                        "choose another storage in holt.conf(5)" },
    [CAUSE_POOL_FULL] = { "PoolFull", ERR_EXHAUSTED, true,
                          "remove sandboxes or snapshots, or enlarge the storage" },
    [CAUSE_SHUTTING_DOWN] = { "ShuttingDown", ERR_UNAVAILABLE, true,
                              "try again when the daemon is running again" },
    [CAUSE_TOOLS_IN_FLIGHT] = { "ToolsInFlight", ERR_BUSY, true,
                                "wait for the running tools, or stop them" },
    [CAUSE_QUOTA_EXCEEDED] = { "QuotaExceeded", ERR_EXHAUSTED, false,
                               "remove files or snapshots of the sandbox, or create one with a "
                               "larger quota" },
    [CAUSE_CAPACITY_EXCEEDED] = { "CapacityExceeded", ERR_EXHAUSTED, true,
                                  "try again when some of them have ended" },
    [CAUSE_TEMPLATE_NOT_FOUND] = { "TemplateNotFound", ERR_NOT_FOUND, false,
                                   "list templates with 'holt template ls'" },
    [CAUSE_TEMPLATE_IN_USE] = { "TemplateInUse", ERR_BUSY, false,
                                "remove the sandboxes that use it first" },
    [CAUSE_FILE_NOT_FOUND] = { "FileNotFound", ERR_NOT_FOUND, false, NULL },
    [CAUSE_FILE_EXISTS] = { "FileExists", ERR_EXISTS, false, NULL },
    [CAUSE_NO_SPACE] = { "NoSpace", ERR_EXHAUSTED, false,
                         "remove files in the sandbox, or give it a larger quota" },
    [CAUSE_CEILING_REACHED] = { "CeilingReached", ERR_EXHAUSTED, false,
                                "remove sandboxes of this owner, or let an administrator raise the "
                                "ceiling with 'holt owner set'" },
};

const struct err_kind_row *err_kind_row(enum err_kind kind)
{
    return &kinds[kind < ERR_KINDS ? kind : ERR_NONE];
}

enum err_kind err_kind_of_code(const char *code)
{
    for (enum err_kind kind = ERR_NONE; kind < ERR_KINDS; kind++)
        if (strcmp(kinds[kind].code, code) == 0)
            return kind;
    return ERR_NONE;
}

const char *err_kind_name(enum err_kind kind)
{
    return kind < ERR_KINDS ? kinds[kind].name : "unknown";
}

const char *err_remedy_of(const struct err *err)
{
    if (err->remedy[0])
        return err->remedy;
    if (err->cause > CAUSE_NONE && err->cause < ERR_CAUSES)
        return causes[err->cause].remedy;
    return err->kind < ERR_KINDS ? kind_remedies[err->kind] : NULL;
}

bool err_is_retryable(const struct err *err)
{
    if (err->cause > CAUSE_NONE && err->cause < ERR_CAUSES)
        return causes[err->cause].is_retryable;
    return err_kind_row(err->kind)->is_retryable;
}

const char *err_cause_name(enum err_cause cause)
{
    return cause < ERR_CAUSES ? causes[cause].name : NULL;
}

/* Keeps the message on one line: a quoted name may contain control characters. */
__attribute__((format(printf, 2, 0))) static void err_format(struct err *err, const char *format,
                                                             va_list args)
{
    (void)vsnprintf(err->msg, sizeof(err->msg), format, args);
    text_drop_controls(err->msg);
}

static int err_fill(struct err *err, enum err_kind kind, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static int err_fill(struct err *err, enum err_kind kind, const char *format, va_list args)
{
    err->kind = kind;
    err->cause = CAUSE_NONE;
    err->remedy[0] = '\0';
    err->errnum = kinds[kind].errnum;
    err_format(err, format, args);
    return -err->errnum;
}

int err_set(struct err *err, enum err_kind kind, const char *format, ...)
{
    va_list args;
    int r;

    va_start(args, format);
    r = err_fill(err, kind, format, args);
    va_end(args);
    return r;
}

int err_refuse(struct err *err, enum err_cause cause, const char *format, ...)
{
    va_list args;
    int r;

    va_start(args, format);
    r = err_fill(err, causes[cause].kind, format, args);
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
    err->remedy[0] = '\0';
    err->errnum = r < 0 ? -r : EIO;
    va_start(args, format);
    err_format(err, format, args);
    va_end(args);

    /* A long name must not displace the reason. */
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
    err_format(err, format, args);
    va_end(args);
    used = strlen(err->msg);
    (void)snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", inner);
    return err->errnum > 0 ? -err->errnum : -EIO;
}

int err_remedy(struct err *err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(err->remedy, sizeof(err->remedy), format, args);
    va_end(args);
    return err->errnum > 0 ? -err->errnum : -EIO;
}
