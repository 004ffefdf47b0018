// SPDX-License-Identifier: Apache-2.0
/* Runs the zfs command and interprets its messages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "store/backend/zfs_internal.h"
#include "store/command.h"

enum {
    METADATA_MS = 30 * 1000,
    DESTROY_MS = 10 * 60 * 1000, /* a volume with thousands of snapshots takes 10 ms for each */
    PAUSE_FIRST_MS = 1,
    PAUSE_LAST_MS = 512, /* doubled from the first: about a second in total */
};

/* Phrases of several words, so that a name cannot match. */
static const struct {
    const char *words;
    enum err_kind kind;
    int errnum;
} reasons[] = {
    { "zfs-fuse daemon is running", ERR_UNSUPPORTED, EOPNOTSUPP },
    { "internal error: Connection", ERR_UNSUPPORTED, EOPNOTSUPP }, /* zfs-fuse died meanwhile */
    { "modules are not loaded", ERR_UNSUPPORTED, EOPNOTSUPP },
    { "has children", ERR_BUSY, ENOTEMPTY },
    { "has dependent clones", ERR_BUSY, EMLINK },
    { "does not exist", ERR_NOT_FOUND, ENOENT },
    { "no such pool", ERR_NOT_FOUND, ENOENT },
    { "already exists", ERR_EXISTS, EEXIST },
    { "is busy", ERR_BUSY, EBUSY },
    { "umount failed", ERR_BUSY, EBUSY },
    { "less than current used", ERR_EXHAUSTED, EDQUOT },
    { "out of space", ERR_EXHAUSTED, ENOSPC },
    { "quota exceeded", ERR_EXHAUSTED, ENOSPC },
    { "permission denied", ERR_DENIED, EACCES },
};

/* Sets err from the messages of the command; their first line is shown to people. */
static int zfs_error(struct err *err, const char *command, const char *stderr_text)
{
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (!strstr(stderr_text, reasons[i].words))
            continue;
        if (reasons[i].kind == ERR_UNSUPPORTED)
            return err_set(err, ERR_UNSUPPORTED,
                           "zfs does not respond (start zfs-fuse, or load the zfs module)");
        (void)err_set(err, reasons[i].kind, "%s: %.*s", command, (int)strcspn(stderr_text, "\n"),
                      stderr_text);
        if (reasons[i].kind == ERR_EXHAUSTED)
            err->cause = reasons[i].errnum == EDQUOT ? CAUSE_QUOTA_EXCEEDED : CAUSE_POOL_FULL;
        err->errnum = reasons[i].errnum;
        return -err->errnum;
    }
    return err_set(err, ERR_INTERNAL, "%s failed: %.*s", command, (int)strcspn(stderr_text, "\n"),
                   stderr_text);
}

int zfs_run(const char *const args[], struct buf *output, struct err *err)
{
    int timeout_ms = args[1] && strcmp(args[1], "destroy") == 0 ? DESTROY_MS : METADATA_MS;
    struct command_result result;
    int r = command_run(args, timeout_ms, output, &result);

    if (r == -ENOENT)
        return err_set(err, ERR_UNSUPPORTED,
                       "command '%s' not found (package zfs-fuse or zfsutils-linux)", args[0]);
    if (r < 0)
        return err_sys(err, r, "run '%s %s'", args[0], args[1]);
    return result.status == 0 ? 0 : zfs_error(err, args[0], result.stderr_text);
}

int zfs_run_retry(const char *const args[], struct err *err)
{
    int r = zfs_run(args, NULL, err);

    for (long ms = PAUSE_FIRST_MS; r == -EBUSY && ms <= PAUSE_LAST_MS; ms *= 2) {
        clock_sleep_ms((uint64_t)ms);
        r = zfs_run(args, NULL, err);
    }
    return r;
}

int zfs_get(const char *dataset, const char *property, char **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(ZFS_OUTPUT_MAX);
    char *cursor, *line;
    int r = ZFS(&output, err, "get", "-Hp", "-o", "value", property, dataset);

    if (r < 0)
        return r;
    cursor = output.data;
    line = zfs_next_line(&cursor);
    *ret = xstrdup(line ? line : "-");
    return 0;
}

char *zfs_next_line(char **cursor)
{
    char *line = *cursor ? strsep(cursor, "\n") : NULL;

    return line && *line ? line : NULL;
}

bool zfs_is_safe(const char *name)
{
    static const char characters[] = "._-0123456789"
                                     "abcdefghijklmnopqrstuvwxyz"
                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    return *name && !strchr("._-", *name) && name[strspn(name, characters)] == '\0';
}

const char *zfs_leaf(const char *dataset)
{
    const char *slash = strrchr(dataset, '/');

    return slash ? slash + 1 : dataset;
}
