// SPDX-License-Identifier: Apache-2.0
/* Limits of one child of a sandbox's group, below those of the sandbox. With cgroup v2 they are
 * set on the child itself. With v1 there is a group for it below the zygote's, and the members of
 * the child are moved there: only processes with such limits pay for the move. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/cgroup_internal.h"

enum { PASSES_MAX = 16, PIDS_BYTES_MAX = 1 << 20, LINKS_EMPTY = 2 };

static bool is_limited(const struct cgroup_limits *limits, int which)
{
    return which == CGROUP_MEMORY ? limits->memory_bytes > 0
                                  : which == CGROUP_CPU && limits->cpu_millis > 0;
}

static int child_prepare(struct cgroup_root *root, const struct cgroup_child *child,
                         const struct cgroup_limits *limits, const char *group)
{
    static const char *const words[] = { [CGROUP_MEMORY] = "+memory", [CGROUP_CPU] = "+cpu" };
    char path[CGROUP_PATH_BYTES];

    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        int r = 0;

        if (!is_limited(limits, i))
            continue;
        if (root->has_v2[i])
            r = file_write_at(root->unified_fd,
                              cgroup_path(path, child->name, NULL, "cgroup.subtree_control"),
                              words[i]);
        else if (root->v1_fd[i] < 0)
            r = -EOPNOTSUPP;
        else if (mkdirat(root->v1_fd[i], group, 0755) < 0 && errno != EEXIST)
            r = -errno;
        if (r < 0)
            return r;
    }
    return 0;
}

/* A process that has exited meanwhile needs no limit. */
static int process_move(struct cgroup_root *root, const struct cgroup_limits *limits,
                        const char *group, const char *pid)
{
    char path[CGROUP_PATH_BYTES];
    int r = 0;

    for (int i = 0; r == 0 && i < CGROUP_CONTROLLERS; i++)
        if (is_limited(limits, i) && root->v1_fd[i] >= 0 && !root->has_v2[i])
            r = file_write_at(root->v1_fd[i], cgroup_path(path, group, NULL, "cgroup.procs"), pid);
    return r == -ESRCH ? 0 : r;
}

/* A process that was forked before its parent was moved appears in the next pass; a pass that
 * finds nothing new is the last. */
static int processes_move(struct cgroup_root *root, const struct cgroup_child *child,
                          const struct cgroup_limits *limits, const char *group)
{
    cleanup_with(buf_done) struct buf before = BUF_INIT(PIDS_BYTES_MAX);
    cleanup_with(buf_done) struct buf pids = BUF_INIT(PIDS_BYTES_MAX);
    char path[CGROUP_PATH_BYTES];

    for (int i = 0; i < PASSES_MAX; i++) {
        char *save = NULL;
        int r;

        buf_clear(&pids);
        r = file_read_at(root->unified_fd,
                         cgroup_path(path, child->name, child->child, "cgroup.procs"), &pids);
        if (r < 0)
            return r == -ENOENT || r == -ENODEV ? 0 : r;
        if (pids.len == before.len && (pids.len == 0 || !memcmp(pids.data, before.data, pids.len)))
            return 0;
        buf_clear(&before);
        (void)buf_add(&before, pids.data, pids.len);
        for (char *pid = strtok_r(pids.data, "\n", &save); r == 0 && pid;
             pid = strtok_r(NULL, "\n", &save))
            r = process_move(root, limits, group, pid);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool needs_move(const struct cgroup_root *root, const struct cgroup_limits *limits)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        if (is_limited(limits, i) && !root->has_v2[i])
            return true;
    return false;
}

int cgroup_limit_child(struct cgroup_root *root, const struct cgroup_child *child,
                       const struct cgroup_limits *limits, struct cgroup_meter *ret_meter,
                       struct err *err)
{
    const struct cgroup_limits wanted = { .memory_bytes = limits->memory_bytes,
                                          .cpu_millis = limits->cpu_millis };
    char group[CGROUP_PATH_BYTES];
    int r;

    cgroup_path(group, child->limits_group, child->child, NULL);
    r = child_prepare(root, child, &wanted, group);
    if (r == -EOPNOTSUPP)
        return err_set(err, ERR_UNSUPPORTED, "this host cannot limit memory or CPUs");
    if (r < 0)
        return err_sys(err, r, "make control group '%s'", group);
    r = cgroup_set_limits(root, group, &wanted, err);
    if (r < 0)
        return r;
    if (wanted.memory_bytes > 0)
        cgroup_meter_open(root, group, ret_meter);
    r = needs_move(root, &wanted) ? processes_move(root, child, &wanted, group) : 0;
    return r < 0 ? err_sys(err, r, "move processes to control group '%s'", group) : 0;
}

void cgroup_unlimit_child(struct cgroup_root *root, const struct cgroup_child *child)
{
    char group[CGROUP_PATH_BYTES];

    cgroup_path(group, child->limits_group, child->child, NULL);
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        if (root->v1_fd[i] >= 0)
            (void)unlinkat(root->v1_fd[i], group, AT_REMOVEDIR);
}

static void children_remove(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        (void)fd_close(fd);
        return;
    }
    while ((entry = readdir(dir)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            (void)cgroup_remove_dir(dir_fd, entry->d_name);
    (void)closedir(dir);
}

/* The link count shows whether there are any, at less cost than opening a directory. */
void cgroup_zygote_clear(struct cgroup_root *root, const char *zygote)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        struct stat info;
        cleanup_close int fd = -EBADF;

        if (root->v1_fd[i] < 0 || fstatat(root->v1_fd[i], zygote, &info, 0) < 0 ||
            info.st_nlink <= LINKS_EMPTY)
            continue;
        fd = openat(root->v1_fd[i], zygote, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            children_remove(fd);
    }
}
