/* A sandbox as clients see it: a volume with snapshots, and a machine that runs on the volume while
 * the sandbox is active. The registry stores it, so it outlives the daemon. (A throw-away machine,
 * as of `holt run`, is only a struct machine.) Sandboxes are reference counted.
 *
 * The operations that each state allows, and the cause (err_cause_name) of an error: ROLLING is
 * RollbackInProgress, PAUSED is SessionPaused, NO is InvalidState.
 *
 *              creating  active  pausing  paused  stopped  rolling-back  failed  deep-paused
 *   exec       NO        yes     PAUSED   PAUSED  NO       ROLLING       NO      PAUSED
 *   turn       NO        yes     PAUSED   PAUSED  yes      ROLLING       NO      PAUSED
 *   snapshot   NO        yes     waits    yes     yes      ROLLING       NO      PAUSED
 *   fork       NO        yes     waits    yes     yes      ROLLING       NO      PAUSED
 *   rollback   NO        yes     PAUSED   PAUSED  yes      ROLLING       NO      PAUSED
 *   pause      NO        yes     PAUSED   PAUSED  NO       ROLLING       NO      PAUSED
 *   deep pause NO        yes     waits    yes     yes      ROLLING       NO      PAUSED
 *   resume     NO        NO      waits    yes     NO       ROLLING       NO      yes
 *   stop       NO        yes     waits    yes     yes      waits         yes     PAUSED
 *   start      NO        NO      NO       NO      yes      ROLLING       yes     yes
 *   update     NO        yes     waits    yes     yes      waits         yes     PAUSED
 *
 * Every state allows destroy, which waits for the running operation, and all reads. The errors of a
 * failed sandbox contain the reason of the failure. A sandbox that is being destroyed returns
 * SessionDestroying for everything but reads and a second destroy, which waits for the first. An
 * unknown id returns SessionNotFound. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "host/sandbox/info.h"
#include "host/view/permission.h"
#include "store/diff/diff.h"

struct err;
struct host;
struct net_layer;
struct process;
struct port_forward;
struct port_patience;
struct process_spec;
struct record;
struct sandbox;

struct sandbox_spec {
    const struct caller *caller; /* on whose behalf: gives the owner and the labels of its scope */
    const char *id;              /* NULL: a new one; no other sandbox has it */
    const char *name;            /* NULL: none; unique for its owner; valid wherever an id is */
    const char *template;        /* a word of the caller's; NULL: the daemon's default */
    const char *stored_template; /* instead: its name in the store; it was found for the caller */
    const char *runtime;         /* NULL: the daemon's default */
    struct sandbox_limits limits;
    uint64_t quota_bytes; /* 0: the daemon's default */
    const struct label *labels;
    size_t label_count;
    uint32_t snapshots_max; /* 0: the daemon's default */
    uint64_t ttl_ms;        /* 0: none */
    enum sandbox_action expire_action;
    uint64_t idle_timeout_ms;
    enum sandbox_action idle_action;
    const char *key;                    /* NULL: none; see sandbox_create_once */
    const char *digest;                 /* of the rest of the request; set together with the key */
    const char *metadata;               /* NULL: none; see sandbox_get_metadata */
    const struct net_layer *network;    /* NULL: the daemon's default; see network.h */
    const struct sandbox_mount *mounts; /* checked with sandbox_mounts_check */
    size_t mount_count;
    const char *codebase;      /* a word of the caller's; NULL: none */
    const char *codebase_path; /* where the sandbox sees it; NULL: CODEBASE_MOUNT_POINT */
    struct permission_request permissions; /* rules for the paths of the codebase */
    const char *const *secrets;            /* names; of the caller's owner */
    size_t secret_count;

    /* Writes the first files of the volume, which nothing uses yet; NULL: it stays empty. */
    int (*fill)(struct sandbox *sandbox, void *context, struct err *err);
    void *fill_context;
};

/* Creates and starts a sandbox. The caller owns one reference. */
int sandbox_create(struct host *host, const struct sandbox_spec *spec, struct sandbox **ret,
                   struct err *err);

/* Like sandbox_create, but idempotent: returns the existing sandbox of the same key and sets
 * *ret_is_joined, waiting if it is still being created. ERR_INVALID if that request had a
 * different digest. A key is valid as long as its sandbox. */
int sandbox_create_once(struct host *host, const struct sandbox_spec *spec, struct sandbox **ret,
                        bool *ret_is_joined, struct err *err);

/* Finds a sandbox that the caller sees and takes a reference: by id, name or the start of its
 * id ("sb-" and at least four digits). ERR_NOT_FOUND, with one text for sandboxes that do
 * not exist and those that the caller does not see, or ERR_INVALID if the word stands for
 * several. */
int sandbox_find(struct host *host, const struct caller *caller, const char *word,
                 struct sandbox **ret, struct err *err);

/* Takes another reference. */
struct sandbox *sandbox_ref(struct sandbox *sandbox);

/* Accepts NULL. */
void sandbox_unref(struct sandbox *sandbox);
DEFINE_CLEANUP(sandbox_unref, struct sandbox *);

/* Return the host, the id and the owner, which never change. */
struct host *sandbox_host(const struct sandbox *sandbox);
const char *sandbox_id(const struct sandbox *sandbox);
const char *sandbox_owner(const struct sandbox *sandbox);

/* Returns the generation of its files: a rollback begins a new one. */
uint32_t sandbox_generation(struct sandbox *sandbox);

/* Copies the present info; the caller frees it with sandbox_info_done. wants_space also queries
 * the storage backend for the space used, which may be slow. */
void sandbox_get_info(struct sandbox *sandbox, bool wants_space, struct sandbox_info *ret);

/* Text of at most SANDBOX_METADATA_MAX bytes that a front end stores with the sandbox. The
 * caller frees the result; NULL: none. A fork does not inherit it. */
char *sandbox_get_metadata(struct sandbox *sandbox);
int sandbox_set_metadata(struct sandbox *sandbox, const char *metadata, struct err *err);

/* Sets the expiry time (ms since 1970; 0: never) and the action to take then. A paused or
 * stopped sandbox returns SessionPaused: the client that paused it chose to keep it. */
int sandbox_set_expiry(struct sandbox *sandbox, uint64_t expires_ms, enum sandbox_action action,
                       struct err *err);

/* Like sandbox_set_expiry, but stored together with the next state change, atomically: for
 * callers that are about to pause, stop, resume or start the sandbox. */
int sandbox_plan_expiry(struct sandbox *sandbox, uint64_t expires_ms, enum sandbox_action action,
                        struct err *err);

/* A change of properties; what is 0, NULL or not set stays. */
struct sandbox_change {
    const struct caller *caller; /* whose scope the labels keep */
    const char *name;            /* "": none */
    const struct label *labels;
    size_t label_count;
    const char *const *dropped_labels; /* keys */
    size_t dropped_count;
    struct sandbox_limits limits;
    uint64_t quota_bytes;
    bool has_ttl, has_idle_timeout, has_snapshots_max;
    uint64_t ttl_ms; /* from now; 0: never */
    uint64_t idle_timeout_ms;
    const enum sandbox_action *expire_action;
    const enum sandbox_action *idle_action;
    uint32_t snapshots_max;
    bool has_mounts;                    /* these replace all, while the sandbox is stopped */
    const struct sandbox_mount *mounts; /* checked with sandbox_mounts_check */
    size_t mount_count;
};

/* Makes all changes or none, and records them. A running machine gets the limits of memory, CPU and
 * processes at once; that of descriptors applies to new processes. */
int sandbox_update(struct sandbox *sandbox, const struct sandbox_change *change, struct err *err);

/* Adds labels to an info that no other thread uses; a known key gets the new value. */
int sandbox_labels_set(struct sandbox_info *info, const struct label *labels, size_t count,
                       struct err *err);

/* Lists the sandboxes that the caller sees and that have all of these labels, oldest first. */
void sandbox_list(struct host *host, const struct caller *caller, const struct label *labels,
                  size_t label_count, struct sandbox_info **ret, size_t *ret_count);

/* Chooses the tier of a process: the one asked for (NULL: none), the sandbox's own runtime or
 * least, which is the weakest that the caller permits. *ret is NULL for the sandbox's own.
 * ERR_INVALID for an unknown one, ERR_DENIED if the one asked for is weaker than least. */
int sandbox_choose_tier(struct sandbox *sandbox, const char *asked, const char *least,
                        const char **ret, struct err *err);

/* Starts a process; the caller owns one reference to it. ERR_EXISTS (ProcessExists) if its key
 * is in use: sandbox_find_record_by_key returns that process. */
int sandbox_exec(struct sandbox *sandbox, const struct process_spec *spec, struct process **ret,
                 struct err *err);

/* Finds a running process by id and takes a reference. ERR_NOT_FOUND (ProcessNotFound), or
 * ERR_BUSY (ProcessEnded) if it has ended. */
int sandbox_find_process(struct sandbox *sandbox, const char *id, struct process **ret,
                         struct err *err);

/* Finds the record of a process, running or ended, by id or idempotency key, and takes a
 * reference. ERR_NOT_FOUND (ProcessNotFound). */
int sandbox_find_record(struct sandbox *sandbox, const char *id, struct record **ret,
                        struct err *err);
int sandbox_find_record_by_key(struct sandbox *sandbox, const char *key, struct record **ret,
                               struct err *err);

/* Lists the records of all processes, oldest first, each with a reference; the caller frees
 * *ret. */
void sandbox_list_records(struct sandbox *sandbox, struct record ***ret, size_t *ret_count);

/* Counts a client that is attached to a process: the sandbox is not idle until sandbox_detach. */
void sandbox_attach(struct sandbox *sandbox);

/* Undoes sandbox_attach. Kills the client's process (reference taken; NULL: none) with its
 * children, unless it has ended or the daemon is shutting down. */
void sandbox_detach(struct sandbox *sandbox, struct process *process);

/* Opens a port forward (see host/port/port.h) in the states that allow exec. The caller keeps
 * its reference to the sandbox until the forward is closed. */
int sandbox_forward(struct sandbox *sandbox, uint16_t port, const char *listen,
                    struct port_forward **ret, struct err *err);

/* Like port_probe, in the states that allow exec. */
int sandbox_probe(struct sandbox *sandbox, uint16_t port, const char *http_path,
                  const struct port_patience *patience, struct err *err);

/* Like port_find_listener, in the states that allow exec. */
enum port_listener;
int sandbox_find_listener(struct sandbox *sandbox, const char *process_id, uint16_t port,
                          enum port_listener *ret, struct err *err);

/* Like port_dial, in the states that allow exec. */
int sandbox_dial(struct sandbox *sandbox, uint16_t port, const struct port_patience *patience,
                 int *ret_fd, struct err *err);

/* Freezes all processes. */
int sandbox_pause(struct sandbox *sandbox, struct err *err);

/* Waits for running tool calls, for as long as pause.drain says, then freezes all processes. Fails
 * with ToolsInFlight if a tool call is still running then, and with -ECANCELED if the peer of
 * watch_fd (-1: none) hangs up. No tool call begins meanwhile. */
int sandbox_pause_drained(struct sandbox *sandbox, int watch_fd, struct err *err);

/* Counts a tool call that begins, or fails while a pause or the end of the daemon waits for the
 * last one. */
int sandbox_tool_began(struct sandbox *sandbox, struct err *err);

/* Counts the end of a tool call that had begun. */
void sandbox_tool_ended(struct sandbox *sandbox);

/* Does the same before sandbox_deep_pause (host/backup/deep_pause.h). */
int sandbox_deep_pause_drained(struct sandbox *sandbox, int watch_fd, struct err *err);

/* Continues the processes, or fetches a deep-paused sandbox and starts it. */
int sandbox_resume(struct sandbox *sandbox, struct err *err);

/* Ends all processes and keeps the files. Idempotent. */
int sandbox_stop(struct sandbox *sandbox, struct err *err);
int sandbox_start(struct sandbox *sandbox, struct err *err);

/* Removes the sandbox with all its snapshots and returns when they are gone. A second call waits
 * for the first. */
int sandbox_destroy(struct sandbox *sandbox, struct err *err);

/* Takes the snapshot turn-NNNN at the end of a turn, then prunes old turn and tool snapshots. */
int sandbox_turn(struct sandbox *sandbox, struct snapshot_info *ret, struct err *err);
int sandbox_snapshot(struct sandbox *sandbox, const char *name, enum snapshot_kind kind,
                     struct snapshot_info *ret, struct err *err);

/* Restores the files of a snapshot and ends all processes before it returns. Newer snapshots are
 * kept unless wants_newer_pruned. */
int sandbox_rollback(struct sandbox *sandbox, const char *snapshot, bool wants_newer_pruned,
                     struct err *err);
int sandbox_remove_snapshot(struct sandbox *sandbox, const char *snapshot, struct err *err);

/* Sets what people call a snapshot, at most SNAPSHOT_NOTE_MAX bytes. */
int sandbox_note_snapshot(struct sandbox *sandbox, const char *snapshot, const char *note,
                          struct snapshot_info *ret, struct err *err);

/* Lists the snapshots, oldest first; the caller frees *ret. */
int sandbox_list_snapshots(struct sandbox *sandbox, struct snapshot_info **ret, size_t *ret_count,
                           struct err *err);

/* Creates count sandboxes with the present files (from NULL) or those of a snapshot, and the
 * template, runtime, limits, labels and times of the original: all or none. metadata_list (NULL:
 * none) has one entry per fork. ret has room for count references. */
enum { FORK_MAX = 256 };
struct fork_spec {
    const struct caller *caller; /* whose scope the labels keep; the owner is the original's */
    const char *from;            /* NULL: the present files */
    size_t count;
    const char *const *metadata_list;
    const char *name;           /* NULL: none; several forks are NAME-1, NAME-2, ... */
    const struct label *labels; /* in addition to those of the original */
    size_t label_count;
    const struct net_layer *network; /* NULL: as the original */
    bool has_ttl;                    /* else as the original */
    uint64_t ttl_ms;
    enum sandbox_action expire_action;
    struct permission_request permissions; /* instead of those of the original */
};
int sandbox_fork(struct sandbox *sandbox, const struct fork_spec *spec, struct sandbox **ret,
                 struct err *err);

/* Lists the differences between two states: a snapshot, "" for the template, NULL for the
 * present files. A NULL `from` is the last snapshot taken or rolled back to, unless to_sandbox is
 * set. */
struct sandbox_diff {
    const char *from, *to;
    bool is_from_codebase; /* `from` is the version that the codebase derives from, and all other
                              files are equal */
    struct diff_options options;
    struct sandbox *to_sandbox; /* that `to` belongs to, with the same template; NULL: the same */
};
int sandbox_diff(struct sandbox *sandbox, const struct sandbox_diff *what, diff_fn each,
                 void *context, struct err *err);

/* Makes the codebase of the sandbox, or one path of it (absolute, or relative to its top; "": all),
 * that of its base again, and ends its processes. */
int sandbox_discard_codebase(struct sandbox *sandbox, const char *path, struct err *err);

/* Creates a template from the present files. */
int sandbox_commit(struct sandbox *sandbox, const char *template, struct template_info *ret,
                   struct err *err);

/* Returns whether the sandbox can reach anything beyond its own loopback. */
bool sandbox_has_egress(struct sandbox *sandbox);
