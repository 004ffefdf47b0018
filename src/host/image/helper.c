// SPDX-License-Identifier: Apache-2.0
#include "host/image/helper.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "image/control.h"
#include "kernel/fds.h"
#include "runtime/program.h"
#include "store/template/template.h"

int image_helper_start(struct image_helper *helper, struct err *err)
{
    cleanup_close int its = -EBADF;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, -errno, "make a connection to holt-image");
    helper->fd = pair[0];
    its = pair[1];
    return program_start("holt-image", &its, 1, &helper->pid, &helper->pidfd, err);
}

int image_helper_send(struct image_helper *helper, json_t *message, int fd, struct err *err)
{
    cleanup_json json_t *owned = message;
    cleanup_free char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL;
    ssize_t n = text ? fds_send(helper->fd, text, strlen(text), 0, &fd, fd >= 0) : -EINVAL;

    return n < 0 ? err_sys(err, (int)n, "send to holt-image") : 0;
}

int image_helper_next(struct image_helper *helper, json_t **ret, struct err *err)
{
    cleanup_free char *text = xcalloc(1, IMAGE_MESSAGE_MAX);
    int fds[FDS_MAX];
    size_t count = 0;
    ssize_t n = fds_receive(helper->fd, text, IMAGE_MESSAGE_MAX, 0, fds, &count);

    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
    if (n <= 0)
        return err_set(err, ERR_INTERNAL, "holt-image has ended");
    return json_parse_object(text, (size_t)n, ret, err);
}

int image_helper_failed(const json_t *message, struct err *err)
{
    const char *kind = "", *text = "";
    char plain[sizeof(err->msg)];

    if (json_get_text(message, "kind", &kind, err) < 0 ||
        json_get_text(message, "message", &text, err) < 0)
        return err_wrap(err, "holt-image");
    (void)snprintf(plain, sizeof(plain), "%s", text);
    for (char *c = plain; *c; c++)
        *c = iscntrl((unsigned char)*c) ? '?' : *c;
    for (int i = ERR_NONE + 1; i < ERR_KINDS; i++) {
        if (strcmp(err_kind_name((enum err_kind)i), kind) == 0)
            return err_set(err, (enum err_kind)i, "%s", plain);
    }
    return err_set(err, ERR_INTERNAL, "%s", plain);
}

int image_helper_progress(const json_t *message, struct template_progress *ret, struct err *err)
{
    *ret = (struct template_progress){ .bytes = 0 };
    if (json_get_u64(message, "bytes", &ret->source_bytes, err) < 0 ||
        json_get_u64(message, "total", &ret->source_total, err) < 0)
        return err_wrap(err, "holt-image");
    return 0;
}

void image_helper_done(struct image_helper *helper)
{
    siginfo_t info;

    helper->fd = fd_close(helper->fd);
    if (helper->pidfd < 0)
        return;
    (void)kill(helper->pid, SIGKILL);
    (void)waitid(P_PIDFD, (id_t)helper->pidfd, &info, WEXITED);
    helper->pidfd = fd_close(helper->pidfd);
}
