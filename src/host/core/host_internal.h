/* What the files of the host share. Lock order: host table -> machine; the reactor's timers come
 * before a machine. No lock is held while waiting for a guest or for storage. */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/lock.h"
#include "host/core/host.h"
#include "host/core/reactor.h"
#include "host/machine/channel.h"
#include "host/machine/machine.h"
#include "host/port/table.h"
#include "host/process/process.h"
#include "host/sandbox/info.h"
#include "host/worker/file_pool.h"
#include "kernel/cgroup/cgroup.h"
#include "runtime/runtime.h"
#include "store/template/template.h"
#include "store/volume/volume.h"
#include "wire/frame.h"

struct audit;
struct cgroup_root;
struct config;
struct shared_volume_removal;
struct event_ring;
struct tree_cleaner;
struct journal;
struct expiry;
struct process_table;
struct metrics;
struct pool;
struct ports;
struct thread_check;
struct registry;
struct sandbox;
struct process_writer;
struct storage_monitor;
struct tool_job_table;
struct volume;

enum machine_state {
    MACHINE_BOOTING, /* holt-init makes a blank of itself */
    MACHINE_BLANK,   /* waits for a root */
    MACHINE_WARM,    /* has one, and waits in the pool for somebody who wants that */
    MACHINE_ACTIVE,  /* has a root, or is on the way to it */
    MACHINE_FAILED,  /* why is in `failure` */
    MACHINE_ENDED,   /* destroyed */
};

/* What a guest said to a root that somebody waits for. */
enum root_answer { ROOT_NOT_AWAITED, ROOT_AWAITED, ROOT_TAKEN, ROOT_REFUSED };

struct machine {
    struct host *host;
    char id[RUNTIME_ID_MAX];
    atomic_int refs;
    unsigned uid_slot;
    bool has_shared_uids; /* the slot is not its own */
    struct runtime_guest guest;
    struct cgroup_meter meter;            /* of its limits' group */
    struct channel channel;               /* holds a reference until it is gone */
    char template[TEMPLATE_NAME_MAX + 1]; /* of its volume; "" before it has one */
    struct volume *volume;                /* a scratch one, its own */
    struct volume *old_volume; /* of a warm machine that was wanted with another template */
    struct process_table
        *process_table;        /* of a sandbox's machine, referenced: what is known of processes */
    struct volume_mounts root; /* of a sandbox's machine: held open, see machine_enter */
    struct port_table ports;
    struct file_pool files; /* its file workers, */
    struct file_pool tools; /* and its tool workers */
    struct machine *next;   /* in the host's table, or in the reaper's queue */

    struct lock lock; /* over all below */
    pthread_cond_t changed;
    enum machine_state state;
    struct err failure;
    bool is_gone;   /* nothing comes from the guest any more */
    bool is_reaped; /* nothing is left of it */
    enum root_answer root_answer;
    struct process *processes;
    uint32_t last_process; /* of a throw-away one; a sandbox's process table counts its own */
    enum killer killer;    /* all processes are being ended, on this behalf */
    bool is_released;      /* it goes on without this daemon */
};

struct host {
    struct store *store;
    struct registry *registry;
    struct audit *audit;
    struct event_ring *events;
    struct metrics *metrics;
    struct journal *journal;
    struct process_writer *writer;
    struct cgroup_root *cgroups;
    struct runtime *runtime;
    int state_fd;   /* the state directory */
    int guests_fd;  /* its sockets: guests/MACHINE.sock */
    int outputs_fd; /* what processes have written: output/SANDBOX/p1.out */
    int tools_fd;   /* holt-tools in sealed memory, for tool workers */
    const struct runtime_ops *default_runtime;
    char *default_template;
    struct reactor *reactor;
    struct pool *pool;
    struct tree_cleaner *tree_cleaner;
    struct expiry *expiry;
    struct storage_monitor *storage_monitor;
    struct thread_check *thread_check;
    struct ports *ports;
    struct tool_job_table *jobs;
    uint64_t started_ms;
    bool is_stop_all;

    /* May change at any time: see host_reload. */
    _Atomic uint32_t sandboxes_max;
    _Atomic uint32_t snapshots_max; /* of a sandbox that names none; 0: no limit */
    _Atomic uint64_t default_quota; /* bytes; 0: none */
    _Atomic uint64_t limit_memory;  /* of a sandbox that asks for no limit, as are the next two */
    _Atomic uint32_t limit_cpus;
    _Atomic uint32_t limit_pids;
    _Atomic uint32_t storage_warn; /* per cent */
    _Atomic uint32_t storage_full;
    _Atomic uint64_t health_interval_ms;
    _Atomic uint64_t output_memory; /* bytes of a stream that may wait to be brought to disk */
    _Atomic uint64_t output_disk;   /* bytes of a stream on disk */
    _Atomic uint64_t processes_keep_ms;
    _Atomic uint32_t processes_max;   /* ended ones of a sandbox that are kept */
    _Atomic uint64_t tool_timeout_ms; /* 0: none */
    _Atomic uint32_t tool_tokens;
    _Atomic uint32_t tool_snapshots; /* 0 or 1 */
    _Atomic uint64_t tool_memory;
    _Atomic uint32_t tool_cpus;

    struct lock lock; /* over all below */
    pthread_cond_t changed;
    char warm_template[TEMPLATE_NAME_MAX + 1]; /* what the last create wanted, and the next may */
    struct machine *machines;                  /* the throw-away ones */
    struct sandbox *sandboxes;                 /* oldest first */
    struct shared_volume_removal *removals;    /* shared volumes that are being removed */
    uint32_t active; /* created and not destroyed; at most sandboxes_max */
    uint32_t live;   /* all that hold resources: also warm ones and those being reaped */
    struct machine *reap_queue;
    uint32_t reaping;       /* ended, but not yet undone */
    atomic_bool is_closing; /* nothing new is begun; read without the lock, too */
    bool is_stopping;       /* the reaper may end */
    bool has_reaper;
    uint32_t audit_failures;
    char audit_error[240];
    pthread_t reaper;
    uint8_t *uid_slots; /* one byte each: taken or not */
    unsigned next_uid_slot;
};

/* Starts a blank, which is in nobody's table yet. */
int machine_start_blank(struct host *host, const struct runtime_ops *ops, struct machine **ret,
                        struct err *err);

/* The same with a range of uids that is not its own. */
int machine_start_shared(struct host *host, const struct runtime_ops *ops, uid_t first_uid,
                         struct machine **ret, struct err *err);

/* Takes over a machine that an earlier life of the daemon has started. */
struct machine_adoption {
    const struct runtime_ops *ops;
    const char *id;
    const char *limits_group;
    unsigned uid_slot;
    struct process_table *process_table;
};
int machine_adopt(struct host *host, const struct machine_adoption *adoption, struct machine **ret,
                  struct err *err);

/* Waits until the machine has come to this state, BLANK or WARM, or says why it cannot. */
int machine_wait(struct machine *machine, enum machine_state state, struct err *err);

/* From now on it may have processes. */
void machine_activate(struct machine *machine);

/* What a sandbox with these limits gets: 0 means the daemon's default. */
void host_limits(const struct host *host, const struct sandbox_limits *limits,
                 struct cgroup_limits *ret);
int machine_check_limits(const struct sandbox_limits *limits, struct err *err);
int machine_set_limits(struct machine *machine, const struct sandbox_limits *limits,
                       struct err *err);

/* Gives it a new scratch volume on the template as its root; whether that worked comes as a frame.
 */
int machine_furnish(struct machine *machine, const char *template, struct err *err);

/* Moves it to the live tree of a volume, with the shared volumes that are mounted on top, and
 * returns when it is there; on failure it stays where it was. What the root before was mounted from
 * is handed back: overlay syncs a whole filesystem when its last descriptor closes, and that need
 * not happen while somebody waits. */
struct machine_files {
    struct volume *volume;
    const char *hostname;
    const struct sandbox_mount *mounts; /* on top of the volume's root */
    size_t mount_count;
};
int machine_enter(struct machine *machine, const struct machine_files *files,
                  struct volume_mounts *ret_old, struct err *err);

/* Makes it go on when the daemon does not. */
int machine_listen(struct machine *machine, struct err *err);

/* Lets go of the scratch volume of a machine that does not use it. */
void machine_drop_volume(struct machine *machine);

/* Ends every process in it; their outcome says why. */
int machine_end_processes(struct machine *machine, enum killer killer);

struct machine *machine_ref(struct machine *machine);

/* Whether it was among the throw-away ones; the table's reference is then the caller's. */
bool machine_leave_table(struct machine *machine);

/* Releases everything it holds; called by the reaper, which owns the last reference. */
void machine_reap(struct machine *machine);

/* After machine_destroy: until nothing is left of it. */
void machine_wait_reaped(struct machine *machine);

/* Forgets the machine, which goes on without us. Takes the caller's reference. */
void machine_release(struct machine *machine);

/* Queues a killed machine for the reaper, which takes over the caller's reference. */
void host_reap_later(struct host *host, struct machine *machine);

/* Counts a sandbox in, unless there are as many as there may be, and out again. */
int host_admit(struct host *host, struct err *err);
void host_dismiss(struct host *host);

/* The runtime of this name, or the default one (NULL), if it works here. */
int host_find_runtime(const struct host *host, const char *name, const struct runtime_ops **ret,
                      struct err *err);

/* The template that a create wants (NULL: the default), TEMPLATE_NAME_MAX + 1 bytes. */
int host_choose_template(const struct host *host, const char *wanted, char *ret, struct err *err);

/* A machine's range of 65,536 uids: one that is free (-ENOSPC when none is), one that it has
 * already, or one that it shares. And back. */
int host_take_uids(struct host *host, struct machine *machine);
void host_claim_uids(struct host *host, struct machine *machine, unsigned slot);
void host_share_uids(struct host *host, struct machine *machine, uid_t first_uid);
void host_return_uids(struct host *host, const struct machine *machine);
uid_t host_first_uid(unsigned slot);

/* A frame about one process, on the reactor's thread. False: unacceptable. */
bool process_frame(struct machine *machine, const struct frame *frame);

/* The guest is gone, or could not take its root: every process that has no end gets one now. The
 * sandbox is locked. */
void process_end_all(struct machine *machine);

/* Takes every process off the sandbox's list; afterwards only their readers know them. */
void process_drop_all(struct machine *machine);

/* Waits until the guest has taken up, or refused, every process that it was sent. */
void process_settle(struct machine *machine);

/* Every process of the machine that has no end yet will have been killed on this behalf. */
void process_set_killer_all(struct machine *machine, enum killer killer);

/* Looks after the groups of processes that the guest of an adopted machine does not know any more:
 * what they started may go on there. */
void process_adopt_groups(struct machine *machine);

/* Lets the guest forget those that have ended, and removes their groups as far as nothing runs in
 * them any more: whether some are left for later. */
bool process_sweep(struct machine *machine);

/* A frame about a connection to a port, on the reactor's thread. False: unacceptable. */
bool port_frame(struct machine *machine, const struct frame *frame);

/* The guest is gone: its connections and forwards end. */
void port_cut(struct machine *machine);
void port_table_done(struct port_table *table);

/* The thread of all ports. It outlives every machine's guest; the memory must outlive the reactor.
 * The last two accept NULL. */
int ports_start(const struct config *config, struct ports **ret, struct err *err);
void ports_stop(struct ports *ports);
void ports_free(struct ports *ports);

/* Looks after sandboxes that nobody is looking at: ends what is over its time, notes what has ended
 * by itself. */
struct expiry *expiry_new(struct host *host);
int expiry_start(struct expiry *expiry, struct err *err);

/* Something may have happened. */
void expiry_wake(struct expiry *expiry);

/* Ends the thread, if it was started; the expiry thread itself must outlive the reactor. */
void expiry_stop(struct expiry *expiry);
void expiry_free(struct expiry *expiry);

/* Processes of clients in it that are not over. */
uint32_t machine_count_processes(struct machine *machine);

/* Looks at the storage now and then, and says so when its state changes. */
int storage_monitor_start(struct host *host, struct storage_monitor **ret, struct err *err);
void storage_monitor_wake(struct storage_monitor *storage_monitor);

/* Accepts NULL. */
void storage_monitor_stop(struct storage_monitor *storage_monitor);

/* How many there are of what. */
struct host_census {
    uint32_t sandboxes[SANDBOX_STATES];
    uint32_t runs;      /* throw-away machines */
    uint32_t processes; /* that run, in both */
};
void host_take_census(struct host *host, struct host_census *ret);

/* Counts a sandbox in that is there already. */
void host_count_in(struct host *host);

/* The warm pool. */
int pool_start(struct host *host, const struct runtime_ops *ops, uint32_t size, struct pool **ret,
               struct err *err);

/* A warm sandbox with this template if there is one, else with another: NULL when the pool is
 * empty, or there is none (NULL) yet. */
struct machine *pool_take(struct pool *pool, const struct runtime_ops *ops, const char *template);

/* Ends those that hold the template open. */
void pool_drop_template(struct pool *pool, const char *template);
uint32_t pool_ready(struct pool *pool);

/* How many are to be ready, and a new number: those that are too many go. */
uint32_t pool_size(struct pool *pool);
void pool_resize(struct pool *pool, uint32_t size);

/* One that waited has died. */
void pool_note_death(struct pool *pool);

/* Ends the thread and all that wait; the pool itself must outlive the reactor. Both accept NULL. */
void pool_stop(struct pool *pool);
void pool_free(struct pool *pool);
