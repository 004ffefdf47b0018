/* What the files about sandboxes share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/lock.h"
#include "host/sandbox/sandbox.h"

struct tool_archive;
struct tree_cleaner;
struct volume;
struct volume_mounts;

/* What may go on with a sandbox; one at a time but for exec. */
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
    OPERATIONS
};

struct sandbox {
    struct host *host;
    atomic_int refs;
    atomic_int lookers;   /* tools that are processes, of clients that may only look */
    struct sandbox *next; /* in the host's table, which holds a reference; under the host's lock */

    struct lock lock; /* over all below */
    pthread_cond_t changed;
    struct sandbox_info info;
    enum operation operation; /* what goes on now; its thread alone uses volume and machine */
    bool is_still;            /* its files are being copied: nothing is to start now */
    bool is_gone;             /* destroyed, or never came to be */
    unsigned starting;        /* processes on their way into the machine */
    unsigned attached;        /* clients that listen to a process */
    unsigned pins;            /* who else uses the volume, see sandbox_pin */
    struct volume *volume;
    struct machine *machine; /* NULL: none runs */
    struct service *services;
    struct process_table *process_table; /* its processes; since it is in the table */
    struct shell *shells;                /* see shell_internal.h */
    struct tool_archive *tools; /* what is kept of tool calls; NULL: nobody has asked yet */
};

struct sandbox *sandbox_new(struct host *host);
struct sandbox *sandbox_ref(struct sandbox *sandbox);

/* The one that was asked for with this key, with a reference, or NULL. */
struct sandbox *sandbox_with_key(struct host *host, const char *key);

/* Waits until it is neither being made nor destroyed. Whether it is there then. */
bool sandbox_wait_made(struct sandbox *sandbox);

/* Puts it into the table unless its name or key is taken, and takes it out again, where it is. */
int sandbox_enter_table(struct sandbox *sandbox, struct err *err);
void sandbox_leave_table(struct sandbox *sandbox);

/* Waits for what is going on, and begins this unless the state forbids it; the state is then in
 * *ret_state. */
int sandbox_begin(struct sandbox *sandbox, enum operation operation, enum sandbox_state *ret_state,
                  struct err *err);

/* What was begun is over and the sandbox in this state, unless it is being destroyed. */
void sandbox_finish(struct sandbox *sandbox, enum sandbox_state state);

/* The state that it shows while the operation goes on, and no process is on its way in any more. */
void sandbox_set_state(struct sandbox *sandbox, enum sandbox_state state);
void sandbox_wait_starting(struct sandbox *sandbox);

/* Its machine, with a reference, if a process could be started in it now. */
int sandbox_borrow_machine(struct sandbox *sandbox, struct machine **ret, struct err *err);

/* Lets something into its machine (referenced), which is not moved or frozen before it is said to
 * be there. */
int sandbox_pass(struct sandbox *sandbox, struct machine **ret, struct err *err);
void sandbox_passed(struct sandbox *sandbox, struct machine *machine);

/* Writes what is known of it to the registry, with this state (or that it is being destroyed). */
int sandbox_record(struct sandbox *sandbox, enum sandbox_state state, struct err *err);

/* The same with several (at least one), all or none. */
int sandbox_record_all(struct sandbox *const *list, size_t count, enum sandbox_state state,
                       struct err *err);

/* Its volume, for use beside whatever goes on; NULL when there is none. It stays until unpinned. */
struct volume *sandbox_pin(struct sandbox *sandbox);
void sandbox_unpin(struct sandbox *sandbox);

/* Opens its volume, which it does not have open. */
int sandbox_open_volume(struct sandbox *sandbox, struct volume **ret, struct err *err);

/* Moves a machine to the sandbox's files: see machine_enter. */
int sandbox_enter(const struct sandbox *sandbox, struct machine *machine,
                  struct volume_mounts *ret_old, struct err *err);

/* Gives a sandbox that has a volume a machine on it, and undoes that. */
int sandbox_boot(struct sandbox *sandbox, struct err *err);
void sandbox_unboot(struct sandbox *sandbox);

/* Stops one that was in this state, within an operation or when nobody else can begin one. */
int sandbox_halt(struct sandbox *sandbox, enum sandbox_state before, struct err *err);

/* The end of a machine that was not asked for. */
void sandbox_note_loss(struct sandbox *sandbox);

/* All sandboxes, oldest first, each with a reference, so that no lock is held while one of them
 * takes its time; the caller frees the list. */
struct sandbox **host_list_sandboxes(struct host *host, size_t *ret_count);

/* Checks that the storage has room for another sandbox. */
int host_check_space(struct host *host, struct err *err);

/* Closes the mounts of an old root and removes the tree behind it (generation 0: none), later. */
void tree_cleaner_add(struct sandbox *sandbox, struct volume_mounts *mounts, uint32_t generation);
int tree_cleaner_start(struct tree_cleaner **ret, struct err *err);
void tree_cleaner_stop(struct tree_cleaner *tree_cleaner);
