/* Internal interface of the sandbox folder. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/lock.h"
#include "host/owner/owner_internal.h"
#include "host/process/process.h"
#include "host/sandbox/idle.h"
#include "host/sandbox/sandbox.h"

struct machine;
struct tree_cleaner;
struct volume;
struct volume_mounts;

/* Operations on a sandbox. At most one runs at a time, except exec. */
enum operation {
    OPERATION_NONE,
    OPERATION_CREATE,
    OPERATION_EXEC,
    OPERATION_PAUSE,
    OPERATION_RESUME,
    OPERATION_STOP,
    OPERATION_START,
    OPERATION_TURN,
    OPERATION_SNAPSHOT,
    OPERATION_ROLLBACK,
    OPERATION_FORK,
    OPERATION_UNMARK,
    OPERATION_UPDATE,
    OPERATION_TIER, /* starts the second machine */
    OPERATION_DEEP_PAUSE,
    OPERATIONS
};

/* The words by which the host's table finds a sandbox; "" is none. */
enum sandbox_word { SANDBOX_WORD_ID, SANDBOX_WORD_NAME, SANDBOX_WORD_KEY, SANDBOX_WORDS };

enum { SANDBOX_CHAINS = 4096 };

#define SANDBOX_ID_PREFIX "sb-"

/* Finds sandboxes by hash, because every request finds one. */
struct sandbox_index {
    struct sandbox *chains[SANDBOX_WORDS][SANDBOX_CHAINS];
};

/* Times of a sandbox that decide when it expires, of clock_boot_ms; see lifetime.c. */
struct sandbox_times {
    int64_t created;
    int64_t active;  /* last */
    int64_t expires; /* unless info.expires_ms is 0 */
};

struct sandbox {
    struct host *host;
    atomic_int refs;
    struct sandbox *next;  /* in the host's table, like the next two; under the host's lock */
    struct sandbox **slot; /* the pointer to this one */
    struct sandbox *next_of_word[SANDBOX_WORDS]; /* in a chain of the index */
    const struct sandbox_info *reserved; /* its mounts count as well; under the host's lock */
    struct owner_charge charge; /* what it counts for its owner; changed by its operation only */

    struct lock lock; /* protects everything below */
    struct cond changed;
    struct sandbox_info info;
    struct sandbox_times times;
    enum operation operation; /* running now; only its thread uses volume and machine */
    bool is_quiesced;         /* files are being copied: no process may start */
    bool is_gone;             /* destroyed, or creation failed */
    bool is_expiring;         /* a thread of expiry.c acts on it */
    unsigned tools;           /* running tool calls */
    unsigned drains;          /* pauses that wait for them: no further one may begin */
    unsigned starting;        /* processes being started in the machine */
    unsigned attached;        /* clients attached to a process */
    atomic_uint_fast64_t transfer_done, transfer_total; /* bytes, see host/backup/transfer.h */
    unsigned pins; /* other users of the volume, see sandbox_pin */
    struct volume *volume;
    struct template *template_pin; /* of a deep-paused sandbox, which has no volume; NULL: none */
    struct machine *machine;       /* NULL: not running */
    struct machine *second;        /* for calls of a higher tier, see tier.c; NULL: not started */
    struct service *services;
    struct process_table *process_table; /* set when the sandbox enters the host's table */
    struct shell *shells;                /* see shell_internal.h */
    struct idle_watch idle;              /* used by the expiry thread only */
    char *learning; /* recorded layers that hold for now instead of info.network; NULL: none */
    void *extension_data; /* NULL: not made yet, see host/core/extension.h */
};

/* Allocates a sandbox with a random id and one reference; it is in no table yet. */
struct sandbox *sandbox_new(struct host *host);

/* Finds the owner's sandbox that was created with this idempotency key and takes a reference, or
 * returns NULL. */
struct sandbox *sandbox_find_by_key(struct host *host, const char *owner, const char *key);

/* Returns whether the sandbox exists for the caller. */
bool sandbox_is_seen(struct sandbox *sandbox, const struct caller *caller);

/* Waits until the sandbox is neither being created nor destroyed. Returns whether it still
 * exists. */
bool sandbox_wait_created(struct sandbox *sandbox);

/* Adds the sandbox to the host's table unless its name or key is in use. */
int sandbox_enter_table(struct sandbox *sandbox, struct err *err);

/* Changes the name under which the host's table finds the sandbox ("": none); SessionExists if
 * another sandbox has it. The caller runs an operation. */
int sandbox_rename(struct sandbox *sandbox, const char *name, struct err *err);

/* Removes the sandbox from the host's table, if it is there, and marks it as gone. */
void sandbox_leave_table(struct sandbox *sandbox);

/* Marks the sandbox as used now. Locked, as the next four. */
void sandbox_touch(struct sandbox *sandbox);

/* Derives the times from the wall times of the info. */
void sandbox_begin_times(struct sandbox *sandbox);

/* Sets the wall time at which the sandbox expires; 0: never. */
void sandbox_expire_at(struct sandbox *sandbox, uint64_t expires_ms);

/* Returns the milliseconds from creation to expiry; 0: it does not expire. */
uint64_t sandbox_life_ms(const struct sandbox *sandbox);

/* Moves the wall times of a sandbox's info to where they belong after a step of the wall clock;
 * returns whether that of the expiry moved. */
bool sandbox_times_correct(const struct sandbox_times *times, struct sandbox_info *info);

/* Does that for the sandbox itself, also in the registry. Takes the lock. */
void sandbox_correct_times(struct sandbox *sandbox);

/* Waits for the running operation, then begins this one unless the state forbids it, and returns
 * the state before it in *ret_state. */
int sandbox_begin(struct sandbox *sandbox, enum operation operation, enum sandbox_state *ret_state,
                  struct err *err);

/* Ends the operation and sets the state, unless the sandbox is being destroyed. */
void sandbox_finish(struct sandbox *sandbox, enum sandbox_state state);

/* Sets the state shown during an operation, unless the sandbox is being destroyed. */
void sandbox_set_state(struct sandbox *sandbox, enum sandbox_state state);

/* Waits until no process is being started. ERR_DEADLINE if that takes PROCESS_START_WAIT_MS. */
int sandbox_wait_starting(struct sandbox *sandbox, struct err *err);

/* Takes a reference to the machine, in the states that allow exec. */
int sandbox_ref_machine(struct sandbox *sandbox, struct machine **ret, struct err *err);

/* Like sandbox_ref_machine, but also keeps the machine from being frozen or moved to another
 * root until sandbox_release_machine, which drops the reference. */
int sandbox_hold_machine(struct sandbox *sandbox, struct machine **ret, struct err *err);
void sandbox_release_machine(struct sandbox *sandbox, struct machine *machine);

/* Writes the sandbox to the registry with this state, or as destroying if it is being destroyed. */
int sandbox_record(struct sandbox *sandbox, enum sandbox_state state, struct err *err);

/* Writes several sandboxes (at least one) to the registry, all or none. */
int sandbox_record_all(struct sandbox *const *list, size_t count, enum sandbox_state state,
                       struct err *err);

/* Does the same without waiting for the disk (registry_put_later). */
int sandbox_record_later(struct sandbox *const *list, size_t count, enum sandbox_state state,
                         struct err *err);

/* Returns the volume for use in parallel with an operation, or NULL if there is none. The volume
 * stays open until sandbox_unpin. */
struct volume *sandbox_pin(struct sandbox *sandbox);
void sandbox_unpin(struct sandbox *sandbox);

/* What a new live tree is made of, and what becomes of the machine. */
struct rollback {
    const char *snapshot;
    /* Changes the new tree before anything uses it. Returns 0 or -errno, with err set. NULL: the
     * sandbox goes back to the snapshot, with its shells. */
    int (*prepare)(struct sandbox *sandbox, uint32_t generation, void *context, struct err *err);
    void *context;
    uint32_t codebase_base; /* with prepare: what the changes are compared with from then on */
    bool is_frozen;         /* sandbox_freeze: thaw the processes, which end */
};

/* Makes a new live tree, moves the machine to it and ends its processes. The caller runs
 * OPERATION_ROLLBACK, and state is the one before. */
int rollback_run(struct sandbox *sandbox, const struct rollback *rollback, enum sandbox_state state,
                 struct err *err);

/* --- tier.c: the second machine --- */

/* Like sandbox_hold_machine, of the machine of a tier, which is started if it does not run. */
int sandbox_hold_tier(struct sandbox *sandbox, const char *tier, struct machine **ret,
                      struct err *err);

/* Ends the second machine, if there is one; the outcome of its processes names the killer. Returns
 * false if that takes longer than the daemon may still run. */
bool sandbox_end_tier(struct sandbox *sandbox, enum killer killer);

/* Takes the second machine over that an earlier daemon process has started, or removes what is left
 * of it. */
void sandbox_adopt_tier(struct sandbox *sandbox);

/* Sets the killer that the outcome of every running process of the sandbox will name. */
void sandbox_set_killer(struct sandbox *sandbox, enum killer killer);

/* Freezes or thaws the processes of a sandbox, if it has a machine. */
int sandbox_freeze(const struct sandbox *sandbox, bool on, struct err *err);

/* Fails with ERR_INVALID: the sandbox has no codebase. */
int sandbox_lacks_codebase(const struct sandbox *sandbox, struct err *err);

/* Gives an open volume the codebase of its sandbox, if it has one. */
int sandbox_attach_codebase(const struct sandbox *sandbox, struct volume *volume, struct err *err);

/* Opens the volume of a sandbox that has none open. */
int sandbox_open_volume(struct sandbox *sandbox, struct volume **ret, struct err *err);

/* Makes the sandbox's volume the root of a machine, see machine_enter. */
int sandbox_enter(struct sandbox *sandbox, struct machine *machine, struct volume_mounts *ret_old,
                  struct err *err);

/* Computes what the sandbox counts for its owner from its info, before it is counted. */
void sandbox_charge(struct sandbox *sandbox);

/* Adds a sandbox that host_admit has counted to the host's table and records it; counts it out if
 * that fails. The caller calls sandbox_admit_flush before it makes the first resource. */
int sandbox_admit(struct sandbox *sandbox, struct err *err);

/* Waits until the records of all admitted sandboxes are on disk. So a volume without a record means
 * that the registry was lost, and is kept. */
int sandbox_admit_flush(struct host *host, struct err *err);

/* Fails with ERR_INVALID for a text that is not a name of a sandbox. */
int sandbox_check_name(const char *name, struct err *err);

/* Makes the empty volume of a sandbox from its template. */
int sandbox_make_volume(struct sandbox *sandbox, struct err *err);

/* Ends the creation. ERR_BUSY if the sandbox was destroyed in the meantime. */
int sandbox_finish_create(struct sandbox *sandbox, struct err *err);

/* Removes everything that a failed creation has made. */
void sandbox_undo_create(struct sandbox *sandbox);

/* Freezes the processes of a running sandbox while its files are copied, and thaws them (on false).
 * Does nothing where the storage backend takes atomic snapshots. */
int sandbox_quiesce(struct sandbox *sandbox, bool on, struct err *err);

/* Records a snapshot that was taken, on which the files are based from now on. The caller runs an
 * operation. */
int sandbox_record_snapshot(struct sandbox *sandbox, const struct snapshot_info *snapshot,
                            struct err *err);

/* Removes a temporary snapshot. Where that fails, the removal of the sandbox, which may be under
 * way, or the next start removes it. */
void sandbox_drop_temporary(struct sandbox *sandbox, const char *name);

/* Removes a snapshot. The caller runs an operation. */
int sandbox_drop_snapshot(struct sandbox *sandbox, const char *name, struct err *err);

/* Starts a machine on the sandbox's volume. */
int sandbox_boot(struct sandbox *sandbox, struct err *err);

/* Ends the machine, if there is one, and waits until nothing of it uses the files any more. Returns
 * false if that takes longer than the daemon may still run. The mounts of its root go to *ret_root
 * for a caller that need not wait for their sync; NULL: they are closed. */
bool sandbox_unboot(struct sandbox *sandbox, struct volume_mounts *ret_root);

/* Stops a sandbox that was in this state. The caller runs an operation, or no other thread can
 * begin one. */
int sandbox_halt(struct sandbox *sandbox, enum sandbox_state before, struct err *err);

/* Ends the machine of a sandbox that was in this state and records it as stopped. The caller runs
 * an operation. */
int sandbox_end_machine(struct sandbox *sandbox, enum sandbox_state before, struct err *err);

/* Boots a stopped sandbox and records it as active. The caller runs an operation, and has checked
 * that the host has room. */
int sandbox_boot_recorded(struct sandbox *sandbox, struct err *err);

/* Fails unless this machine can run one more sandbox. */
int sandbox_check_room(struct sandbox *sandbox, struct err *err);

/* Cleans up after a machine that ended unexpectedly, and records the sandbox as stopped. */
void sandbox_handle_loss(struct sandbox *sandbox);

/* Lists the sandboxes that the caller sees, oldest first, each with a reference, so that no lock is
 * held while a slow one is used. The list is for the user of the function to free. */
struct sandbox **host_list_sandboxes(struct host *host, const struct caller *caller,
                                     size_t *ret_count);

/* Returns PoolFull unless the storage has room for another sandbox. */
int host_check_space(struct host *host, struct err *err);

/* Closes the mounts of an old root and removes its tree (generation 0: none) in the background. */
void tree_cleaner_add(struct sandbox *sandbox, struct volume_mounts *mounts, uint32_t generation);

/* Removes what an ended machine has left in the background, and takes over its reference. */
void tree_cleaner_add_machine(struct tree_cleaner *tree_cleaner, struct machine *machine);

/* Closes mounts in the background, or now if many are waiting, and takes them. */
void tree_cleaner_add_mounts(struct tree_cleaner *tree_cleaner, struct volume_mounts *mounts);

/* Forgets the trees of a sandbox that is being destroyed with all its trees, so that this need not
 * wait for those of others. */
void tree_cleaner_cancel(struct sandbox *sandbox);

int tree_cleaner_start(struct tree_cleaner **ret, struct err *err);

/* Lets the thread end when nothing is left to do, at the deadline of clock_ms at the latest.
 * Returns whether everything was done. Accepts NULL. */
bool tree_cleaner_stop(struct tree_cleaner *tree_cleaner, uint64_t deadline_ms);

/* Frees a cleaner that has done everything. Accepts NULL. */
void tree_cleaner_free(struct tree_cleaner *tree_cleaner);
