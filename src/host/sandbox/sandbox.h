/* A sandbox as clients know it: files with a history, and a machine that runs on them while it is
 * active. It is recorded, so it outlives the daemon. (A throw-away machine, as of `holt run`, is
 * only a struct machine.) Reference counted.
 *
 * What may be done in which state, and the cause (err_cause_name) of a refusal; ROLLING is
 * RollbackInProgress, PAUSED SessionPaused, NO InvalidState:
 *
 *              creating  active  pausing  paused  stopped  rolling-back  failed
 *   exec       NO        yes     PAUSED   PAUSED  NO       ROLLING       NO
 *   turn       NO        yes     PAUSED   PAUSED  yes      ROLLING       NO
 *   snapshot   NO        yes     waits    yes     yes      ROLLING       NO
 *   fork       NO        yes     waits    yes     yes      ROLLING       NO
 *   rollback   NO        yes     PAUSED   PAUSED  yes      ROLLING       NO
 *   pause      NO        yes     PAUSED   PAUSED  NO       ROLLING       NO
 *   resume     NO        NO      waits    yes     NO       ROLLING       NO
 *   stop       NO        yes     waits    yes     yes      waits         yes
 *   start      NO        NO      NO       NO      yes      ROLLING       yes
 *
 * Destroy is possible in every state: it waits for what is going on and then wins. So is reading. A
 * failed sandbox says why in its refusals; a destroying one answers SessionDestroying to everything
 * but destroy (which joins) and reading; an unknown one SessionNotFound. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/sandbox/info.h"
#include "store/diff/diff.h"

struct err;
struct host;
struct process;
struct port_forward;
struct port_patience;
struct process_spec;
struct record;
struct sandbox;

struct sandbox_spec {
    const char *name;     /* NULL: none; unique, may be used wherever an id is */
    const char *template; /* NULL: the daemon's default */
    const char *runtime;  /* NULL: the daemon's default */
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
    const char *digest;                 /* of all else that was asked for, with a key */
    const char *metadata;               /* NULL: none; see sandbox_get_metadata */
    const struct sandbox_mount *mounts; /* checked, see host/sandbox/mount.h */
    size_t mount_count;
};

/* Makes a sandbox and starts it. The caller owns one reference. */
int sandbox_create(struct host *host, const struct sandbox_spec *spec, struct sandbox **ret,
                   struct err *err);

/* The same, but a sandbox that was asked for with the same key is joined, also while it is being
 * made; *ret_is_joined says so. ERR_INVALID when something else was asked for then. A key is known
 * for as long as its sandbox. */
int sandbox_create_once(struct host *host, const struct sandbox_spec *spec, struct sandbox **ret,
                        bool *ret_is_joined, struct err *err);

/* By id or name, with a reference for the caller, or ERR_NOT_FOUND. */
int sandbox_find(struct host *host, const char *id, struct sandbox **ret, struct err *err);

/* Accepts NULL. */
void sandbox_unref(struct sandbox *sandbox);

/* A copy of what is known now; the caller calls sandbox_info_done. With wants_space the storage is
 * asked what it holds, which may take a moment. */
void sandbox_get_info(struct sandbox *sandbox, bool wants_space, struct sandbox_info *ret);

/* A text of at most SANDBOX_METADATA_MAX bytes that a face of the daemon keeps with it, for the
 * caller to free; NULL: none. A fork has none but that it is born with. */
char *sandbox_get_metadata(struct sandbox *sandbox);
int sandbox_set_metadata(struct sandbox *sandbox, const char *metadata, struct err *err);

/* When its time is over (since 1970; 0: never), and what happens then. One that sleeps refuses
 * (SessionPaused): who has put it to sleep has said that it stays. */
int sandbox_set_expiry(struct sandbox *sandbox, uint64_t expires_ms, enum sandbox_action action,
                       struct err *err);

/* The same, but recorded with its next state, both or neither: for who is about to pause, stop,
 * resume or start it. */
int sandbox_plan_expiry(struct sandbox *sandbox, uint64_t expires_ms, enum sandbox_action action,
                        struct err *err);

/* All sandboxes that have all of these labels, oldest first. */
int sandbox_list(struct host *host, const struct label *labels, size_t label_count,
                 struct sandbox_info **ret, size_t *ret_count, struct err *err);

/* Starts a process; the caller owns one reference to it. ERR_EXISTS (ProcessExists) when its key
 * was used already: sandbox_find_key has that process. */
int sandbox_exec(struct sandbox *sandbox, const struct process_spec *spec, struct process **ret,
                 struct err *err);

/* The process of this sandbox with this id, with a reference. ERR_NOT_FOUND (ProcessNotFound), or
 * ERR_BUSY (ProcessEnded) for one that is over. */
int sandbox_find_process(struct sandbox *sandbox, const char *id, struct process **ret,
                         struct err *err);

/* What is known of a process, also of one that has ended a while ago, with a reference; by id or by
 * idempotency key. ERR_NOT_FOUND (ProcessNotFound). */
int sandbox_find_record(struct sandbox *sandbox, const char *id, struct record **ret,
                        struct err *err);
int sandbox_find_key(struct sandbox *sandbox, const char *key, struct record **ret,
                     struct err *err);

/* All of them, oldest first, each with a reference; the caller frees *ret. */
void sandbox_list_records(struct sandbox *sandbox, struct record ***ret, size_t *ret_count);

/* A process that a client is attached to keeps its sandbox from being idle. */
void sandbox_attach(struct sandbox *sandbox);

/* The client has gone. Its process (taken; NULL: none) ends with all that it started, unless it is
 * over or it is the daemon itself that goes. */
void sandbox_detach(struct sandbox *sandbox, struct process *process);

/* Forwards a port, see host/port/port.h; needs what exec needs. The sandbox must stay referenced
 * until the forward is closed. */
int sandbox_forward(struct sandbox *sandbox, uint16_t port, const char *listen,
                    struct port_forward **ret, struct err *err);

/* As port_probe, but one that is not active refuses. */
int sandbox_probe(struct sandbox *sandbox, uint16_t port, const char *http_path,
                  const struct port_patience *patience, struct err *err);

/* As port_dial, but one that is not active refuses. */
int sandbox_dial(struct sandbox *sandbox, uint16_t port, const struct port_patience *patience,
                 int *ret_fd, struct err *err);

int sandbox_pause(struct sandbox *sandbox, struct err *err);
int sandbox_resume(struct sandbox *sandbox, struct err *err);

/* Ends all processes and keeps the files; idempotent. */
int sandbox_stop(struct sandbox *sandbox, struct err *err);
int sandbox_start(struct sandbox *sandbox, struct err *err);

/* Removes it with all its snapshots; returns when it is gone. A second call joins the first. */
int sandbox_destroy(struct sandbox *sandbox, struct err *err);

/* The end of a turn: a snapshot named turn-NNNN. Prunes afterwards. */
int sandbox_turn(struct sandbox *sandbox, struct snapshot_info *ret, struct err *err);
int sandbox_snapshot(struct sandbox *sandbox, const char *name, enum snapshot_kind kind,
                     struct snapshot_info *ret, struct err *err);

/* Files become those of the snapshot, processes end; when it returns both has happened. Newer
 * snapshots stay unless they are to go too. */
int sandbox_rollback(struct sandbox *sandbox, const char *snapshot, bool wants_newer_pruned,
                     struct err *err);
int sandbox_remove_snapshot(struct sandbox *sandbox, const char *snapshot, struct err *err);

/* Oldest first; the caller frees *ret. */
int sandbox_list_snapshots(struct sandbox *sandbox, struct snapshot_info **ret, size_t *ret_count,
                           struct err *err);

/* Makes count new sandboxes with its files, as they are now (from NULL) or in a snapshot; template,
 * runtime, limits, labels and times are those of the original. notes (NULL: none) has one for each,
 * which is recorded with it. All or none. ret has room for count references. */
enum { FORK_MAX = 256 };
int sandbox_fork(struct sandbox *sandbox, const char *from, size_t count,
                 const char *const *metadata_list, struct sandbox **ret, struct err *err);

/* What differs between two of its states: snapshots, "" for the template, NULL for now. from NULL
 * means what the present files go back to (the last snapshot taken or rolled back to). */
struct sandbox_diff {
    const char *from, *to;
    struct diff_options options;
};
int sandbox_diff(struct sandbox *sandbox, const struct sandbox_diff *what, diff_fn each,
                 void *context, struct err *err);

/* Makes a template of its files as they are now. */
int sandbox_commit(struct sandbox *sandbox, const char *template, struct template_info *ret,
                   struct err *err);
