// SPDX-License-Identifier: Apache-2.0
/* Reads the current usage of a sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/cgroup_internal.h"

enum { STAT_BYTES_MAX = 16 << 10 };

bool cgroup_root_has(const struct cgroup_root *root, enum cgroup_limit limit)
{
    static const enum cgroup_controller controllers[] = {
        [CGROUP_LIMIT_MEMORY] = CGROUP_MEMORY,
        [CGROUP_LIMIT_PIDS] = CGROUP_PIDS,
        [CGROUP_LIMIT_CPU] = CGROUP_CPU,
    };

    return root->has_v2[controllers[limit]] || root->v1_fd[controllers[limit]] >= 0;
}

/* Reads the number after a word at the start of a line; 0 if there is none. */
static uint64_t read_stat(int root_fd, const char *path, const char *word)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(STAT_BYTES_MAX);
    size_t len = strlen(word);

    if (root_fd < 0 || file_read_at(root_fd, path, &text) < 0 || text.len == 0)
        return 0;
    for (const char *line = text.data; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, len) == 0 && line[len] == ' ')
            return strtoull(line + len, NULL, 10);
    }
    return 0;
}

static uint64_t read_number(int root_fd, const char *path)
{
    long long value;

    return root_fd >= 0 && file_read_number_at(root_fd, path, &value) == 0 && value > 0
               ? (uint64_t)value
               : 0;
}

static void read_memory(struct cgroup_root *root, const char *group, struct cgroup_usage *ret)
{
    bool v2 = root->has_v2[CGROUP_MEMORY];
    int fd = v2 ? root->unified_fd : root->v1_fd[CGROUP_MEMORY];
    char path[CGROUP_PATH_BYTES];

    cgroup_path(path, group, NULL, v2 ? "memory.current" : "memory.usage_in_bytes");
    ret->memory_bytes = read_number(fd, path);
    cgroup_path(path, group, NULL, "memory.stat");
    ret->cache_bytes = read_stat(fd, path, v2 ? "inactive_file" : "total_inactive_file");
    if (ret->cache_bytes > ret->memory_bytes)
        ret->cache_bytes = ret->memory_bytes;
    ret->memory_bytes -= ret->cache_bytes;
}

uint64_t cgroup_read_memory_limit(struct cgroup_root *root, const char *limits_group)
{
    const uint64_t unlimited = UINT64_C(1) << 60; /* v1 has a number for "none" */
    bool v2 = root->has_v2[CGROUP_MEMORY];
    char path[CGROUP_PATH_BYTES];
    uint64_t limit;

    cgroup_path(path, limits_group, NULL, v2 ? "memory.max" : "memory.limit_in_bytes");
    limit = read_number(v2 ? root->unified_fd : root->v1_fd[CGROUP_MEMORY], path);
    return limit < unlimited ? limit : 0;
}

/* CPU time is counted on the unified hierarchy even without the controller. */
void cgroup_read_usage(struct cgroup_root *root, const char *name, const char *limits_group,
                       struct cgroup_usage *ret)
{
    int pids_fd = root->has_v2[CGROUP_PIDS] ? root->unified_fd : root->v1_fd[CGROUP_PIDS];
    char path[CGROUP_PATH_BYTES];

    *ret = (struct cgroup_usage){ .memory_bytes = 0 };
    read_memory(root, limits_group, ret);
    ret->pids =
        (uint32_t)read_number(pids_fd, cgroup_path(path, limits_group, NULL, "pids.current"));
    ret->cpu_us =
        read_stat(root->unified_fd, cgroup_path(path, name, NULL, "cpu.stat"), "usage_usec");
}

static int counter_open(int root_fd, const char *group, const char *file)
{
    char path[CGROUP_PATH_BYTES];

    return root_fd < 0
               ? -EBADF
               : openat(root_fd, cgroup_path(path, group, NULL, file), O_RDONLY | O_CLOEXEC);
}

void cgroup_open_counters(struct cgroup_root *root, const char *name, const char *limits_group,
                          int ret_fds[static CGROUP_COUNTERS])
{
    bool v2 = root->has_v2[CGROUP_MEMORY];
    int memory_fd = v2 ? root->unified_fd : root->v1_fd[CGROUP_MEMORY];
    int pids_fd = root->has_v2[CGROUP_PIDS] ? root->unified_fd : root->v1_fd[CGROUP_PIDS];

    ret_fds[CGROUP_MEMORY_CURRENT] =
        counter_open(memory_fd, limits_group, v2 ? "memory.current" : "memory.usage_in_bytes");
    ret_fds[CGROUP_MEMORY_STAT] = counter_open(memory_fd, limits_group, "memory.stat");
    ret_fds[CGROUP_CPU_STAT] = counter_open(root->unified_fd, name, "cpu.stat");
    ret_fds[CGROUP_PIDS_CURRENT] = counter_open(pids_fd, limits_group, "pids.current");
    ret_fds[CGROUP_MEMORY_EVENTS] =
        counter_open(memory_fd, limits_group, v2 ? "memory.events" : "memory.oom_control");
}
