// SPDX-License-Identifier: Apache-2.0
/* holt-git: writes versions of a codebase as commits on a branch of one git repository
 * (git/control.h). It reads a repository that agents may have written to, so it is the owner of the
 * repository and nobody more, sees nothing else, and can execute nothing. */
#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "git/confine.h"
#include "git/control.h"
#include "git/repository.h"
#include "kernel/fds.h"

static struct git_message incoming, outgoing;

static void reply(uint32_t kind, uint32_t number, const char *text, const char *remedy)
{
    size_t len;

    outgoing = (struct git_message){ .kind = kind, .version = number };
    len = git_message_fill(&outgoing, (const char *const[]){ text, remedy }, 2);
    if (fds_send(GIT_CONTROL_FD, &outgoing, len, 0, NULL, 0) < 0)
        _exit(1); /* holtd has gone */
}

/* Receives a message with at most one descriptor. */
static size_t message_receive(int *ret_fd)
{
    int fds[FDS_MAX];
    size_t count = 0;
    ssize_t len = fds_receive(GIT_CONTROL_FD, &incoming, sizeof(incoming), 0, fds, &count);

    *ret_fd = count > 0 ? fds[0] : -EBADF;
    for (size_t i = 1; i < count; i++)
        (void)close(fds[i]);
    if (len <= 0)
        _exit(1);
    return (size_t)len;
}

static size_t texts_of(uint32_t kind)
{
    static const size_t counts[] = {
        [GIT_BEGIN] = 4,  [GIT_FILE] = 1,   [GIT_LINK] = 2,
        [GIT_REMOVE] = 1, [GIT_COMMIT] = 2, [GIT_FINISH] = 0,
    };

    return kind < ARRAY_SIZE(counts) ? counts[kind] : 0;
}

static int message_handle(struct branch *branch, const char *const texts[GIT_TEXTS], int fd,
                          struct err *err)
{
    const struct branch_commit commit = { incoming.version, incoming.time, texts[0], texts[1] };
    int r;

    switch ((enum git_kind)incoming.kind) {
    case GIT_BEGIN:
        r = branch_open(branch, texts, err);
        if (r == 0)
            reply(GIT_BEGUN, branch->version, "", "");
        return r;
    case GIT_FILE:
        return branch_put_file(branch, texts[0], incoming.mode, fd, err);
    case GIT_LINK:
        return branch_put_link(branch, texts[0], texts[1], err);
    case GIT_REMOVE:
        return branch_remove(branch, texts[0], err);
    case GIT_COMMIT:
        return branch_commit(branch, &commit, err);
    case GIT_FINISH:
    case GIT_BEGUN:
    case GIT_DONE:
    case GIT_FAILED:
        break;
    }
    return err_set(err, ERR_INTERNAL, "malformed message");
}

static int messages_run(struct branch *branch, struct err *err)
{
    char id[GIT_ID_LEN + 1] = "";
    int r = 0;

    while (r == 0) {
        const char *texts[GIT_TEXTS] = { "", "", "", "" };
        cleanup_close int fd = -EBADF;
        const size_t len = message_receive(&fd);

        if (git_message_texts(&incoming, len, texts, texts_of(incoming.kind)) < 0)
            return err_set(err, ERR_INTERNAL, "malformed message");
        if (incoming.kind == GIT_FINISH) {
            r = branch_finish(branch, id, err);
            if (r == 0)
                reply(GIT_DONE, branch->made, id, "");
            return r;
        }
        r = message_handle(branch, texts, fd, err);
    }
    return r;
}

/* Only the settings of the repository count, and its owner is whom this process becomes. */
static int library_start(struct err *err)
{
    if (git_libgit2_init() < 0)
        return err_sys(err, -ENOMEM, "start libgit2");
    for (int level = GIT_CONFIG_LEVEL_PROGRAMDATA; level <= GIT_CONFIG_LEVEL_GLOBAL; level++)
        (void)git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "");
    (void)git_libgit2_opts(GIT_OPT_SET_TEMPLATE_PATH, "");
    (void)git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    (void)git_libgit2_opts(GIT_OPT_SET_EXTENSIONS, NULL, 0);
    return 0;
}

int main(void)
{
    static struct branch branch;
    struct err err = { .kind = ERR_NONE };
    int r;

    if (fcntl(GIT_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(GIT_DIR_FD, F_SETFD, FD_CLOEXEC) < 0) {
        (void)fprintf(stderr, "holt-git is started by holtd\n");
        return 2;
    }
    (void)umask(0022);
    (void)strerror(EACCES); /* loads what the root will not have */
    r = library_start(&err);
    if (r == 0) {
        r = git_confine(GIT_DIR_FD);
        if (r < 0)
            r = err_sys(&err, r, "give up privileges");
    }
    if (r == 0)
        r = messages_run(&branch, &err);
    branch_close(&branch);
    if (r < 0)
        reply(GIT_FAILED, (uint32_t)err.kind, err.msg, err.remedy);
    return r < 0;
}
