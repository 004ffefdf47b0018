// SPDX-License-Identifier: Apache-2.0
/* Limits and counters: files of the sandbox's own group (v2), or of its zygote (v1). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

#define SOCKETS_FILE "memory.kmem.tcp.limit_in_bytes"

enum {
    CPU_PERIOD_US = 100000,
    METER_BYTES = 512,
    SOCKETS_SHARE = 4, /* of the memory limit: this part of it */
    SOCKETS_MIN = 4 << 20,
    SOCKETS_MAX = 64 << 20,  /* the machine has net.ipv4.tcp_mem for all */
    RECLAIM_WORTH = 2 << 20, /* bytes */
    RECLAIM_HEAVY = 8 << 20,
};

static int limit_write(struct cgroup_root *root, enum cgroup_controller which, const char *name,
                       const char *file, const char *text)
{
    char path[CGROUP_PATH_BYTES];
    int fd = root->has_v2[which] ? root->unified_fd : root->v1_fd[which];

    return file_write_at(fd, cgroup_path(path, name, NULL, file), text);
}

/* Limits the queues of TCP and UDP sockets, which v1 counts apart from all other memory, and only
 * for sockets that were made after the first limit. Kernels without it are reported by the
 * doctor. */
static int sockets_limit_set(struct cgroup_root *root, const char *name, uint64_t memory_bytes)
{
    uint64_t bytes = memory_bytes ? memory_bytes / SOCKETS_SHARE : SOCKETS_MAX;
    char text[32];
    int r;

    if (bytes < SOCKETS_MIN)
        bytes = SOCKETS_MIN;
    if (bytes > SOCKETS_MAX)
        bytes = SOCKETS_MAX;
    (void)snprintf(text, sizeof(text), "%" PRIu64, bytes);
    r = limit_write(root, CGROUP_MEMORY, name, SOCKETS_FILE, text);
    return r == -ENOENT || r == -EOPNOTSUPP ? 0 : r;
}

bool cgroup_root_limits_sockets(const struct cgroup_root *root)
{
    return root->has_v2[CGROUP_MEMORY] ||
           faccessat(root->v1_fd[CGROUP_MEMORY], SOCKETS_FILE, W_OK, 0) == 0;
}

static int memory_limit_set(struct cgroup_root *root, const char *name, uint64_t bytes)
{
    char text[32];
    int r;

    (void)snprintf(text, sizeof(text), "%" PRIu64, bytes);
    if (root->has_v2[CGROUP_MEMORY]) {
        r = limit_write(root, CGROUP_MEMORY, name, "memory.max", text);
        /* Otherwise the limit covers only memory, and the excess goes to swap. */
        if (r == 0 && limit_write(root, CGROUP_MEMORY, name, "memory.swap.max", "0") == -ENOSPC)
            r = -ENOSPC;
        return r;
    }
    r = limit_write(root, CGROUP_MEMORY, name, "memory.limit_in_bytes", text);
    /* It must not exceed that of memory and swap, which a higher limit has to raise first. */
    if (r == -EINVAL &&
        limit_write(root, CGROUP_MEMORY, name, "memory.memsw.limit_in_bytes", text) == 0)
        r = limit_write(root, CGROUP_MEMORY, name, "memory.limit_in_bytes", text);
    if (r == 0)
        r = limit_write(root, CGROUP_MEMORY, name, "memory.memsw.limit_in_bytes", text);
    /* Kernels without swap accounting have no such file. */
    if (r == 0 || r == -ENOENT)
        r = sockets_limit_set(root, name, bytes);
    return r;
}

static int cpu_limit_set(struct cgroup_root *root, const char *name, uint32_t millis)
{
    char text[48];
    uint64_t quota = (uint64_t)millis * CPU_PERIOD_US / 1000;

    if (root->has_v2[CGROUP_CPU]) {
        (void)snprintf(text, sizeof(text), "%" PRIu64 " %d", quota, CPU_PERIOD_US);
        return limit_write(root, CGROUP_CPU, name, "cpu.max", text);
    }
    (void)snprintf(text, sizeof(text), "%" PRIu64, quota);
    return limit_write(root, CGROUP_CPU, name, "cpu.cfs_quota_us", text);
}

int cgroup_set_limits(struct cgroup_root *root, const char *name,
                      const struct cgroup_limits *limits, struct err *err)
{
    char text[16];
    int r;

    if (limits->memory_bytes > 0) {
        r = memory_limit_set(root, name, limits->memory_bytes);
        if (r < 0)
            return err_sys(err, r, "set the memory limit to %" PRIu64 " bytes",
                           limits->memory_bytes);
    }
    if (limits->cpu_millis > 0) {
        r = cpu_limit_set(root, name, limits->cpu_millis);
        if (r < 0)
            return err_sys(err, r, "set the CPU limit to %u/1000", limits->cpu_millis);
    }
    if (limits->pids > 0) {
        (void)snprintf(text, sizeof(text), "%u", limits->pids);
        r = limit_write(root, CGROUP_PIDS, name, "pids.max", text);
        if (r < 0)
            return err_sys(err, r, "set the process limit to %s", text);
    }
    return 0;
}

void cgroup_meter_open(struct cgroup_root *root, const char *name, struct cgroup_meter *ret)
{
    bool v2 = root->has_v2[CGROUP_MEMORY];
    int root_fd = v2 ? root->unified_fd : root->v1_fd[CGROUP_MEMORY];
    char path[CGROUP_PATH_BYTES];

    cgroup_path(path, name, NULL, v2 ? "memory.events" : "memory.oom_control");
    ret->oom_fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC);
}

void cgroup_meter_close(struct cgroup_meter *meter)
{
    meter->oom_fd = fd_close(meter->oom_fd);
}

/* Reads a small file from its beginning; "" if the group is gone. */
static void counter_read(int fd, char text[static METER_BYTES])
{
    ssize_t n = fd < 0 ? 0 : pread(fd, text, METER_BYTES - 1, 0);

    text[n < 0 ? 0 : n] = '\0';
}

uint64_t cgroup_meter_oom_kills(const struct cgroup_meter *meter)
{
    static const char key[] = "\noom_kill ";
    char text[METER_BYTES], *found;

    counter_read(meter->oom_fd, text);
    found = strstr(text, key);
    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

bool cgroup_root_limits_zygotes(const struct cgroup_root *root)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        if (root->v1_fd[i] >= 0)
            return true;
    return false;
}

int cgroup_zygote_create(struct cgroup_root *root, const char *zygote, struct err *err)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        int r = root->v1_fd[i] >= 0 && mkdirat(root->v1_fd[i], zygote, 0755) < 0 ? -errno : 0;

        if (r == 0)
            continue;
        /* Only groups that were created here: an existing one belongs to another zygote. */
        while (i-- > 0)
            if (root->v1_fd[i] >= 0)
                (void)cgroup_remove_dir(root->v1_fd[i], zygote);
        return err_sys(err, r, "make control group '%s'", zygote);
    }
    if (root->v1_fd[CGROUP_MEMORY] >= 0)
        (void)sockets_limit_set(root, zygote, 0);
    return 0;
}

int cgroup_zygote_attach(struct cgroup_root *root, const char *zygote, pid_t pid, struct err *err)
{
    char path[CGROUP_PATH_BYTES], text[24];
    int r;

    (void)snprintf(text, sizeof(text), "%d", (int)pid);
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (root->v1_fd[i] < 0)
            continue;
        r = file_write_at(root->v1_fd[i], cgroup_path(path, zygote, NULL, "cgroup.procs"), text);
        if (r < 0)
            return err_sys(err, r, "move process %s to control group '%s'", text, zygote);
    }
    return 0;
}

static long long zygote_usage(const struct cgroup_root *root, const char *zygote)
{
    char path[CGROUP_PATH_BYTES];
    long long usage;

    cgroup_path(path, zygote, NULL, "memory.usage_in_bytes");
    if (root->v1_fd[CGROUP_MEMORY] < 0 ||
        file_read_number_at(root->v1_fd[CGROUP_MEMORY], path, &usage) < 0)
        return 0;
    return usage;
}

/* Reclaims the page cache of the last sandbox if it is worth the time: the rest is reclaimed under
 * memory pressure, but would be charged to the next sandbox. */
static void cache_reclaim(struct cgroup_root *root, const char *zygote)
{
    if (zygote_usage(root, zygote) > RECLAIM_WORTH)
        (void)limit_write(root, CGROUP_MEMORY, zygote, "memory.force_empty", "0");
}

bool cgroup_zygote_is_heavy(struct cgroup_root *root, const char *zygote)
{
    return zygote_usage(root, zygote) > RECLAIM_HEAVY;
}

/* Reads first, because the kernel visits all groups of the machine for every write. */
static void cpu_limit_reset(struct cgroup_root *root, const char *zygote)
{
    char path[CGROUP_PATH_BYTES];
    long long quota;

    cgroup_path(path, zygote, NULL, "cpu.cfs_quota_us");
    if (root->v1_fd[CGROUP_CPU] >= 0 &&
        (file_read_number_at(root->v1_fd[CGROUP_CPU], path, &quota) < 0 || quota != -1))
        (void)limit_write(root, CGROUP_CPU, zygote, "cpu.cfs_quota_us", "-1");
}

void cgroup_zygote_reset(struct cgroup_root *root, const char *zygote)
{
    static const struct {
        enum cgroup_controller which;
        const char *file, *text;
    } resets[] = {
        { CGROUP_PIDS, "pids.max", "max" },
        { CGROUP_MEMORY, "memory.memsw.limit_in_bytes", "-1" },
        { CGROUP_MEMORY, "memory.limit_in_bytes", "-1" },
        { CGROUP_MEMORY, "memory.max_usage_in_bytes", "0" },
    };

    cgroup_zygote_clear(root, zygote);
    cache_reclaim(root, zygote);
    for (size_t i = 0; i < ARRAY_SIZE(resets); i++)
        if (root->v1_fd[resets[i].which] >= 0)
            (void)limit_write(root, resets[i].which, zygote, resets[i].file, resets[i].text);
    cpu_limit_reset(root, zygote);
    if (root->v1_fd[CGROUP_MEMORY] >= 0)
        (void)sockets_limit_set(root, zygote, 0);
}

void cgroup_reclaim(struct cgroup_root *root, const char *name)
{
    char path[CGROUP_PATH_BYTES], text[24];
    long long usage;

    if (!root->has_v2[CGROUP_MEMORY]) {
        (void)limit_write(root, CGROUP_MEMORY, name, "memory.force_empty", "0");
        return;
    }
    cgroup_path(path, name, NULL, "memory.current");
    if (file_read_number_at(root->unified_fd, path, &usage) < 0)
        return;
    /* Fails if not all of it can be reclaimed, which is normal for a running sandbox. */
    (void)snprintf(text, sizeof(text), "%lld", usage);
    (void)limit_write(root, CGROUP_MEMORY, name, "memory.reclaim", text);
}

int cgroup_zygote_try_remove(struct cgroup_root *root, const char *zygote)
{
    int result = 0;

    cgroup_zygote_clear(root, zygote);
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        if (root->v1_fd[i] >= 0 && unlinkat(root->v1_fd[i], zygote, AT_REMOVEDIR) < 0 &&
            errno != ENOENT && result == 0)
            result = -errno;
    return result;
}

int cgroup_zygote_remove(struct cgroup_root *root, const char *zygote)
{
    int r = 0;

    cgroup_zygote_clear(root, zygote);
    for (int i = 0; r == 0 && i < CGROUP_CONTROLLERS; i++)
        if (root->v1_fd[i] >= 0)
            r = cgroup_remove_dir(root->v1_fd[i], zygote);
    return r;
}
