// SPDX-License-Identifier: Apache-2.0
#include "kernel/cgroup/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "kernel/cgroup/cgroup_internal.h"

enum {
    REMOVE_TRIES = 400,
    REMOVE_PAUSE_MS = 5,
    EVENTS_RECHECK_MIN_NS = 50 * 1000,
    EVENTS_RECHECK_MAX_NS = 100 * 1000 * 1000,
    SIGNAL_FREEZE_TIMEOUT_MS = 2000,
    SPARE_TRIES = 3,
};

const char *cgroup_path(char *into, const char *name, const char *child, const char *file)
{
    (void)snprintf(into, CGROUP_PATH_BYTES, "%s%s%s%s%s", name, child ? "/" : "",
                   child ? child : "", file ? "/" : "", file ? file : "");
    return into;
}

/* The owner of cgroup.procs may clone into the group. */
static int group_chown(int root_fd, const char *name, const char *child, uid_t owner)
{
    char path[CGROUP_PATH_BYTES];

    cgroup_path(path, name, child, "cgroup.procs");
    return fchownat(root_fd, path, owner, owner, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int cgroup_create(struct cgroup_root *root, const char *name, uid_t owner, struct err *err)
{
    char path[CGROUP_PATH_BYTES];
    int r;

    if (mkdirat(root->unified_fd, name, 0755) < 0)
        return err_sys(err, -errno, "make control group '%s'", name);
    if (mkdirat(root->unified_fd, cgroup_path(path, name, "init", NULL), 0755) < 0)
        return err_sys(err, -errno, "make control group '%s'", path);
    r = group_chown(root->unified_fd, name, NULL, owner);
    return r < 0 ? err_sys(err, r, "change the owner of control group '%s'", name) : 0;
}

int cgroup_open_child(struct cgroup_root *root, const char *name, const char *child, uid_t owner,
                      int *ret_fd, struct err *err)
{
    char path[CGROUP_PATH_BYTES];
    int fd, r = 0;

    cgroup_path(path, name, child, NULL);
    if (mkdirat(root->unified_fd, path, 0755) < 0 && errno != EEXIST)
        r = -errno;
    /* A concurrent creator may not have changed the owner yet. */
    if (r == 0)
        r = group_chown(root->unified_fd, name, child, owner);
    if (r < 0)
        return err_sys(err, r, "make control group '%s'", path);
    fd = openat(root->unified_fd, path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, -errno, "open control group '%s'", path);
    *ret_fd = fd;
    return 0;
}

static bool is_out_of_fds(int r)
{
    return r == -EMFILE || r == -ENFILE;
}

/* Closes the spare descriptor and opens it again afterwards. Another thread may take its place in
 * between, so this is tried a few times. */
static int kill_with_spare(struct cgroup_root *root, const char *path)
{
    int r = -EMFILE;

    for (int i = 0; is_out_of_fds(r) && i < SPARE_TRIES; i++) {
        (void)fd_close(atomic_exchange(&root->spare_fd, -1));
        r = file_write_at(root->unified_fd, path, "1");
        if (atomic_load(&root->spare_fd) < 0) {
            int spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

            (void)fd_close(atomic_exchange(&root->spare_fd, spare_fd));
        }
    }
    return r;
}

int cgroup_kill(struct cgroup_root *root, const char *name, const char *child)
{
    char path[CGROUP_PATH_BYTES];
    int r;

    cgroup_path(path, name, child, "cgroup.kill");
    r = file_write_at(root->unified_fd, path, "1");
    return is_out_of_fds(r) ? kill_with_spare(root, path) : r;
}

int cgroup_set_frozen(struct cgroup_root *root, const char *name, const char *child, bool on)
{
    char path[CGROUP_PATH_BYTES];

    return file_write_at(root->unified_fd, cgroup_path(path, name, child, "cgroup.freeze"),
                         on ? "1" : "0");
}

static bool is_freeze_requested(struct cgroup_root *root, const char *name, const char *child)
{
    char path[CGROUP_PATH_BYTES];
    long long value;

    return file_read_number_at(root->unified_fd, cgroup_path(path, name, child, "cgroup.freeze"),
                               &value) == 0 &&
           value == 1;
}

static long next_pause(long pause_ns)
{
    return pause_ns < EVENTS_RECHECK_MAX_NS / 2 ? pause_ns * 2 : EVENTS_RECHECK_MAX_NS;
}

int cgroup_wait_event(struct cgroup_root *root, const char *name, const char *child,
                      const char *event, uint64_t deadline_ms)
{
    char path[CGROUP_PATH_BYTES], text[256];
    cleanup_close int fd = openat(root->unified_fd, cgroup_path(path, name, child, "cgroup.events"),
                                  O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    /* Polls as well, because the kernel delays a notification for 10 ms after the previous one. */
    for (long pause_ns = EVENTS_RECHECK_MIN_NS;; pause_ns = next_pause(pause_ns)) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLPRI };
        struct timespec pause = { .tv_nsec = pause_ns };
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

        if (n < 0)
            return -errno;
        text[n] = '\0';
        if (strstr(text, event))
            return 0;
        if (clock_ms() >= deadline_ms)
            return -ETIMEDOUT;
        (void)ppoll(&poll_fd, 1, &pause, NULL);
    }
}

int cgroup_read_processes(struct cgroup_root *root, const char *name, const char *child,
                          struct buf *ret)
{
    char path[CGROUP_PATH_BYTES];

    return file_read_at(root->unified_fd, cgroup_path(path, name, child, "cgroup.procs"), ret);
}

int cgroup_signal(struct cgroup_root *root, const char *name, const char *child, int signal)
{
    cleanup_with(buf_done) struct buf pids = BUF_INIT(1 << 20);
    char *save = NULL;
    bool was_frozen;
    int r;

    if (signal == SIGKILL)
        return cgroup_kill(root, name, child);
    was_frozen = is_freeze_requested(root, name, child);
    /* Frozen processes neither fork nor exit, so no pid in the list can be reused. */
    r = cgroup_set_frozen(root, name, child, true);
    if (r == 0)
        r = cgroup_wait_event(root, name, child, "frozen 1", clock_ms() + SIGNAL_FREEZE_TIMEOUT_MS);
    if (r == 0)
        r = cgroup_read_processes(root, name, child, &pids);
    for (char *line = r == 0 ? strtok_r(pids.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        pid_t pid = (pid_t)strtol(line, NULL, 10);

        if (pid > 0)
            (void)kill(pid, signal);
    }
    if (!was_frozen)
        (void)cgroup_set_frozen(root, name, child, false);
    return r;
}

int cgroup_wait_empty(struct cgroup_root *root, const char *name, const char *child)
{
    int r = cgroup_wait_event(root, name, child, "populated 0", CGROUP_NO_DEADLINE);

    /* ENODEV: removed meanwhile. */
    return r == -ENOENT || r == -ENODEV ? 0 : r;
}

int cgroup_is_empty(struct cgroup_root *root, const char *name)
{
    int r = cgroup_wait_event(root, name, NULL, "populated 0", 0);

    if (r == -ETIMEDOUT)
        return 0;
    return r == 0 || r == -ENOENT || r == -ENODEV ? 1 : r;
}

int cgroup_remove_dir(int root_fd, const char *path)
{
    for (int i = 0; i < REMOVE_TRIES; i++) {
        if (unlinkat(root_fd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY)
            return -errno;
        clock_sleep_ms(REMOVE_PAUSE_MS);
    }
    return -EBUSY;
}

static int dir_try_remove(int root_fd, const char *path)
{
    return unlinkat(root_fd, path, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Calls remove for the groups below a group. */
static int children_remove(int root_fd, const char *name,
                           int (*remove)(int root_fd, const char *path))
{
    int fd = openat(root_fd, name, O_DIRECTORY | O_RDONLY | O_CLOEXEC), r = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir)
        return errno == ENOENT ? 0 : -errno;
    while (r == 0 && (entry = readdir(dir)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            r = remove(dirfd(dir), entry->d_name);
    (void)closedir(dir);
    return r;
}

int cgroup_remove(struct cgroup_root *root, const char *name, const char *child)
{
    char path[CGROUP_PATH_BYTES];
    int r;

    if (child)
        return cgroup_remove_dir(root->unified_fd, cgroup_path(path, name, child, NULL));
    r = children_remove(root->unified_fd, cgroup_path(path, name, CGROUP_TIER, NULL),
                        cgroup_remove_dir);
    if (r == 0)
        r = children_remove(root->unified_fd, name, cgroup_remove_dir);
    return r < 0 ? r : cgroup_remove_dir(root->unified_fd, name);
}

int cgroup_try_remove(struct cgroup_root *root, const char *name, const char *child)
{
    char path[CGROUP_PATH_BYTES];
    int r = child ? 0 : children_remove(root->unified_fd, name, dir_try_remove);

    return r < 0 ? r : dir_try_remove(root->unified_fd, cgroup_path(path, name, child, NULL));
}
