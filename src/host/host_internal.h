/* What the files of the host share. Lock order: host table -> machine; the reactor's timers come
 * before a machine. No lock is held while waiting for a guest or for storage. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "host/channel.h"
#include "host/host.h"
#include "host/machine.h"
#include "host/process.h"
#include "host/reactor.h"
#include "runtime/runtime.h"
#include "store/template.h"
#include "wire/frame.h"

struct cgroup_root;
struct pool;
struct volume;

enum machine_state {
    MACHINE_BOOTING, /* holt-init makes a blank of itself */
    MACHINE_BLANK,   /* waits for a root */
    MACHINE_WARM,    /* has one, and waits in the pool for somebody who wants that */
    MACHINE_ACTIVE,  /* has a root, or is on the way to it */
    MACHINE_FAILED,  /* why is in `failure` */
    MACHINE_ENDED,   /* destroyed */
};

struct machine {
    struct host *host;
    char id[RUNTIME_ID_MAX];
    atomic_int refs;
    unsigned uid_slot;
    struct runtime_guest guest;
    struct channel channel;               /* holds a reference until it is gone */
    char template[TEMPLATE_NAME_MAX + 1]; /* of its volume; "" before it has one */
    struct volume *volume;
    struct volume *old_volume; /* of a warm sandbox that was wanted with another template */
    struct machine *next;      /* in the host's table, or in the reaper's queue */

    pthread_mutex_t lock; /* over all below */
    pthread_cond_t changed;
    enum machine_state state;
    struct err failure;
    bool is_gone; /* nothing comes from the guest any more */
    struct process *processes;
    uint32_t last_process;
};

struct host {
    struct store *store;
    struct cgroup_root *cgroups;
    struct runtime *runtime;
    const struct runtime_ops *default_runtime;
    char *default_template;
    struct sandbox_limits default_limits;
    struct reactor *reactor;
    struct pool *pool;
    uint64_t started_ms;
    uint32_t sandboxes_max;

    pthread_mutex_t lock; /* over all below */
    pthread_cond_t changed;
    char warm_template[TEMPLATE_NAME_MAX + 1]; /* what the last create wanted, and the next may */
    struct machine *sandboxes;                 /* those that can be found by id */
    uint32_t active; /* created and not destroyed; at most sandboxes_max */
    uint32_t live;   /* all that hold resources: also warm ones and those being reaped */
    struct machine *reap_queue;
    uint32_t reaping; /* ended, but not yet undone */
    bool is_stopping;
    pthread_t reaper;
    uint8_t *uid_slots; /* one byte each: taken or not */
    unsigned next_uid_slot;
};

/* Starts a blank, which is in nobody's table yet. */
int machine_start_blank(struct host *host, const struct runtime_ops *ops, struct machine **ret,
                        struct err *err);

/* Waits until the sandbox has come to this state, BLANK or WARM, or says why it cannot. */
int machine_wait(struct machine *machine, enum machine_state state, struct err *err);

/* Gives it a new volume on the template as its root; whether that worked comes as a frame. */
int machine_furnish(struct machine *machine, const char *template, struct err *err);

/* Lets go of the volume of a sandbox that nobody will use. */
void machine_drop_volume(struct machine *machine);

struct machine *machine_ref(struct machine *machine);

/* Releases everything it holds; called by the reaper, which owns the last reference. */
void machine_reap(struct machine *machine);

/* Queues a killed sandbox for the reaper, which takes over the caller's reference. */
void host_reap_later(struct host *host, struct machine *machine);

/* Counts a sandbox in, unless there are as many as there may be, and out again. */
int host_admit(struct host *host, struct err *err);
void host_dismiss(struct host *host);

/* Takes and returns a range of 65,536 uids: the slot, or -ENOSPC. */
int host_take_uids(struct host *host);
void host_return_uids(struct host *host, unsigned slot);
uid_t host_first_uid(unsigned slot);

/* A frame about one process, on the reactor's thread. False: unacceptable. */
bool process_frame(struct machine *machine, const struct frame *frame);

/* The guest is gone, or could not take its root: every process that has no end gets one now. The
 * sandbox is locked. */
void process_end_all(struct machine *machine);

/* Takes every process off the sandbox's list; afterwards only their readers know them. */
void process_drop_all(struct machine *machine);

/* The warm pool. */
int pool_start(struct host *host, const struct runtime_ops *ops, uint32_t size, struct pool **ret,
               struct err *err);

/* A warm sandbox with this template if there is one, else with another: NULL when the pool is
 * empty. */
struct machine *pool_take(struct pool *pool, const struct runtime_ops *ops, const char *template);

/* Ends those that hold the template open. */
void pool_drop_template(struct pool *pool, const char *template);
uint32_t pool_ready(struct pool *pool);

/* One that waited has died. */
void pool_note_death(struct pool *pool);

/* Ends the thread and all that wait; the pool itself must outlive the reactor. Both accept NULL. */
void pool_stop(struct pool *pool);
void pool_free(struct pool *pool);
