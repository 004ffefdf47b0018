/* struct host and its functions, for the files of the host. Lock order: host table -> machine; the
 * reactor's timers come before a machine. No lock is held while waiting for a guest or for
 * storage. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "host/core/host.h"
#include "host/owner/ceiling.h"
#include "host/sandbox/info.h"
#include "store/template/template.h"

struct audit;
struct audit_facts_list;
struct cgroup_limits;
struct cgroup_root;
struct event_ring;
struct expiry;
struct host_extension;
struct journal;
struct machine;
struct memory_guard;
struct message_rlimit;
struct owner_charge;
struct owner_table;
struct metrics;
struct net;
struct net_layer;
struct pool;
struct ports;
struct process_writer;
struct reaper;
struct reactor;
struct recovery;
struct registry;
struct remote_store;
struct runtime;
struct runtime_ops;
struct sandbox;
struct sandbox_index;
struct sandbox_limits;
struct secrets;
struct settle;
struct shared_volume_removal;
struct history;
struct storage_monitor;
struct store;
struct thread_check;
struct tree_cleaner;
struct unrecorded_volume;
struct views;

struct host {
    struct store *store;
    struct registry *registry;
    struct secrets *secrets;
    struct audit *audit;
    struct event_ring *events;
    struct owner_events *owner_events;
    struct metrics *metrics;
    struct journal *journal;
    struct process_writer *writer;
    struct cgroup_root *cgroups;
    struct runtime *runtime;
    int state_fd;   /* the state directory */
    int guests_fd;  /* its directory guests: MACHINE.sock for each machine */
    int outputs_fd; /* its directory output: SANDBOX/p1.out for each process */
    int tools_fd;   /* the program holt-tools, in a sealed memfd */
    const struct runtime_ops *default_runtime;
    char runtime_allow[CEILING_TEXT_SIZE]; /* under the lock; "": all */
    char runtime_min[CEILING_NAME_SIZE];   /* under the lock */
    char *default_template;
    struct reactor *reactor;
    struct pool *pool;
    struct reaper *reaper;
    struct tree_cleaner *tree_cleaner;
    struct expiry *expiry;
    struct storage_monitor *storage_monitor;
    struct history *history;
    struct memory_guard *memory_guard;
    struct thread_check *thread_check;
    struct ports *ports;
    struct net *net;
    struct llm *llm;
    struct views *views;
    struct remote_store *remote;            /* object storage, also if none is configured */
    struct settle *settle;                  /* NULL: not started */
    const struct host_extension *extension; /* NULL: none */
    void *extension_data;
    uint64_t started_ms;
    char *snapshots_prefix; /* of the names of turns, with its dash */
    bool is_stop_all;
    bool has_deep_e2b_pause;   /* e2b.pause */
    atomic_bool refuses_tools; /* the daemon waits for the last tool calls */

    /* host_reload changes these while other threads read them. */
    _Atomic uint32_t sandboxes_max;
    _Atomic uint32_t snapshots_max; /* of a sandbox that sets none; 0: no limit */
    _Atomic uint64_t default_quota; /* bytes; 0: none */
    _Atomic uint64_t limit_memory;  /* this and the next two: of a sandbox that sets none */
    _Atomic uint32_t limit_cpus;
    _Atomic uint32_t limit_pids;
    _Atomic uint32_t limit_files; /* of one process */
    _Atomic uint32_t limit_files_soft;
    _Atomic uint64_t memory_reserve; /* see observe/memory_guard.h */
    _Atomic uint32_t storage_warn;   /* per cent */
    _Atomic uint32_t storage_full;
    _Atomic uint64_t health_interval_ms;
    _Atomic uint64_t output_memory; /* bytes of a stream that may wait to be written to disk */
    _Atomic uint64_t output_disk;   /* bytes of a stream on disk */
    _Atomic uint64_t processes_keep_ms;
    _Atomic uint32_t processes_max; /* ended processes that a sandbox keeps */
    _Atomic uint32_t tool_cpus;
    _Atomic uint64_t tool_memory;
    _Atomic uint64_t tool_timeout_ms; /* 0: none */
    _Atomic uint64_t pause_drain_ms;  /* for tool calls; 0: a pause freezes them */
    _Atomic uint64_t shutdown_ms;     /* for tool calls, with is_stop_all */
    _Atomic uint32_t tool_tokens;
    _Atomic uint32_t tool_snapshots;               /* 0 or 1 */
    _Atomic(const struct runtime_ops *) tool_tier; /* the weakest of bash */

    struct image_config *image_config; /* of holt.conf; not changed while the daemon runs */
    atomic_uint pulls, pushes;         /* under way */
    atomic_uint moves;                 /* sandboxes that are brought from other hosts */

    /* Used by the starting thread only. */
    struct recovery *recovery;
    struct audit_facts_list *facts;

    struct lock owners_lock; /* held during a change of the ceilings of an owner */

    struct lock lock; /* protects all fields below */
    struct cond changed;
    struct owner_table *owners;                /* what each uses, and its ceilings */
    struct net_layer *net_config;              /* the network policy of holt.conf */
    atomic_uint net_changes;                   /* of it and of ceilings */
    bool has_net_default;                      /* sandboxes that set no network have mode open */
    char warm_template[TEMPLATE_NAME_MAX + 1]; /* of the last create */
    struct machine *machines;                  /* throw-aways */
    struct sandbox *sandboxes;                 /* oldest first */
    struct sandbox **last_sandbox;             /* the end of that list */
    struct sandbox_index *sandbox_index;       /* finds them by id, name or key */
    struct shared_volume_removal *removals;    /* of shared volumes, in progress */
    struct codebase_work *codebase_work;       /* in progress */
    uint32_t active;            /* created and not destroyed; at most sandboxes_max */
    uint32_t reaping;           /* machines that have ended and are not released yet */
    atomic_bool is_closing;     /* new operations fail; also read without the lock */
    uint64_t close_deadline_ms; /* of clock_ms: what has not ended then is left to the next start */
    uint32_t audit_failures;
    char audit_error[240];
    uint8_t *uid_slots; /* one byte for each range: taken or not */
    unsigned next_uid_slot;
    struct unrecorded_volume *unrecorded; /* kept volumes without a row, see volume/unrecorded.h */
    size_t unrecorded_count;
};

/* Computes the limits of a sandbox: 0 in `limits` means the daemon's default. */
void host_limits(const struct host *host, const struct sandbox_limits *limits,
                 struct cgroup_limits *ret);

/* Returns the limit of descriptors of a process in a sandbox; files is the sandbox's own (0: none).
 */
void host_files_limit(const struct host *host, uint32_t files, struct message_rlimit *ret);

/* Queues a killed machine for the reaper, which takes over the caller's reference. */
void host_reap_later(struct host *host, struct machine *machine);

/* Counts a machine out that was queued for the reaper and holds nothing any more. */
void host_note_reaped(struct host *host);

/* Counts `count` new sandboxes with this charge each, all or none; fails when the limit of the host
 * or a ceiling of the owner is reached, or when sandboxes have used up the memory or the processes
 * of the machine. */
int host_admit(struct host *host, const struct owner_charge *charge, size_t count, struct err *err);

/* Counts a sandbox that exists already, above the limits if need be. */
void host_count_in(struct host *host, const struct owner_charge *charge);

/* Undoes host_count_in, or host_admit for one sandbox. */
void host_dismiss(struct host *host, const struct owner_charge *charge);

/* Finds the runtime of this name, or the default one (NULL); fails when it does not work here. */
int host_find_runtime(const struct host *host, const char *name, const struct runtime_ops **ret,
                      struct err *err);

/* Copies the name in the store of the template that a word of the caller's stands for (NULL: the
 * default) to ret, TEMPLATE_NAME_MAX + 1 bytes. */
int host_choose_template(struct host *host, const struct caller *caller, const char *wanted,
                         char *ret, struct err *err);

/* Counts sandboxes by state, runs and processes, of those that the caller sees. */
struct host_census {
    uint32_t sandboxes[SANDBOX_STATES];
    uint32_t runs;      /* throw-away machines */
    uint32_t processes; /* that run, in both */
};
void host_take_census(struct host *host, const struct caller *caller, struct host_census *ret);
