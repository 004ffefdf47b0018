/* Messages between holtd and holt-git, the program that writes versions of a codebase as commits of
 * a git repository.
 *
 * They are structs git_message, one in each packet of a SOCK_SEQPACKET pair, cut off behind the NUL
 * of the last text that the kind has. holt-git has its end as descriptor 3 and the directory of the
 * repository as descriptor 4, whose owner it becomes; it also exits when the other end is closed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GIT_CONTROL_FD = 3, GIT_DIR_FD = 4 };

enum git_kind {
    /* From holtd. Texts: branch, id of the codebase, its name, the commit that version 0 was
     * copied from ("": none yet). */
    GIT_BEGIN,
    GIT_FILE,   /* a new content of a path. Text: path; mode; with a descriptor to read */
    GIT_LINK,   /* the same for a symbolic link. Texts: path, target */
    GIT_REMOVE, /* a path that is gone, or is not to be in the commit. Text: path */
    GIT_COMMIT, /* the changes so far are this version. Texts: message, sandbox; version, time */
    GIT_FINISH, /* the branch gets the commits */

    /* From holt-git. */
    GIT_BEGUN,  /* answers GIT_BEGIN: the version that the branch has, or GIT_NO_VERSION */
    GIT_DONE,   /* answers GIT_FINISH. Text: the commit that the branch has; version: how many are
                   new */
    GIT_FAILED, /* the last message otherwise. Texts: what failed, a remedy; version: an enum
                   err_kind */
};

enum {
    GIT_NO_VERSION = INT32_MAX,
    GIT_TEXT_MAX = 16 << 10,
    GIT_TEXTS = 4, /* at most in a message */
    GIT_ID_LEN = 40,
};

struct git_message {
    uint32_t kind, version, mode, reserved;
    int64_t time; /* seconds */
    char text[GIT_TEXT_MAX];
};

/* Appends texts, with their NULs. Returns the bytes of the message, or 0 if they do not fit. */
size_t git_message_fill(struct git_message *message, const char *const *texts, size_t count);

/* Finds so many texts in a message that was received. Returns 0, or -EBADMSG. */
int git_message_texts(const struct git_message *message, size_t len, const char **ret,
                      size_t count);
