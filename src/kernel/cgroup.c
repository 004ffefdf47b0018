// SPDX-License-Identifier: Apache-2.0
#include "kernel/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
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
#include "base/err.h"
#include "base/io.h"
#include "kernel/cgroup_internal.h"

enum {
    CPU_PERIOD_US = 100000,
    PATH_BYTES = 160,
    REMOVE_TRIES = 400,
    REMOVE_PAUSE_NS = 5 * 1000 * 1000,
    EVENTS_RECHECK_MS = 100,
};

/* "NAME/FILE" or "NAME/CHILD/FILE", relative to a label's group. Names are our own, never a client's. */
static const char *path_of(char *into, const char *name, const char *child, const char *file)
{
    (void)snprintf(into, PATH_BYTES, "%s%s%s%s%s", name, child ? "/" : "", child ? child : "",
                   file ? "/" : "", file ? file : "");
    return into;
}

/* The group's cgroup.procs decides who may clone into it. */
static int give_to_owner(int root_fd, const char *name, const char *child, uid_t owner)
{
    char path[PATH_BYTES];

    path_of(path, name, child, "cgroup.procs");
    return fchownat(root_fd, path, owner, owner, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int cgroup_create(struct cgroup_root *root, const char *name, uid_t owner, struct err *err)
{
    char path[PATH_BYTES];
    int r;

    if (mkdirat(root->unified_fd, name, 0755) < 0)
        return err_sys(err, -errno, "make control group '%s'", name);
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        if (root->v1_fd[i] >= 0 && mkdirat(root->v1_fd[i], name, 0755) < 0)
            return err_sys(err, -errno, "make control group '%s'", name);
    if (mkdirat(root->unified_fd, path_of(path, name, "init", NULL), 0755) < 0)
        return err_sys(err, -errno, "make control group '%s'", path);
    r = give_to_owner(root->unified_fd, name, NULL, owner);
    return r < 0 ? err_sys(err, r, "hand over control group '%s'", name) : 0;
}

int cgroup_open_child(struct cgroup_root *root, const char *name, const char *child, uid_t owner,
                      int *ret_fd, struct err *err)
{
    char path[PATH_BYTES];
    int fd, r = 0;

    path_of(path, name, child, NULL);
    if (mkdirat(root->unified_fd, path, 0755) == 0)
        r = give_to_owner(root->unified_fd, name, child, owner);
    else if (errno != EEXIST)
        r = -errno;
    if (r < 0)
        return err_sys(err, r, "make control group '%s'", path);
    fd = openat(root->unified_fd, path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, -errno, "open control group '%s'", path);
    *ret_fd = fd;
    return 0;
}

int cgroup_attach(struct cgroup_root *root, const char *name, pid_t pid, struct err *err)
{
    char path[PATH_BYTES], text[24];
    int r;

    (void)snprintf(text, sizeof(text), "%d", (int)pid);
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (root->v1_fd[i] < 0)
            continue;
        r = file_write_at(root->v1_fd[i], path_of(path, name, NULL, "cgroup.procs"), text);
        if (r < 0)
            return err_sys(err, r, "put process %s under the limits of '%s'", text, name);
    }
    return 0;
}

static int write_limit(struct cgroup_root *root, enum cgroup_controller which, const char *name,
                       const char *file, const char *text)
{
    char path[PATH_BYTES];
    int fd = root->has_v2[which] ? root->unified_fd : root->v1_fd[which];

    return file_write_at(fd, path_of(path, name, NULL, file), text);
}

static int set_memory(struct cgroup_root *root, const char *name, uint64_t bytes)
{
    char text[32];
    int r;

    (void)snprintf(text, sizeof(text), "%" PRIu64, bytes);
    if (root->has_v2[CGROUP_MEMORY]) {
        r = write_limit(root, CGROUP_MEMORY, name, "memory.max", text);
        /* Without this the limit is only that of memory, and the rest goes to swap. */
        if (r == 0 && write_limit(root, CGROUP_MEMORY, name, "memory.swap.max", "0") == -ENOSPC)
            r = -ENOSPC;
        return r;
    }
    r = write_limit(root, CGROUP_MEMORY, name, "memory.limit_in_bytes", text);
    if (r == 0)
        r = write_limit(root, CGROUP_MEMORY, name, "memory.memsw.limit_in_bytes", text);
    /* Kernels without swap accounting have no such file. */
    return r == -ENOENT ? 0 : r;
}

static int set_cpu(struct cgroup_root *root, const char *name, uint32_t millis)
{
    char text[48];
    uint64_t quota = (uint64_t)millis * CPU_PERIOD_US / 1000;

    if (root->has_v2[CGROUP_CPU]) {
        (void)snprintf(text, sizeof(text), "%" PRIu64 " %d", quota, CPU_PERIOD_US);
        return write_limit(root, CGROUP_CPU, name, "cpu.max", text);
    }
    (void)snprintf(text, sizeof(text), "%" PRIu64, quota);
    return write_limit(root, CGROUP_CPU, name, "cpu.cfs_quota_us", text);
}

int cgroup_set_limits(struct cgroup_root *root, const char *name,
                      const struct cgroup_limits *limits, struct err *err)
{
    char text[16];
    int r;

    if (limits->memory_bytes > 0) {
        r = set_memory(root, name, limits->memory_bytes);
        if (r < 0)
            return err_sys(err, r, "set the memory limit to %" PRIu64 " bytes",
                           limits->memory_bytes);
    }
    if (limits->cpu_millis > 0) {
        r = set_cpu(root, name, limits->cpu_millis);
        if (r < 0)
            return err_sys(err, r, "set the CPU limit to %u/1000", limits->cpu_millis);
    }
    if (limits->pids > 0) {
        (void)snprintf(text, sizeof(text), "%u", limits->pids);
        r = write_limit(root, CGROUP_PIDS, name, "pids.max", text);
        if (r < 0)
            return err_sys(err, r, "set the process limit to %s", text);
    }
    return 0;
}

int cgroup_kill(struct cgroup_root *root, const char *name, const char *child)
{
    char path[PATH_BYTES];

    return file_write_at(root->unified_fd, path_of(path, name, child, "cgroup.kill"), "1");
}

static int freeze(struct cgroup_root *root, const char *name, const char *child, bool on)
{
    char path[PATH_BYTES];

    return file_write_at(root->unified_fd, path_of(path, name, child, "cgroup.freeze"),
                         on ? "1" : "0");
}

int cgroup_signal(struct cgroup_root *root, const char *name, const char *child, int signal)
{
    cleanup_with(buf_done) struct buf pids = BUF_INIT(1 << 20);
    char path[PATH_BYTES], *save = NULL;
    int r;

    if (signal == SIGKILL)
        return cgroup_kill(root, name, child);
    /* Frozen processes neither fork nor end, so no pid in the list can become another's. */
    r = freeze(root, name, child, true);
    if (r == 0)
        r = file_read_at(root->unified_fd, path_of(path, name, child, "cgroup.procs"), &pids);
    for (char *line = r == 0 ? strtok_r(pids.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        (void)kill((pid_t)strtol(line, NULL, 10), signal);
    (void)freeze(root, name, child, false);
    return r;
}

int cgroup_wait_empty(struct cgroup_root *root, const char *name, const char *child)
{
    char path[PATH_BYTES], text[256];
    cleanup_close int fd = openat(root->unified_fd, path_of(path, name, child, "cgroup.events"),
                                  O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    for (;;) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLPRI };
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

        if (n < 0)
            return -errno;
        text[n] = '\0';
        if (strstr(text, "populated 0"))
            return 0;
        (void)poll(&poll_fd, 1, EVENTS_RECHECK_MS);
    }
}

/* A group may be busy for an instant after its last process was seen to end. */
static int remove_group(int root_fd, const char *path)
{
    const struct timespec pause = { .tv_nsec = REMOVE_PAUSE_NS };

    for (int i = 0; i < REMOVE_TRIES; i++) {
        if (unlinkat(root_fd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY)
            return -errno;
        (void)nanosleep(&pause, NULL);
    }
    return -EBUSY;
}

static int remove_children(int root_fd, const char *name)
{
    int fd = openat(root_fd, name, O_DIRECTORY | O_RDONLY | O_CLOEXEC), r = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir)
        return errno == ENOENT ? 0 : -errno;
    while (r == 0 && (entry = readdir(dir)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            r = remove_group(dirfd(dir), entry->d_name);
    (void)closedir(dir);
    return r;
}

int cgroup_remove(struct cgroup_root *root, const char *name, const char *child)
{
    char path[PATH_BYTES];
    int r;

    if (child)
        return remove_group(root->unified_fd, path_of(path, name, child, NULL));
    r = remove_children(root->unified_fd, name);
    for (int i = 0; r == 0 && i < CGROUP_CONTROLLERS; i++)
        if (root->v1_fd[i] >= 0)
            r = remove_group(root->v1_fd[i], name);
    return r < 0 ? r : remove_group(root->unified_fd, name);
}

/* The number behind "key " at the start of a line. */
static uint64_t keyed_number(int dir_fd, const char *path, const char *key)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(4096);
    size_t len = strlen(key);

    if (file_read_at(dir_fd, path, &text) < 0)
        return 0;
    for (const char *line = text.data; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0 && line[len] == ' ')
            return strtoull(line + len, NULL, 10);
    }
    return 0;
}

uint64_t cgroup_oom_kills(struct cgroup_root *root, const char *name)
{
    char path[PATH_BYTES];

    if (root->has_v2[CGROUP_MEMORY])
        return keyed_number(root->unified_fd, path_of(path, name, NULL, "memory.events"),
                            "oom_kill");
    return keyed_number(root->v1_fd[CGROUP_MEMORY],
                        path_of(path, name, NULL, "memory.oom_control"), "oom_kill");
}

uint64_t cgroup_memory_peak(struct cgroup_root *root, const char *name)
{
    bool v2 = root->has_v2[CGROUP_MEMORY];
    char path[PATH_BYTES];
    long long peak;

    path_of(path, name, NULL, v2 ? "memory.peak" : "memory.max_usage_in_bytes");
    if (file_read_number_at(v2 ? root->unified_fd : root->v1_fd[CGROUP_MEMORY], path, &peak) < 0)
        return 0;
    return (uint64_t)peak;
}
