/* Control groups, for cgroup v2 and hybrid hosts.
 *
 * Every sandbox has one group on the unified hierarchy, with a child group for holt-init and one
 * for each process: kill, freeze and "is it empty" work on whole trees there. If the host has its
 * controllers on that hierarchy, the sandbox's limits are set on the same group.
 *
 * On hybrid hosts the controllers (memory, pids, cpu) have v1 hierarchies of their own. To move a
 * process into a v1 group the kernel waits for a grace period, 5-12 ms during which it creates no
 * other group and starts no process in one. So limits are set there on a zygote: a group of the
 * same name in each v1 hierarchy that outlives sandboxes and whose only member starts them.
 * Sandboxes are created in its groups, and no request has to move a process.
 *
 * Everything of one daemon is in one group with its label; nothing outside it is touched. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup_root;
struct err;

/* The group of a second machine (host/machine/beside.h) in that of its sandbox, below which it is
 * like that of any machine. What acts on all processes of a sandbox's group leaves it out. */
#define CGROUP_TIER "tier"

enum cgroup_limit { CGROUP_LIMIT_MEMORY, CGROUP_LIMIT_PIDS, CGROUP_LIMIT_CPU };

struct cgroup_limits {
    uint64_t memory_bytes; /* 0: no limit */
    uint32_t cpu_millis;
    uint32_t pids;
};

/* Finds the hierarchies of this host and creates the group `label` in each, below the daemon's
 * own. */
int cgroup_root_open(const char *label, struct cgroup_root **ret, struct err *err);

/* Does the same, but reuses non-empty groups of the label that an earlier daemon left in another
 * location. home_file records the locations; it is rewritten. */
int cgroup_root_open_at(const char *label, const char *home_file, struct cgroup_root **ret,
                        struct err *err);

/* Limits all sandboxes together to the machine's memory and processes without a reserve, which
 * keeps the daemon alive. A parent's lower limit is in force as well. */
void cgroup_root_reserve(struct cgroup_root *root);

/* What all sandboxes together have and may have; max is 0 if there is no limit. */
struct cgroup_total {
    uint64_t used, max;
    bool is_full; /* no room for one more sandbox */
};

/* Reads the total of memory (without file cache) or of processes. */
void cgroup_root_read_total(struct cgroup_root *root, enum cgroup_limit limit,
                            struct cgroup_total *ret);

/* Fails with ERR_EXHAUSTED, and names the resource, if the memory or the processes of all sandboxes
 * together leave no room for one more. */
int cgroup_root_check_room(struct cgroup_root *root, struct err *err);

/* Kills and removes the groups below the label that an earlier run left behind, on every
 * hierarchy, except those for which keep (NULL: none) returns true. Waits a second at most for all
 * of them: what has not ended then is left to the next sweep. Returns how many were removed. */
typedef bool (*cgroup_keep_fn)(const char *name, void *context);
int cgroup_root_sweep(struct cgroup_root *root, cgroup_keep_fn keep, void *context,
                      struct err *err);

/* Notes on the group of a sandbox what it belongs to (NULL: to nothing any more), and reads that:
 * -ENODATA if there is none. */
int cgroup_set_owner(struct cgroup_root *root, const char *name, const char *owner);
int cgroup_get_owner(struct cgroup_root *root, const char *name, char *ret, size_t size);

/* Calls each for every group of a sandbox. */
int cgroup_each(struct cgroup_root *root, void (*each)(void *context, const char *name),
                void *context);

/* Removes the label's own groups if they are empty. Accepts NULL. */
void cgroup_root_close(struct cgroup_root *root);

/* Returns where limits come from, "cgroup v2" or "cgroup v1 (hybrid)", for people. */
const char *cgroup_root_kind(const struct cgroup_root *root);

/* Returns whether a limit can be set, and usage counted, on this host. */
bool cgroup_root_has(const struct cgroup_root *root, enum cgroup_limit limit);

/* Returns whether the queues of sockets are limited: with v2 as a part of a sandbox's memory, with
 * v1 apart from it, to a quarter of the memory limit (4 to 64 MiB). */
bool cgroup_root_limits_sockets(const struct cgroup_root *root);

/* Returns whether limits are set on zygotes rather than on the sandboxes' own groups. */
bool cgroup_root_limits_zygotes(const struct cgroup_root *root);

/* Creates the group of one sandbox on the unified hierarchy, with child "init". owner is the uid
 * that may start processes in it (the sandbox's root). */
int cgroup_create(struct cgroup_root *root, const char *name, uid_t owner, struct err *err);

/* Opens the group of a child for clone3 by owner, creating it if it is missing. Safe for
 * concurrent calls. */
int cgroup_open_child(struct cgroup_root *root, const char *name, const char *child, uid_t owner,
                      int *ret_fd, struct err *err);

/* Creates the groups of a zygote, or none of them and -EEXIST if the name exists. Does nothing on
 * hosts that do not limit zygotes, like the other calls. */
int cgroup_zygote_create(struct cgroup_root *root, const char *zygote, struct err *err);

/* Moves a process to a zygote: slow, see above. */
int cgroup_zygote_attach(struct cgroup_root *root, const char *zygote, pid_t pid, struct err *err);

/* Removes all limits of a zygote, and reclaims the page cache that its last sandbox left in its
 * accounting. */
void cgroup_zygote_reset(struct cgroup_root *root, const char *zygote);

/* Returns whether the reset has so much page cache to reclaim that it may take long. */
bool cgroup_zygote_is_heavy(struct cgroup_root *root, const char *zygote);

int cgroup_zygote_remove(struct cgroup_root *root, const char *zygote);

/* Sets limits on a sandbox's own group, or on its zygote if it has one. */
int cgroup_set_limits(struct cgroup_root *root, const char *name,
                      const struct cgroup_limits *limits, struct err *err);

/* A group's counters, kept open: they are read when every process starts and exits, and opening
 * costs ten times as much as reading. They outlive the group and then read as 0. */
struct cgroup_meter {
    int oom_fd; /* negative: not counted on this host */
};

#define CGROUP_METER_INIT                                                                          \
    {                                                                                              \
        -1                                                                                         \
    }

void cgroup_meter_open(struct cgroup_root *root, const char *name, struct cgroup_meter *ret);

/* Accepts a meter that was never opened. */
void cgroup_meter_close(struct cgroup_meter *meter);

/* Limits (memory, CPUs) of one child of a sandbox's group, below those of the sandbox, for all
 * present and future members. limits_group is the group with the sandbox's limits. Slow on hybrid
 * hosts, see above. The caller closes the meter, which is opened for a memory limit. */
struct cgroup_child {
    const char *name, *limits_group, *child;
};
int cgroup_limit_child(struct cgroup_root *root, const struct cgroup_child *child,
                       const struct cgroup_limits *limits, struct cgroup_meter *ret_meter,
                       struct err *err);

/* Removes what was created for the limits of a child that has ended. */
void cgroup_unlimit_child(struct cgroup_root *root, const struct cgroup_child *child);

/* The usage of a sandbox, given its group and the group with its limits. Values that the host does
 * not count are 0. */
struct cgroup_usage {
    uint64_t memory_bytes; /* without cache_bytes */
    uint64_t cache_bytes;  /* file cache that the kernel can reclaim at any time */
    uint64_t cpu_us;       /* total */
    uint32_t pids;         /* including Holt's own */
};
void cgroup_read_usage(struct cgroup_root *root, const char *name, const char *limits_group,
                       struct cgroup_usage *ret);

/* Returns the memory limit of a sandbox, in bytes; 0: none, or unknown. */
uint64_t cgroup_read_memory_limit(struct cgroup_root *root, const char *limits_group);

/* Opens the files that count a sandbox's memory (as one number, and in detail), CPU time, processes
 * and OOM kills, for a reader of its own; negative where the host does not count it. */
enum cgroup_counter {
    CGROUP_MEMORY_CURRENT,
    CGROUP_MEMORY_STAT,
    CGROUP_CPU_STAT,
    CGROUP_PIDS_CURRENT,
    CGROUP_MEMORY_EVENTS,
    CGROUP_COUNTERS
};
void cgroup_open_counters(struct cgroup_root *root, const char *name, const char *limits_group,
                          int ret_fds[static CGROUP_COUNTERS]);

/* Returns how many processes the OOM killer has killed in the group. */
uint64_t cgroup_meter_oom_kills(const struct cgroup_meter *meter);

/* Kills every process in the sandbox's group, or in that of one child (NULL: all). Returns 0 or
 * -errno. */
int cgroup_kill(struct cgroup_root *root, const char *name, const char *child);

/* Sends a signal to every process in the group of a child. Frozen processes stay frozen. */
int cgroup_signal(struct cgroup_root *root, const char *name, const char *child, int signal);

/* Reads the processes in the group of a child, one number a line. */
struct buf;
int cgroup_read_processes(struct cgroup_root *root, const char *name, const char *child,
                          struct buf *ret);

/* Waits until the group has no processes. */
int cgroup_wait_empty(struct cgroup_root *root, const char *name, const char *child);

/* Removes the group of one child, or the sandbox's group with all children (NULL). */
int cgroup_remove(struct cgroup_root *root, const char *name, const char *child);

/* Returns 1 if the sandbox's group has no processes, or does not exist, 0 if it has some, or
 * -errno. Does not wait. */
int cgroup_is_empty(struct cgroup_root *root, const char *name);

/* Removes the group of one child, or the sandbox's group with all children (NULL), if it is empty
 * now. Returns 0 or -errno: -EBUSY if it is not. */
int cgroup_try_remove(struct cgroup_root *root, const char *name, const char *child);

/* The following act on everything in the sandbox's group except its children "init", which is
 * Holt's own, and CGROUP_TIER. holt-init must not be starting a process meanwhile: a child that is
 * frozen before its exec also blocks holt-init. */

/* Freezes all processes and waits until none runs any more, or thaws them. -ETIMEDOUT if a process
 * does not freeze (it may be waiting for a device); then all are thawed again. */
int cgroup_freeze(struct cgroup_root *root, const char *name, bool on);

/* Kills all processes, frozen or not, waits for their end and removes their groups. -ETIMEDOUT if
 * a process does not end. */
int cgroup_kill_processes(struct cgroup_root *root, const char *name);

/* Calls each with the name of every child except "init". */
int cgroup_list_children(struct cgroup_root *root, const char *name,
                         void (*each)(void *context, const char *child), void *context);

/* Reclaims memory without harm: page cache, and pages that can be swapped. Best effort. name is
 * the group with the limits and counters. */
void cgroup_reclaim(struct cgroup_root *root, const char *name);

/* Calls each for the processes in the child "init" of a sandbox, with a pidfd that certainly refers
 * to the process and may be taken (TAKE_FD), until one returns true. -ESRCH if none does. */
typedef bool (*cgroup_member_fn)(void *context, pid_t pid, int *pidfd);
int cgroup_each_init(struct cgroup_root *root, const char *name, cgroup_member_fn each,
                     void *context);

/* Finds a process in the child "init" of a sandbox: its pid and a pidfd that certainly refers to
 * it. -ESRCH if there is none. */
int cgroup_find_init(struct cgroup_root *root, const char *name, pid_t *ret_pid, int *ret_pidfd);
