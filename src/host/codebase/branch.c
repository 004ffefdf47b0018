// SPDX-License-Identifier: Apache-2.0
/* holtd's end of git/control.h. holtd reads versions, and holt-git the repository. */
#include "host/codebase/branch.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "git/control.h"
#include "host/codebase/apply.h"
#include "host/codebase/codebase.h"
#include "host/codebase/codebase_internal.h"
#include "host/core/host_internal.h"
#include "host/observe/event.h"
#include "host/registry/codebase.h"
#include "kernel/fds.h"
#include "runtime/program.h"
#include "store/codebase/differences.h"
#include "store/codebase/entry.h"

enum { ANSWER_SECONDS = 300, MILLISECONDS = 1000 };

/* One branch while it is written. */
struct work {
    struct host *host;
    struct codebase_info info;
    char directory[CODEBASE_SOURCE_MAX + 1];
    int fd, pidfd;
    pid_t pid;
    struct git_message message;
};

static void work_done(struct work *work)
{
    siginfo_t info;

    work->fd = fd_close(work->fd);
    if (work->pidfd < 0)
        return;
    (void)kill(work->pid, SIGKILL);
    (void)waitid(P_PIDFD, (id_t)work->pidfd, &info, WEXITED);
    work->pidfd = fd_close(work->pidfd);
}

/* --- messages --------------------------------------------------------------------------------- */

static void text_copy(char *ret, size_t size, const char *text)
{
    (void)snprintf(ret, size, "%s", text);
    for (char *c = ret; *c; c++)
        *c = iscntrl((unsigned char)*c) ? '?' : *c;
}

static int failure_read(const struct work *work, const char *const texts[], struct err *err)
{
    const enum err_kind kind = work->message.version > ERR_NONE && work->message.version < ERR_KINDS
                                   ? (enum err_kind)work->message.version
                                   : ERR_INTERNAL;
    char plain[sizeof(err->msg)], remedy[sizeof(err->remedy)];

    text_copy(plain, sizeof(plain), texts[0]);
    text_copy(remedy, sizeof(remedy), texts[1]);
    (void)err_set(err, kind, "%s", plain);
    return *remedy ? err_remedy(err, "%s", remedy) : -EIO;
}

/* Receives an answer of this kind; its first text stays valid until the next message. */
static int answer_receive(struct work *work, enum git_kind kind, const char **ret, struct err *err)
{
    const char *texts[2] = { "", "" };
    int fds[FDS_MAX];
    size_t count = 0;
    ssize_t len = fds_receive(work->fd, &work->message, sizeof(work->message), 0, fds, &count);

    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
    if (len == -EAGAIN)
        return err_set(err, ERR_DEADLINE, "the repository in '%.150s' took over %d seconds",
                       work->directory, ANSWER_SECONDS);
    if (len <= 0 || git_message_texts(&work->message, (size_t)len, texts, ARRAY_SIZE(texts)) < 0)
        return err_set(err, ERR_INTERNAL, "holt-git has ended");
    if (work->message.kind == GIT_FAILED)
        return failure_read(work, texts, err);
    if (work->message.kind != kind)
        return err_set(err, ERR_INTERNAL, "holt-git sent a malformed message");
    *ret = texts[0];
    return 0;
}

/* A process that gave up has said why. */
static int message_send(struct work *work, const char *const *texts, size_t count, int fd,
                        struct err *err)
{
    const size_t size = git_message_fill(&work->message, texts, count);
    const char *ignored;
    ssize_t n;

    if (size == 0)
        return err_set(err, ERR_INVALID, "'%.100s' is too long for git", count > 0 ? texts[0] : "");
    n = fds_send(work->fd, &work->message, size, 0, &fd, fd >= 0);
    return n < 0 ? answer_receive(work, GIT_FAILED, &ignored, err) : 0;
}

static int process_start(struct work *work, int dir_fd, struct err *err)
{
    const struct timeval timeout = { .tv_sec = ANSWER_SECONDS };
    cleanup_close int its = -EBADF;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, -errno, "make a connection to holt-git");
    work->fd = pair[0];
    its = pair[1];
    (void)setsockopt(work->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    (void)setsockopt(work->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    return program_start("holt-git", (const int[]){ its, dir_fd }, 2, &work->pid, &work->pidfd,
                         err);
}

/* --- versions --------------------------------------------------------------------------------- */

static int path_send(struct work *work, const struct tree_entry *entry, struct err *err)
{
    char target[PATH_MAX] = "";
    cleanup_close int fd = -EBADF;
    int r = 0;

    if (entry->exists && S_ISDIR(entry->st.st_mode))
        return 0; /* git has none */
    work->message = (struct git_message){ .kind = GIT_REMOVE };
    if (entry->exists && S_ISLNK(entry->st.st_mode)) {
        work->message.kind = GIT_LINK;
        r = tree_entry_read_link(entry, target, sizeof(target));
    } else if (entry->exists) {
        work->message.kind = GIT_FILE;
        work->message.mode = entry->st.st_mode;
        r = fd = tree_entry_open(entry);
    }
    if (r < 0)
        return err_sys(err, r, "read '%.150s'", entry->path);
    return message_send(work, (const char *const[]){ entry->path, target },
                        work->message.kind == GIT_LINK ? 2 : 1, fd, err);
}

/* Sends the paths that the tree has, or those that it has not. */
static int paths_send(struct work *work, const struct differences *list, int tree_fd, bool exist,
                      struct err *err)
{
    struct tree_entry entry;
    int r = 0;

    for (size_t i = 0; r == 0 && i < list->count; i++) {
        const char *path = list->paths[i];

        r = tree_entry_find(tree_fd, path, &entry);
        if (r < 0)
            return err_sys(err, r, "read '%.150s'", path);
        if (*path && entry.exists == exist)
            r = path_send(work, &entry, err);
    }
    return r;
}

/* What goes is told first: a file may become a directory. */
static int tree_send(struct work *work, int from_fd, int to_fd, struct err *err)
{
    cleanup_with(differences_done) struct differences list = DIFFERENCES_INIT;
    int r = differences_list(&list, from_fd, to_fd, NULL, err);

    if (r == 0)
        r = paths_send(work, &list, to_fd, false, err);
    return r == 0 ? paths_send(work, &list, to_fd, true, err) : r;
}

static int version_send(struct work *work, uint32_t from, const struct codebase_version *version,
                        struct err *err)
{
    cleanup_close int from_fd = -EBADF, to_fd = -EBADF;
    int r = codebase_version_open(work->host, &work->info, from, &from_fd, err);

    if (r == 0)
        r = codebase_version_open(work->host, &work->info, version->version, &to_fd, err);
    if (r == 0)
        r = tree_send(work, from_fd, to_fd, err);
    if (r < 0)
        return r;
    work->message = (struct git_message){ .kind = GIT_COMMIT,
                                          .version = version->version,
                                          .time = (int64_t)(version->created_ms / MILLISECONDS) };
    return message_send(work, (const char *const[]){ version->message, version->sandbox }, 2, -1,
                        err);
}

/* Sends each version behind the one that the branch has. */
static int versions_send(struct work *work, uint32_t from, uint32_t to, struct err *err)
{
    cleanup_free struct codebase_version *log = NULL;
    size_t count = 0;
    int r = registry_list_versions(work->host->registry, work->info.id, &log, &count, err);

    for (size_t i = count; r == 0 && i-- > 0;) {
        const struct codebase_version *version = &log[i];

        if (version->version > to || (from != CODEBASE_NO_VERSION && version->version <= from))
            continue;
        r = version_send(work, from, version, err);
        from = version->version;
    }
    return r;
}

/* --- the branch ------------------------------------------------------------------------------- */

static int base_read(struct work *work, char ret[GIT_HEAD_SIZE], struct err *err)
{
    cleanup_close int fd = -EBADF;
    int r = codebase_version_open(work->host, &work->info, 0, &fd, err);

    if (r < 0)
        return r;
    r = git_head_read(fd, ret);
    if (r == -ENOENT)
        return err_set(err, ERR_INVALID, "codebase '%s' was not made of a git repository",
                       work->info.name);
    return r < 0 ? err_set(err, ERR_INVALID,
                           "cannot find the commit that version 0 of codebase '%s' was at",
                           work->info.name)
                 : 0;
}

static int branch_begin(struct work *work, const char *branch, uint32_t *ret_from, struct err *err)
{
    const char *ignored;
    char base[GIT_HEAD_SIZE] = "";
    int r = base_read(work, base, err);

    work->message = (struct git_message){ .kind = GIT_BEGIN };
    if (r == 0)
        r = message_send(work,
                         (const char *const[]){ branch, work->info.id, work->info.name, base },
                         GIT_TEXTS, -1, err);
    if (r == 0)
        r = answer_receive(work, GIT_BEGUN, &ignored, err);
    if (r < 0)
        return r;
    *ret_from = work->message.version;
    if (*ret_from == GIT_NO_VERSION) /* the commit of the base is version 0 */
        *ret_from = *base ? 0 : CODEBASE_NO_VERSION;
    return 0;
}

static int branch_write(struct work *work, const char *branch, struct codebase_branching *ret,
                        struct err *err)
{
    const char *commit = "";
    uint32_t from = 0;
    int r = branch_begin(work, branch, &from, err);

    if (r == 0 && from != CODEBASE_NO_VERSION && from > ret->version)
        r = err_set(err, ERR_EXISTS, "branch '%.100s' has version %u already", branch, from);
    if (r == 0)
        r = versions_send(work, from, ret->version, err);
    fault_point("branch.sent");
    work->message = (struct git_message){ .kind = GIT_FINISH };
    if (r == 0)
        r = message_send(work, NULL, 0, -1, err);
    if (r == 0)
        r = answer_receive(work, GIT_DONE, &commit, err);
    fault_point("branch.done");
    if (r < 0)
        return r;
    ret->commits = work->message.version;
    text_copy(ret->commit, sizeof(ret->commit), commit);
    return 0;
}

static int directory_write(struct work *work, const char *branch, struct codebase_branching *ret,
                           struct err *err)
{
    cleanup_close int dir_fd = open(work->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = dir_fd < 0 ? err_sys(err, -errno, "open '%.150s'", work->directory)
                       : process_start(work, dir_fd, err);

    return r < 0 ? r : branch_write(work, branch, ret, err);
}

int codebase_branch(struct host *host, const struct caller *caller,
                    const struct codebase_branch_spec *spec, struct codebase_branching *ret,
                    struct err *err)
{
    cleanup_with(work_done) struct work work = { .host = host, .fd = -EBADF, .pidfd = -EBADF };
    struct codebase_work own = { .codebase = work.info.id };
    int r;

    *ret = (struct codebase_branching){ .version = 0 };
    if (!caller_is_host_admin(caller))
        return err_set(err, ERR_DENIED, "only an admin may write to a repository of the host");
    r = codebase_find(host, caller, spec->codebase, &work.info, err);
    if (r == 0)
        r = codebase_directory_find(&work.info, spec->directory, work.directory, err);
    if (r == 0)
        r = codebase_work_begin(host, &own, err);
    if (r < 0)
        return r;
    r = codebase_find(host, caller, work.info.id, &work.info, err); /* it may be gone by now */
    ret->version = spec->version ? *spec->version : work.info.head;
    if (r == 0)
        r = codebase_check_version(&work.info, ret->version, err);
    if (r == 0)
        r = directory_write(&work, spec->branch, ret, err);
    codebase_work_end(host, &own);
    if (r == 0)
        owner_event(host, work.info.owner, EVENT_CODEBASE_BRANCHED,
                    json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "codebase", work.info.id, "name",
                              work.info.name, "directory", work.directory, "version",
                              (json_int_t)ret->version, "branch", spec->branch, "commit",
                              ret->commit));
    return r;
}
