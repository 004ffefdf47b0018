/* Control groups, cgroup v2 and hybrid hosts alike.
 *
 * Every sandbox has one group on the unified hierarchy, with a child group for holt-init and one
 * for each process: that is where kill, freeze and "is anybody left" work on whole trees. Where the
 * host has its controllers on that hierarchy, the sandbox's limits are set on the same group.
 *
 * On hybrid hosts the controllers (memory, pids, cpu) have v1 hierarchies of their own. To move a
 * process into a v1 group the kernel waits for a grace period, 5-12 ms in which it makes no other
 * group and starts no process in one. So limits there are set on a "zygote": a group of the same
 * name in each v1 hierarchy that outlives sandboxes and whose one inhabitant starts them: they are
 * born in its groups, and nobody is ever moved on the way of a request.
 *
 * Everything of one daemon lies in one group that carries its label, and nothing outside it is ever
 * touched.
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

/* Finds the hierarchies of this host and makes the group `label` in each, below the daemon's own.
 */
int cgroup_root_open(const char *label, struct cgroup_root **ret, struct err *err);

/* The same, but where an earlier life of the daemon ran in another group and left the label's
 * groups with something in them there, those are used. home_file remembers the places; it is
 * written anew.
 */
int cgroup_root_open_at(const char *label, const char *home_file, struct cgroup_root **ret,
                        struct err *err);

/* Kills and removes the groups below the label that an earlier life left behind, on every
 * hierarchy, but for those that keep (NULL: none) claims: how many. */
typedef bool (*cgroup_keep_fn)(const char *name, void *context);
int cgroup_root_sweep(struct cgroup_root *root, cgroup_keep_fn keep, void *context,
                      struct err *err);

/* Removes the label's own groups when they are empty. Accepts NULL. */
void cgroup_root_close(struct cgroup_root *root);

/* Where limits come from here: "cgroup v2" or "cgroup v1 (hybrid)", for a person. */
const char *cgroup_root_kind(const struct cgroup_root *root);

/* Whether a limit can be set, and use counted, here. */
enum cgroup_limit { CGROUP_LIMIT_MEMORY, CGROUP_LIMIT_PIDS, CGROUP_LIMIT_CPU };
bool cgroup_root_has(const struct cgroup_root *root, enum cgroup_limit limit);

/* Whether limits are set on zygotes here, and not on the sandboxes' own groups. */
bool cgroup_root_limits_zygotes(const struct cgroup_root *root);

/* Makes the group of one sandbox on the unified hierarchy, with child "init". owner is the uid that
 * may start processes in it (the sandbox's own root). */
int cgroup_create(struct cgroup_root *root, const char *name, uid_t owner, struct err *err);

/* Opens the group of child for clone3, by owner; makes it first where it is missing. Several may do
 * so at a time. */
int cgroup_open_child(struct cgroup_root *root, const char *name, const char *child, uid_t owner,
                      int *ret_fd, struct err *err);

/* Makes the groups of a zygote, or none of them and -EEXIST when there is one of that name. On
 * hosts that limit none there is nothing to make, nor to undo. */
int cgroup_zygote_create(struct cgroup_root *root, const char *zygote, struct err *err);

/* Moves a process to a zygote: slow, see above. */
int cgroup_zygote_attach(struct cgroup_root *root, const char *zygote, pid_t pid, struct err *err);

/* Takes all limits off a zygote and what its last user left in the page cache out of its account.
 */
void cgroup_zygote_reset(struct cgroup_root *root, const char *zygote);

int cgroup_zygote_remove(struct cgroup_root *root, const char *zygote);

/* Limits and accounts are those of a sandbox's own group, or of its zygote where it has one. */
int cgroup_set_limits(struct cgroup_root *root, const char *name,
                      const struct cgroup_limits *limits, struct err *err);

/* A group's accounts, held open: every process asks at its start and at its end, and opening them
 * costs ten times what reading them does. They outlive the group, and then say 0. */
struct cgroup_meter {
    int oom_fd; /* negative: the host does not count */
};

#define CGROUP_METER_INIT                                                                          \
    {                                                                                              \
        -1                                                                                         \
    }

void cgroup_meter_open(struct cgroup_root *root, const char *name, struct cgroup_meter *ret);

/* Accepts one that was never opened. */
void cgroup_meter_close(struct cgroup_meter *meter);

/* Limits (memory, CPUs) of one child of a sandbox's group, below the sandbox's own, for all that is
 * in it now and will be. limits_group is the one with the sandbox's limits. Slow on hybrid hosts,
 * see above. The meter, of a limit of memory, is the caller's to close. */
struct cgroup_child {
    const char *name, *limits_group, *child;
};
int cgroup_limit_child(struct cgroup_root *root, const struct cgroup_child *child,
                       const struct cgroup_limits *limits, struct cgroup_meter *ret_meter,
                       struct err *err);

/* The child is gone, and what was made for its limits goes too. */
void cgroup_unlimit_child(struct cgroup_root *root, const struct cgroup_child *child);

/* What the sandbox with this group, and this one with its limits, uses. What the host does not
 * count is 0. */
struct cgroup_usage {
    uint64_t memory_bytes; /* without the next */
    uint64_t cache_bytes;  /* of files, that the kernel can have back at any time */
    uint64_t cpu_us;       /* in all its life */
    uint32_t pids;         /* those of Holt itself among them */
};
void cgroup_read_usage(struct cgroup_root *root, const char *name, const char *limits_group,
                       struct cgroup_usage *ret);

/* How often the kernel has killed in it for want of memory. */
uint64_t cgroup_meter_oom_kills(const struct cgroup_meter *meter);

/* Ends every process in the sandbox's group, or in that of one child (NULL: all). 0 or -errno. */
int cgroup_kill(struct cgroup_root *root, const char *name, const char *child);

/* Sends a signal to every process in the group of a child. What was frozen stays so. */
int cgroup_signal(struct cgroup_root *root, const char *name, const char *child, int signal);

/* Waits until no process is left in the group. */
int cgroup_wait_empty(struct cgroup_root *root, const char *name, const char *child);

/* Removes the group of one child, or (NULL) the sandbox's group with all children. */
int cgroup_remove(struct cgroup_root *root, const char *name, const char *child);

/* Removes the group of one child if nothing is in it now: 0, or -EBUSY. */
int cgroup_try_remove(struct cgroup_root *root, const char *name, const char *child);

/* Everything in the sandbox's group but its child "init", which is Holt's own. holt-init must not
 * be starting a process meanwhile: a child that is stopped before its exec stops holt-init too. */

/* Stops all and waits until nothing runs any more, or lets all run. -ETIMEDOUT when something would
 * not stop (it waits for a device, say); then nothing stays stopped. */
int cgroup_freeze(struct cgroup_root *root, const char *name, bool on);

/* Ends all, stopped or not, waits for that and removes their groups. -ETIMEDOUT when something does
 * not end. */
int cgroup_kill_processes(struct cgroup_root *root, const char *name);

/* Calls each with the name of every child but "init". */
int cgroup_list_children(struct cgroup_root *root, const char *name,
                         void (*each)(void *context, const char *child), void *context);

/* Gives back what memory it can without harm: page cache, and what swap takes. Best effort. The
 * name is that of the group with the limits and accounts. */
void cgroup_reclaim(struct cgroup_root *root, const char *name);

/* A process in the child "init" of a sandbox: its pid and a pidfd that is surely its own, or -ESRCH
 * when nobody is there. */
int cgroup_find_init(struct cgroup_root *root, const char *name, pid_t *ret_pid, int *ret_pidfd);
