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

const char *err_kind_name(enum err_kind kind)
{
    return kind < ERR_KINDS ? kinds[kind].name : "unknown";
}

int err_set(struct err *err, enum err_kind kind, const char *format, ...)
{
    va_list args;

    err->kind = kind;
    err->errnum = kinds[kind].errnum;
    va_start(args, format);
    (void)vsnprintf(err->msg, sizeof(err->msg), format, args);
    va_end(args);
    return -err->errnum;
}

int err_sys(struct err *err, int r, const char *format, ...)
{
    char reason[64];
    size_t used;
    va_list args;

    err->kind = ERR_INTERNAL;
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
