/* struct machine and its functions, for the files of the host. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/access/caller.h"
#include "base/err.h"
#include "base/lock.h"
#include "host/machine/channel.h"
#include "host/machine/machine.h"
#include "host/owner/owner_internal.h"
#include "host/port/table.h"
#include "host/process/process.h"
#include "host/worker/file_pool.h"
#include "kernel/cgroup/cgroup.h"
#include "runtime/runtime.h"
#include "store/template/template.h"
#include "store/volume/volume.h"

struct authority;
struct host;
struct process;
struct process_table;
struct sandbox_mount;
struct view;

enum machine_state {
    MACHINE_BOOTING, /* holt-init starts */
    MACHINE_BLANK,   /* holt-init runs and has no root yet */
    MACHINE_WARM,    /* has a root, and waits in the pool */
    MACHINE_ACTIVE,  /* has a root, or is moving to one; may have processes */
    MACHINE_FAILED,  /* the reason is in `failure` */
    MACHINE_ENDED,   /* destroyed */
};

/* The guest's reply to the root that it was sent. */
enum root_answer { ROOT_NOT_AWAITED, ROOT_AWAITED, ROOT_TAKEN, ROOT_REFUSED };

struct machine {
    struct host *host;
    char id[RUNTIME_ID_MAX];
    atomic_int refs;
    _Atomic bool has_models;       /* its processes get variables for them, see net_environment */
    _Atomic int64_t net_active_ms; /* when its network was last used, as clock_boot_ms() */
    unsigned uid_slot;
    bool has_shared_uids;       /* another machine owns the slot */
    struct machine *beside;     /* of a second machine: the first one, see beside.h; else NULL */
    char **env;                 /* of all processes, before their own; NULL: none; constant */
    uint32_t limit_files;       /* descriptors of one process; 0: the daemon's default */
    struct caller creator;      /* of a throw-away; constant while it is in the table */
    struct owner_charge charge; /* the same: what it counts for its owner */
    struct runtime_guest guest;
    struct channel channel;               /* holds a reference until its `gone` event */
    char template[TEMPLATE_NAME_MAX + 1]; /* of its volume; "" before it has one */
    struct view *view;                    /* of its sandbox's codebase; NULL: none */
    struct volume *volume;                /* its own scratch volume */
    struct volume *old_volume;           /* of a warm machine that was taken for another template */
    struct process_table *process_table; /* the sandbox's, referenced; NULL for a throw-away */
    struct port_table ports;
    struct file_pool files; /* file workers */
    struct file_pool tools; /* tool workers */
    struct machine *next;   /* in the host's table, or in a queue of the reaper */
    uint64_t reap_at_ns;    /* of the reaper's thread: when to look at it again */
    long reap_pause_ns;     /* how long to wait then; 0: holt-init may still run */
    bool needs_kill;        /* not all of its processes could be killed */
    unsigned remove_tries;  /* failed removals of its control group */

    struct lock lock; /* protects all fields below */
    struct cond changed;
    enum machine_state state;
    struct err failure;
    bool is_gone;      /* the guest sends nothing any more */
    bool is_reaped;    /* nothing of it runs or uses its files any more */
    bool is_abandoned; /* it did not end before the daemon had to; the next start removes it */
    enum root_answer root_answer;
    struct process *processes;
    uint32_t last_process;     /* of a throw-away; a sandbox's process table has its own counter */
    struct cgroup_meter meter; /* of the cgroup with the limits; open while there are processes */
    enum killer killer;        /* why all processes are being ended */
    bool is_released;          /* it outlives this daemon */
    bool is_exhausted;         /* machine_exhaust has killed it */
    unsigned
        beside_processes; /* Holt's own in its second machine, which have its limits; 0: none */
};

/* Starts a blank machine, which is in no table yet. */
int machine_start_blank(struct host *host, const struct runtime_ops *ops, struct machine **ret,
                        struct err *err);

/* Starts a blank machine that uses another machine's range of uids. */
int machine_start_shared(struct host *host, const struct runtime_ops *ops, uid_t first_uid,
                         struct machine **ret, struct err *err);

/* Starts a blank second machine, which takes a reference to the first one. */
int machine_start_beside(struct machine *first, const struct runtime_ops *ops, struct machine **ret,
                         struct err *err);

/* Takes over a running machine that an earlier daemon process started. */
struct machine_adoption {
    struct machine *beside; /* it is the second machine of this one; NULL: it is not */
    uint32_t files;         /* limit of descriptors of one process; 0: the daemon's default */
    const struct runtime_ops *ops;
    const char *id;
    const char *limits_group;
    unsigned uid_slot;
    struct process_table *process_table;
};
int machine_adopt(struct host *host, const struct machine_adoption *adoption, struct machine **ret,
                  struct err *err);

/* Waits until the machine is in this state, BLANK or WARM; fails with the reason when it cannot
 * get there. */
int machine_wait(struct machine *machine, enum machine_state state, struct err *err);

/* Waits until holt-init has booted, so that the namespaces of the machine are complete; fails with
 * the reason when it cannot get there. */
int machine_wait_booted(struct machine *machine, struct err *err);

/* Makes the machine ACTIVE: it may have processes from now on. */
void machine_activate(struct machine *machine);

/* Applies the limits to the machine's cgroup; 0 means the daemon's default. */
int machine_set_limits(struct machine *machine, const struct sandbox_limits *limits,
                       struct err *err);

/* Tells the guest its limits, for programs that ask for the memory and CPUs of the machine (see
 * guest/resources.h); NULL: none yet, but where to read what is in use. A guest that cannot be told
 * fails elsewhere, too. */
void machine_send_size(struct machine *machine, const struct cgroup_limits *limits);

/* Sends the machine a new scratch volume of the template as its root; the guest's reply comes as a
 * frame. */
int machine_set_scratch_root(struct machine *machine, const char *template, struct err *err);

/* Moves the machine to the live tree of a volume, with shared volumes mounted on top, and returns
 * when it is there; on failure it keeps its old root. The mounts of the old root go to *ret_old
 * (NULL: it needs no sync): overlay syncs a whole filesystem when its last descriptor closes, and
 * the caller can do that later. */
struct machine_files {
    struct volume *volume;
    const char *hostname;
    const struct sandbox_mount *mounts; /* on top of the volume's root */
    size_t mount_count;
    int mask_fd;       /* what the sandbox sees of its codebase; -1: all */
    const char *rules; /* for a file server, as view_rules_parse reads them; NULL: there is none */
    uint64_t rules_generation;
    const struct authority *authority; /* that programs trust; NULL: none */
}; /* a second machine gets the mounts of the first one, and no file server of its own */
int machine_enter(struct machine *machine, const struct machine_files *files,
                  struct volume_mounts *ret_old, struct err *err);

/* Says which template the root is made of: processes have the defaults of an image. */
void machine_set_template(struct machine *machine, const char *template);

/* Opens the mounts of the machine's root, so that their last close, which may sync a filesystem, is
 * the caller's and not that of holt-init. They are not held all the time, because that would take
 * a descriptor for each. */
void machine_hold_root(const struct machine *machine, struct volume *volume,
                       struct volume_mounts *ret);

/* Makes the guest listen on a socket of its own, so that it survives the daemon. */
int machine_listen(struct machine *machine, struct err *err);

/* Removes the scratch volume of a machine that does not use it. */
void machine_drop_volume(struct machine *machine);

/* Ends every process in the machine; their outcome names the killer. -ETIMEDOUT if holt-init does
 * not start or refuse in time what it was sent. */
int machine_end_processes(struct machine *machine, enum killer killer);

/* Kills holt-init and every process, which ends all waits for them; the machine then counts as
 * lost. Any thread may call this at any time; the owner still has to call machine_destroy. */
void machine_kill(struct machine *machine, enum killer killer);

/* Returns how many processes the OOM killer has killed in the machine. Locked. */
uint64_t machine_count_oom_kills(struct machine *machine);

/* Returns the number of running processes that clients started. */
uint32_t machine_count_processes(struct machine *machine);

/* Takes another reference. */
struct machine *machine_ref(struct machine *machine);

/* Takes a throw-away machine out of the host's table; returns whether it was there. The table's
 * reference then belongs to the caller. */
bool machine_leave_table(struct machine *machine);

/* Releases a killed machine that has ended, except its files and what may take long, and returns
 * true; false if it has not ended yet. Does not wait. */
bool machine_try_reap(struct machine *machine);

/* Releases a part of what machine_try_reap has left. Returns -EAGAIN when there is more, otherwise
 * takes the reference of the reaper. */
int machine_clean_some(struct machine *machine);

/* Tells those who wait for the machine's end that it comes too late for this daemon process. */
void machine_abandon(struct machine *machine);

/* Waits, after machine_destroy, until the machine has ended, and returns true; false if it was
 * abandoned. */
bool machine_wait_reaped(struct machine *machine);

/* Kills a machine that takes from others what no limit covers; its processes end as lost, for this
 * reason. Returns false if it has ended already. */
bool machine_exhaust(struct machine *machine, const struct err *reason);

/* Forgets the machine, which outlives the daemon. Takes the caller's reference. */
void machine_release(struct machine *machine);
