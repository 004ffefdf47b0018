// SPDX-License-Identifier: Apache-2.0
/* Limits of all sandboxes of a label together: the machine without a reserve. So the kernel ends a
 * process of a sandbox, and never the daemon, when sandboxes use up the memory; and the host can
 * always start processes. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/cgroup_internal.h"

#define MIB (UINT64_C(1) << 20)

enum {
    MEMORY_SHARE = 16, /* this part of the memory is the reserve, within the next two */
    MEMORY_MIN_MIB = 256,
    MEMORY_MAX_MIB = 2048,
    PIDS_SHARE = 8,
    PIDS_MAX = 4096,
    ROOM_MEMORY_MIB = 32, /* for one more sandbox */
    ROOM_PIDS = 16,
};

static int group_fd(const struct cgroup_root *root, enum cgroup_controller which)
{
    return root->has_v2[which] ? root->unified_fd : root->v1_fd[which];
}

static void group_write(const struct cgroup_root *root, enum cgroup_controller which,
                        const char *v1_file, const char *v2_file, uint64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    /* Refused if sandboxes of an earlier daemon have more already: then there is no reserve. */
    (void)file_write_at(group_fd(root, which), root->has_v2[which] ? v2_file : v1_file, text);
}

static uint64_t machine_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t memory_reserve(uint64_t all)
{
    uint64_t reserve = all / MEMORY_SHARE;

    if (reserve < MEMORY_MIN_MIB * MIB)
        reserve = MEMORY_MIN_MIB * MIB;
    if (reserve > MEMORY_MAX_MIB * MIB)
        reserve = MEMORY_MAX_MIB * MIB;
    return reserve < all / 4 ? reserve : all / 4;
}

/* Returns the lower of the machine's two limits of threads; 0 if unknown. */
static uint64_t machine_pids(void)
{
    static const char *const files[] = { "/proc/sys/kernel/pid_max",
                                         "/proc/sys/kernel/threads-max" };
    uint64_t least = 0;

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        long long value;

        if (file_read_number_at(AT_FDCWD, files[i], &value) == 0 && value > 0 &&
            (least == 0 || (uint64_t)value < least))
            least = (uint64_t)value;
    }
    return least;
}

static void room_open(struct cgroup_root *root)
{
    static const struct {
        enum cgroup_controller which;
        const char *v1_file, *v2_file;
    } files[ROOM_FILES] = {
        [ROOM_MEMORY_USED] = { CGROUP_MEMORY, "memory.usage_in_bytes", "memory.current" },
        [ROOM_MEMORY_LIMIT] = { CGROUP_MEMORY, "memory.limit_in_bytes", "memory.max" },
        [ROOM_PIDS_USED] = { CGROUP_PIDS, "pids.current", "pids.current" },
        [ROOM_PIDS_LIMIT] = { CGROUP_PIDS, "pids.max", "pids.max" },
    };

    for (int i = 0; i < ROOM_FILES; i++)
        root->room_fds[i] =
            openat(group_fd(root, files[i].which),
                   root->has_v2[files[i].which] ? files[i].v2_file : files[i].v1_file,
                   O_RDONLY | O_CLOEXEC);
}

void cgroup_root_reserve(struct cgroup_root *root)
{
    uint64_t memory = machine_memory(), pids = machine_pids();
    uint64_t pids_reserve = pids / PIDS_SHARE < PIDS_MAX ? pids / PIDS_SHARE : PIDS_MAX;

    group_write(root, CGROUP_MEMORY, "memory.limit_in_bytes", "memory.max",
                memory - memory_reserve(memory));
    if (pids > 0)
        group_write(root, CGROUP_PIDS, "pids.max", "pids.max", pids - pids_reserve);
    room_open(root);
}

/* Returns a number, or "max" as the highest; -1 if it is unknown. */
static long long room_read(const struct cgroup_root *root, enum cgroup_room which)
{
    char text[32], *end;
    ssize_t n =
        root->room_fds[which] < 0 ? -1 : pread(root->room_fds[which], text, sizeof(text) - 1, 0);
    long long value;

    if (n <= 0)
        return -1;
    text[n] = '\0';
    value = strtoll(text, &end, 10);
    return end == text ? LLONG_MAX : value;
}

/* Returns whether so much is left, or it is unknown. */
static bool has_room(long long used, long long limit, long long room)
{
    return used < 0 || limit < 0 || used <= limit - room;
}

/* Returns the memory of all sandboxes without file cache. */
static uint64_t memory_used(struct cgroup_root *root)
{
    struct cgroup_usage usage;

    cgroup_read_usage(root, ".", ".", &usage);
    return usage.memory_bytes;
}

static int memory_check(struct cgroup_root *root, struct err *err)
{
    const long long room = (long long)(ROOM_MEMORY_MIB * MIB);
    long long limit = room_read(root, ROOM_MEMORY_LIMIT);
    uint64_t used;

    if (has_room(room_read(root, ROOM_MEMORY_USED), limit, room))
        return 0;
    used = memory_used(root); /* not read at first: it takes far longer */
    if (has_room((long long)used, limit, room))
        return 0;
    return err_refuse(err, CAUSE_CAPACITY_EXCEEDED,
                      "out of memory: sandboxes have %" PRIu64 " of %lld MiB", used / MIB,
                      limit >> 20);
}

static int pids_check(const struct cgroup_root *root, struct err *err)
{
    long long used = room_read(root, ROOM_PIDS_USED), limit = room_read(root, ROOM_PIDS_LIMIT);

    if (has_room(used, limit, ROOM_PIDS))
        return 0;
    return err_refuse(err, CAUSE_CAPACITY_EXCEEDED, "out of processes: sandboxes have %lld of %lld",
                      used, limit);
}

void cgroup_root_read_total(struct cgroup_root *root, enum cgroup_limit limit,
                            struct cgroup_total *ret)
{
    bool is_memory = limit == CGROUP_LIMIT_MEMORY;
    long long max = room_read(root, is_memory ? ROOM_MEMORY_LIMIT : ROOM_PIDS_LIMIT);
    long long pids = is_memory ? 0 : room_read(root, ROOM_PIDS_USED);

    *ret = (struct cgroup_total){
        .used = is_memory ? memory_used(root) : (uint64_t)(pids > 0 ? pids : 0),
        .max = max > 0 && max < LLONG_MAX ? (uint64_t)max : 0,
    };
    ret->is_full = !has_room((long long)ret->used, max,
                             is_memory ? (long long)(ROOM_MEMORY_MIB * MIB) : ROOM_PIDS);
}

int cgroup_root_check_room(struct cgroup_root *root, struct err *err)
{
    int r = pids_check(root, err);

    return r < 0 ? r : memory_check(root, err);
}
