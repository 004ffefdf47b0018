// SPDX-License-Identifier: Apache-2.0
#include "daemon/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"

enum { PID_TEXT_MAX = 24 };

static int lock_refuse(int fd, const struct lock_spec *spec, struct err *err)
{
    char pid[PID_TEXT_MAX] = "";
    ssize_t len = read_full(fd, pid, sizeof(pid) - 1);

    pid[len > 0 ? (size_t)len : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    return err_set(err, ERR_BUSY, "already running with %s %s (pid %s)", spec->option, spec->dir,
                   *pid ? pid : "unknown");
}

static int pid_write(int fd)
{
    char text[PID_TEXT_MAX];

    (void)snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0)
        return -errno;
    return write_all(fd, text, strlen(text));
}

/* Locks on behalf of the process, not of the open file: a forked child before its exec shares the
 * open file, and after a kill of its parent would keep the next daemon from starting. */
static int file_lock(int fd)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fcntl(fd, F_SETLK, &whole) < 0 ? -errno : 0;
}

/* The file is never removed: two daemons could then lock two files of the same name. */
int lock_take(const struct lock_spec *spec, int *ret_fd, struct err *err)
{
    cleanup_free char *path = xasprintf("%s/%s", spec->dir, spec->name);
    cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r;

    if (fd < 0)
        return err_sys(err, -errno, "open %s", path);
    r = file_lock(fd);
    if (r == -EAGAIN || r == -EACCES)
        return lock_refuse(fd, spec, err);
    if (r < 0)
        return err_sys(err, r, "lock %s", path);
    r = pid_write(fd);
    if (r < 0)
        return err_sys(err, r, "write %s", path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}
