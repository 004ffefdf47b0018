// SPDX-License-Identifier: Apache-2.0
#include "host/worker/file_error.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"

static const char *const verbs[FILE_MESSAGE_TYPES] = {
    [FILE_STAT] = "stat",     [FILE_LIST] = "list",    [FILE_READ] = "read",
    [FILE_WRITE] = "write",   [FILE_MKDIR] = "create", [FILE_MOVE] = "move to",
    [FILE_REMOVE] = "remove", [FILE_PULL] = "copy",    [FILE_PUSH] = "copy to",
    [FILE_WATCH] = "watch",
};

/* Errnos that the client can cause; any other is an internal error. */
static const struct {
    int errnum;
    enum err_kind kind;
    enum err_cause cause;
} kinds[] = {
    { ENOENT, ERR_NOT_FOUND, CAUSE_FILE_NOT_FOUND },
    { ESRCH, ERR_NOT_FOUND, CAUSE_NONE },
    { EEXIST, ERR_EXISTS, CAUSE_FILE_EXISTS },
    { ENOSPC, ERR_EXHAUSTED, CAUSE_NO_SPACE },
    { EDQUOT, ERR_EXHAUSTED, CAUSE_NO_SPACE },
    { EFBIG, ERR_EXHAUSTED, CAUSE_NONE },
    { ENOMEM, ERR_EXHAUSTED, CAUSE_NONE },
    { EMFILE, ERR_EXHAUSTED, CAUSE_NONE },
    { EMLINK, ERR_EXHAUSTED, CAUSE_NONE },
    { EACCES, ERR_DENIED, CAUSE_NONE },
    { EPERM, ERR_DENIED, CAUSE_NONE },
    { EROFS, ERR_DENIED, CAUSE_NONE },
    { ENOTDIR, ERR_INVALID, CAUSE_NONE },
    { EISDIR, ERR_INVALID, CAUSE_NONE },
    { EINVAL, ERR_INVALID, CAUSE_NONE },
    { ELOOP, ERR_INVALID, CAUSE_NONE },
    { ENAMETOOLONG, ERR_INVALID, CAUSE_NONE },
    { ENOTEMPTY, ERR_INVALID, CAUSE_NONE },
    { EXDEV, ERR_INVALID, CAUSE_NONE },
    { ENXIO, ERR_INVALID, CAUSE_NONE },
    { EBADMSG, ERR_INVALID, CAUSE_NONE },
    { ENOTSUP, ERR_INVALID, CAUSE_NONE },
    { EBUSY, ERR_BUSY, CAUSE_NONE },
    { ETXTBSY, ERR_BUSY, CAUSE_NONE },
    { EAGAIN, ERR_BUSY, CAUSE_NONE },
    { ECANCELED, ERR_BUSY, CAUSE_NONE },
    { ESTALE, ERR_BUSY, CAUSE_NONE },
};

int file_error_set(struct err *err, enum file_message_type request,
                   const struct file_failure *failure)
{
    const char *why = failure->why[0] ? failure->why : strerror((int)failure->errnum);

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (kinds[i].errnum != (int)failure->errnum)
            continue;
        if (kinds[i].cause != CAUSE_NONE)
            return err_refuse(err, kinds[i].cause, "%s '%.120s': %.80s", verbs[request],
                              failure->path, why);
        return err_set(err, kinds[i].kind, "%s '%.120s': %.80s", verbs[request], failure->path,
                       why);
    }
    return err_sys(err, -(int)failure->errnum, "%s '%.120s'", verbs[request], failure->path);
}
