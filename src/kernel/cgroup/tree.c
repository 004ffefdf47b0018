// SPDX-License-Identifier: Apache-2.0
/* Acts on all processes of a sandbox: every child of its group except "init". */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/cgroup_internal.h"

#define INIT "init"

enum {
    FREEZE_TIMEOUT_MS = 5 * 1000,
    KILL_TIMEOUT_MS = 60 * 1000, /* a process with much memory takes a while to exit */
    PIDS_BYTES_MAX = 1 << 20,
};

/* A group to act on, and the deadline. */
struct target {
    struct cgroup_root *root;
    const char *name, *child;
    uint64_t deadline_ms;
    void (*each)(void *context, const char *child);
    void *context;
};

static bool is_gone(int r)
{
    return r == -ENOENT || r == -ENODEV;
}

/* Calls act for each child, even after a failure. Returns 0 or the first -errno. Groups that are
 * removed meanwhile count as done. */
static int each_child(struct target target, int (*act)(const struct target *target))
{
    int fd = openat(target.root->unified_fd, target.name, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    int result = 0;

    if (!dir)
        return -errno;
    while ((entry = readdir(dir))) {
        int r;

        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            strcmp(entry->d_name, INIT) == 0 || strcmp(entry->d_name, CGROUP_TIER) == 0)
            continue;
        target.child = entry->d_name;
        r = act(&target);
        if (r < 0 && !is_gone(r) && result == 0)
            result = r;
    }
    (void)closedir(dir);
    return result;
}

static int child_report(const struct target *target)
{
    target->each(target->context, target->child);
    return 0;
}

int cgroup_list_children(struct cgroup_root *root, const char *name,
                         void (*each)(void *context, const char *child), void *context)
{
    const struct target target = { .root = root, .name = name, .each = each, .context = context };

    return each_child(target, child_report);
}

static int freeze_child(const struct target *target)
{
    return cgroup_set_frozen(target->root, target->name, target->child, true);
}

static int thaw_child(const struct target *target)
{
    return cgroup_set_frozen(target->root, target->name, target->child, false);
}

static int await_frozen(const struct target *target)
{
    return cgroup_wait_event(target->root, target->name, target->child, "frozen 1",
                             target->deadline_ms);
}

int cgroup_freeze(struct cgroup_root *root, const char *name, bool on)
{
    const struct target target = { .root = root,
                                   .name = name,
                                   .deadline_ms = clock_ms() + FREEZE_TIMEOUT_MS };
    int r;

    if (!on)
        return each_child(target, thaw_child);
    /* All are frozen before any is waited for, so that it takes as long as the slowest one. */
    r = each_child(target, freeze_child);
    if (r == 0)
        r = each_child(target, await_frozen);
    if (r < 0)
        (void)each_child(target, thaw_child);
    return r;
}

static int kill_child(const struct target *target)
{
    return cgroup_kill(target->root, target->name, target->child);
}

static int await_end(const struct target *target)
{
    int r = cgroup_wait_event(target->root, target->name, target->child, "populated 0",
                              target->deadline_ms);

    return r == 0 ? cgroup_remove(target->root, target->name, target->child) : r;
}

int cgroup_kill_processes(struct cgroup_root *root, const char *name)
{
    const struct target target = { .root = root,
                                   .name = name,
                                   .deadline_ms = clock_ms() + KILL_TIMEOUT_MS };
    int r = each_child(target, kill_child);

    return r == 0 ? each_child(target, await_end) : r;
}

static int init_pids_read(struct cgroup_root *root, const char *name, struct buf *ret_pids)
{
    char path[CGROUP_PATH_BYTES];
    int r;

    buf_clear(ret_pids);
    r = file_read_at(root->unified_fd, cgroup_path(path, name, INIT, "cgroup.procs"), ret_pids);
    return is_gone(r) ? -ESRCH : r;
}

static bool pids_contain(const struct buf *pids, pid_t pid)
{
    for (const char *line = pids->data; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strtol(line, NULL, 10) == pid)
            return true;
    }
    return false;
}

static bool has_ended(int pidfd)
{
    struct pollfd wait = { .fd = pidfd, .events = POLLIN };

    return poll(&wait, 1, 0) != 0;
}

/* A pid may have been reused since it was listed. But a process that had it when the pidfd was
 * opened, is listed after that, and has not exited after that, is the right one. */
static int listed_open(struct cgroup_root *root, const char *name, pid_t pid, int *ret_pidfd)
{
    cleanup_with(buf_done) struct buf pids = BUF_INIT(PIDS_BYTES_MAX);
    cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    int r;

    if (pidfd < 0)
        return -errno;
    r = init_pids_read(root, name, &pids);
    if (r < 0)
        return r;
    if (!pids_contain(&pids, pid) || has_ended(pidfd))
        return -ESRCH;
    *ret_pidfd = TAKE_FD(pidfd);
    return 0;
}

int cgroup_each_init(struct cgroup_root *root, const char *name, cgroup_member_fn each,
                     void *context)
{
    cleanup_with(buf_done) struct buf pids = BUF_INIT(PIDS_BYTES_MAX);
    char *save = NULL;
    int r = init_pids_read(root, name, &pids);

    if (r < 0)
        return r;
    r = -ESRCH;
    for (char *line = strtok_r(pids.data, "\n", &save); line && r < 0;
         line = strtok_r(NULL, "\n", &save)) {
        pid_t pid = (pid_t)strtol(line, NULL, 10);
        cleanup_close int pidfd = -EBADF;

        if (pid > 0 && listed_open(root, name, pid, &pidfd) == 0 && each(context, pid, &pidfd))
            r = 0;
    }
    return r;
}

struct found_init {
    pid_t pid;
    int pidfd;
};

static bool init_found(void *context, pid_t pid, int *pidfd)
{
    *(struct found_init *)context = (struct found_init){ pid, TAKE_FD(*pidfd) };
    return true;
}

int cgroup_find_init(struct cgroup_root *root, const char *name, pid_t *ret_pid, int *ret_pidfd)
{
    struct found_init found;
    int r = cgroup_each_init(root, name, init_found, &found);

    if (r < 0)
        return r;
    *ret_pid = found.pid;
    *ret_pidfd = found.pidfd;
    return 0;
}
