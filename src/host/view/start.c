// SPDX-License-Identifier: Apache-2.0
/* The processes of views, their sockets and their mounts. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "host/view/view_internal.h"
#include "kernel/mount.h"
#include "runtime/program.h"
#include "viewfs/control.h"

#define SUFFIX ".view"

enum { NAME_BYTES = VIEW_ID_MAX + 8, FD_TEXT_BYTES = 16, SEND_SECONDS = 2 };

/* --- sockets ---------------------------------------------------------------------------------- */

/* Uses /proc/self/fd, as sun_path is too short for the path of some state directories. */
static void socket_address(const struct views *views, const char *id, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    (void)snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s" SUFFIX,
                   views->sockets_fd, id);
}

void view_socket_remove(const struct views *views, const char *id)
{
    char name[NAME_BYTES];

    (void)snprintf(name, sizeof(name), "%s" SUFFIX, id);
    (void)unlinkat(views->sockets_fd, name, 0);
}

bool view_socket_id(const char *name, char ret[VIEW_ID_MAX + 1])
{
    const size_t len = strlen(name), suffix = strlen(SUFFIX);

    if (len <= suffix || len - suffix > VIEW_ID_MAX || strcmp(name + len - suffix, SUFFIX) != 0)
        return false;
    (void)snprintf(ret, VIEW_ID_MAX + 1, "%.*s", (int)(len - suffix), name);
    return true;
}

/* holt-view calls listen, so that the kernel names it to those who connect. */
static int socket_bind(const struct views *views, const char *id)
{
    cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;

    if (fd < 0)
        return -errno;
    view_socket_remove(views, id);
    socket_address(views, id, &address);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* A list of rules is one packet, which must fit the buffer. */
static void socket_prepare(int fd)
{
    const struct timeval timeout = { .tv_sec = SEND_SECONDS };
    const int bytes = 2 * VIEW_MESSAGE_MAX;

    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

int view_process_connect(struct views *views, struct view *view, struct err *err)
{
    cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;
    struct ucred peer = { .pid = 0 };
    socklen_t len = sizeof(peer);

    if (fd < 0)
        return err_sys(err, -errno, "create a socket");
    socket_address(views, view->id, &address);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return err_set(err, ERR_NOT_FOUND, "the file server of '%s' has ended", view->id);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return err_sys(err, -errno, "identify the file server of '%s'", view->id);
    view->pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    if (view->pidfd < 0)
        return err_set(err, ERR_NOT_FOUND, "the file server of '%s' has ended", view->id);
    socket_prepare(fd);
    view->fd = TAKE_FD(fd);
    return 0;
}

/* --- mounts ----------------------------------------------------------------------------------- */

/* The kernel checks modes and owners; the rules come on top. */
static int fuse_mount(int fuse_fd, bool allows_setuid)
{
    char fd_text[FD_TEXT_BYTES];
    const struct mount_option options[] = {
        { "source", "holt" },
        { "fd", fd_text },
        { "rootmode", "40000" },
        { "user_id", "0" },
        { "group_id", "0" },
        { "allow_other", NULL },
        { "default_permissions", NULL },
    };

    (void)snprintf(fd_text, sizeof(fd_text), "%d", fuse_fd);
    return mount_new("fuse", options, ARRAY_SIZE(options),
                     MOUNT_ATTR_NODEV | (allows_setuid ? 0 : MOUNT_ATTR_NOSUID));
}

/* --- start ------------------------------------------------------------------------------------ */

int view_process_start(struct views *views, const struct view_start *start, struct view *view,
                       int *ret_mount_fd, struct err *err)
{
    cleanup_close int fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    cleanup_close int mount_fd = -EBADF, listen_fd = -EBADF, its = -EBADF, mine = -EBADF;
    int pair[2], r;
    pid_t pid;

    if (fuse_fd < 0)
        return err_sys(err, -errno, "open /dev/fuse, which permissions need");
    mount_fd = fuse_mount(fuse_fd, start->allows_setuid);
    if (mount_fd < 0)
        return err_sys(err, mount_fd, "mount the file server of '%s'", view->id);
    listen_fd = socket_bind(views, view->id);
    if (listen_fd < 0)
        return err_sys(err, listen_fd, "create the socket of the file server of '%s'", view->id);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, -errno, "make a connection to the file server of '%s'", view->id);
    mine = pair[0];
    its = pair[1];
    socket_prepare(mine);
    r = program_start("holt-view", (const int[]){ its, listen_fd, start->mount_fd, fuse_fd }, 4,
                      &pid, &view->pidfd, err);
    view->is_child = r == 0;
    if (r < 0) {
        view_socket_remove(views, view->id);
        return r;
    }
    view->fd = TAKE_FD(mine);
    *ret_mount_fd = TAKE_FD(mount_fd);
    return 0;
}
