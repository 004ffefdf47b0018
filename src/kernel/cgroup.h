/* Control groups, cgroup v2 and hybrid hosts alike.
 *
 * Every sandbox has one group on the unified hierarchy, with a child group for holt-init and one for
 * each process: that is where kill, freeze and "is anybody left" work on whole trees. Limits are set
 * on the sandbox's group: by v2 controllers where the host has them there, otherwise by groups of
 * the same name in the v1 hierarchies (memory, pids, cpu). Everything of one daemon lies in one
 * group that carries its label, and nothing outside it is ever touched.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup_root;
struct err;

struct cgroup_limits {
    uint64_t memory_bytes; /* 0: none */
    uint32_t cpu_millis;
    uint32_t pids;
};

/* Finds the hierarchies of this host and makes the group `label` in each, below the daemon's own. */
int cgroup_root_open(const char *label, struct cgroup_root **ret, struct err *err);

/* Kills and removes every group below the label that an earlier life left behind: how many. */
int cgroup_root_sweep(struct cgroup_root *root, struct err *err);

/* Removes the label's own groups when they are empty. Accepts NULL. */
void cgroup_root_close(struct cgroup_root *root);

/* Where limits come from here: "cgroup v2" or "cgroup v1 (hybrid)", for a person. */
const char *cgroup_root_kind(const struct cgroup_root *root);

/* Makes the groups of one sandbox, with child "init" on the unified hierarchy. owner is the uid that
 * may start processes in it (the sandbox's own root). */
int cgroup_create(struct cgroup_root *root, const char *name, uid_t owner, struct err *err);

/* Opens the group of child for clone3; makes it first where it is missing. */
int cgroup_open_child(struct cgroup_root *root, const char *name, const char *child, uid_t owner,
                      int *ret_fd, struct err *err);

/* Puts a process under the limits, where that is not done by birth (v1). */
int cgroup_attach(struct cgroup_root *root, const char *name, pid_t pid, struct err *err);

int cgroup_set_limits(struct cgroup_root *root, const char *name,
                      const struct cgroup_limits *limits, struct err *err);

/* Ends every process in the sandbox's group, or in that of one child (NULL: all). 0 or -errno. */
int cgroup_kill(struct cgroup_root *root, const char *name, const char *child);

/* Sends a signal to every process in the group of a child. */
int cgroup_signal(struct cgroup_root *root, const char *name, const char *child, int signal);

/* Waits until no process is left in the group. */
int cgroup_wait_empty(struct cgroup_root *root, const char *name, const char *child);

/* Removes the group of one child, or (NULL) the sandbox's groups with all children. */
int cgroup_remove(struct cgroup_root *root, const char *name, const char *child);

/* How often the kernel has killed in it for want of memory. */
uint64_t cgroup_oom_kills(struct cgroup_root *root, const char *name);

/* The most memory it has used at one time; 0 where the host does not count. */
uint64_t cgroup_memory_peak(struct cgroup_root *root, const char *name);
