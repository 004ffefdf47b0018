// SPDX-License-Identifier: Apache-2.0
/* holt-view: serves the codebase of one sandbox, as its rules allow (viewfs/control.h).
 *
 * Below is an overlay that nothing else has mounted; this program is all that changes it. It serves
 * FUSE without a library. The kernel caches names and attributes, and is told when the rules
 * change; it reads and writes open files by itself. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "viewfs/control.h"
#include "viewfs/viewfs_internal.h"

enum { DESCRIPTORS_KEPT = 1024, DESCRIPTORS_MIN = 64, BACKLOG = 4, DESCRIPTORS_MAX = 1 << 20 };

struct server {
    struct viewfs *fs;
    int dev_fd;
};

/* The process ends with the mount. */
static void server_main(void *argument)
{
    const struct server *server = argument;

    viewfs_serve(server->fs, server->dev_fd);
    control_say_unmounted(server->fs);
    _exit(0);
}

/* Returns how many directories may stay open: half of the limit, as open files need the rest. */
static size_t descriptors_for_directories(void)
{
    struct rlimit limit = { .rlim_cur = DESCRIPTORS_KEPT };

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur > DESCRIPTORS_KEPT + 2 * DESCRIPTORS_MIN
               ? (limit.rlim_cur - DESCRIPTORS_KEPT) / 2
               : DESCRIPTORS_MIN;
}

/* A descriptor of the same connection with a queue of its own. */
static int device_clone(int fuse_fd)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    uint32_t from = (uint32_t)fuse_fd;

    if (fd >= 0 && ioctl(fd, ABI_DEV_CLONE, &from) < 0)
        return -errno;
    return fd < 0 ? -errno : fd;
}

static int server_prepare(struct viewfs *fs, struct server servers[WORKERS])
{
    int proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = proc_fd < 0 ? -errno : 0;

    for (int i = 0; i < WORKERS && r == 0; i++) {
        servers[i] = (struct server){ .fs = fs, .dev_fd = i == 0 ? fs->fuse_fd : -1 };
        if (i > 0)
            r = servers[i].dev_fd = device_clone(fs->fuse_fd);
        r = r < 0 ? r : 0;
    }
    if (r == 0)
        r = tree_init(&fs->tree, VIEW_ROOT_FD, proc_fd, descriptors_for_directories());
    lock_init(&fs->handles_lock, LOCK_VIEWFS_HANDLES);
    lock_init(&fs->denials.lock, LOCK_VIEWFS_DENIALS);
    return r;
}

int main(void)
{
    static struct viewfs fs = { .fuse_fd = VIEW_FUSE_FD, .names = PTHREAD_RWLOCK_INITIALIZER };
    static struct server servers[WORKERS];
    struct thread thread = { 0 };
    int r;

    for (int fd = VIEW_CONTROL_FD; fd <= VIEW_FUSE_FD; fd++) {
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
            (void)fprintf(stderr, "holt-view is started by holtd\n");
            return 2;
        }
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_NAME, "holt-view", 0, 0, 0);
    (void)umask(0);
    json_object_seed(0);
    (void)strerror(ECONNREFUSED);
    r = server_prepare(&fs, servers);
    if (r == 0 && listen(VIEW_LISTEN_FD, BACKLOG) < 0)
        r = -errno;
    if (r == 0)
        r = viewfs_confine();
    if (r < 0) {
        log_error("holt-view cannot start: %s", strerror(-r));
        return 1;
    }
    if (control_receive(&fs, VIEW_CONTROL_FD) < 0)
        return 1;
    for (int i = 0; i < WORKERS; i++)
        if (thread_start(&thread, "holt-view", server_main, &servers[i]) < 0)
            return 1;
    control_run(&fs, VIEW_CONTROL_FD, VIEW_LISTEN_FD);
}
