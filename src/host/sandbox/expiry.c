// SPDX-License-Identifier: Apache-2.0
/* Duties and the threads that perform them: see expiry.h. */
#include "host/sandbox/expiry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/backup/deep_pause.h"
#include "host/machine/machine_internal.h"
#include "host/observe/event_internal.h"
#include "host/process/processes.h"
#include "host/process/service.h"
#include "host/process/table.h"
#include "host/sandbox/idle.h"
#include "host/sandbox/sandbox_internal.h"

#define IDLE_MAX_MS INT64_C(0x3fffffffffffffff)

enum {
    SWEEP_AGAIN_MS = 1000,
    REST_MAX_MS = 60000,
    ACTIONS_MAX = 256,
    ACTION_STACK_BYTES = 512 * 1024,
    GATHER_MIN_MS = 20, /* batches wakeups: a round visits every sandbox, and every ended process
                           wakes the thread */
    GATHER_MAX_MS = 200,
    ROUND_SHARE = 20, /* a round takes one part in so many of the time */
};

struct expiry {
    struct host *host;
    struct worker worker;
    unsigned actions; /* under way; under the worker's lock */
};

/* What the expiry thread has to do with a sandbox. */
enum duty {
    DUTY_NONE,
    DUTY_HANDLE_LOSS,
    DUTY_KILL,
    DUTY_PAUSE,
    DUTY_STOP,
    DUTY_DEEP_PAUSE,
};

/* A duty that a thread of its own performs. */
struct action {
    struct expiry *expiry;
    struct sandbox *sandbox; /* referenced */
    enum duty duty;
};

static bool is_machine_gone(struct machine *machine)
{
    bool is_gone;

    lock_take(&machine->lock);
    is_gone = machine->is_gone;
    lock_release(&machine->lock);
    return is_gone;
}

static enum duty duty_of_action(enum sandbox_action action)
{
    static const enum duty duties[] = {
        [ACTION_KILL] = DUTY_KILL,
        [ACTION_PAUSE] = DUTY_PAUSE,
        [ACTION_STOP] = DUTY_STOP,
        [ACTION_DEEP_PAUSE] = DUTY_DEEP_PAUSE,
    };

    return duties[action];
}

/* Returns whether no time is left; otherwise lowers *wait_ms to what is left. */
static bool duty_is_due(int64_t left_ms, uint64_t *wait_ms)
{
    if (left_ms <= 0)
        return true;
    if ((uint64_t)left_ms < *wait_ms)
        *wait_ms = (uint64_t)left_ms;
    return false;
}

static int64_t idle_left_ms(const struct sandbox *sandbox, int64_t now)
{
    uint64_t timeout_ms = sandbox->info.idle_timeout_ms;

    return (timeout_ms < IDLE_MAX_MS ? (int64_t)timeout_ms : IDLE_MAX_MS) -
           (now - sandbox->times.active);
}

/* Locked. */
static enum duty duty_find(struct sandbox *sandbox, int64_t now, uint64_t *wait_ms)
{
    struct sandbox_info *info = &sandbox->info;
    bool is_on = info->state == SANDBOX_ACTIVE || info->state == SANDBOX_PAUSED;

    if (sandbox->operation == OPERATION_CREATE || info->state == SANDBOX_DESTROYING ||
        sandbox->is_expiring)
        return DUTY_NONE;
    /* A kill need not wait for an operation, which may wait for a guest that does not answer. */
    if (sandbox->operation != OPERATION_NONE &&
        !(info->expires_ms && info->expire_action == ACTION_KILL))
        return DUTY_NONE;
    if (sandbox->operation != OPERATION_NONE)
        return duty_is_due(sandbox->times.expires - now, wait_ms) ? DUTY_KILL : DUTY_NONE;
    if (is_on && sandbox->machine && is_machine_gone(sandbox->machine))
        return DUTY_HANDLE_LOSS;
    if (info->expires_ms && (info->expire_action == ACTION_KILL || info->state == SANDBOX_ACTIVE) &&
        duty_is_due(sandbox->times.expires - now, wait_ms))
        return duty_of_action(info->expire_action);
    if (info->idle_timeout_ms && sandbox->attached == 0 && sandbox->starting == 0 &&
        !sandbox->idle.is_working &&
        (info->state == SANDBOX_ACTIVE || (is_on && info->idle_action == ACTION_KILL)) &&
        duty_is_due(idle_left_ms(sandbox, now), wait_ms))
        return duty_of_action(info->idle_action);
    return DUTY_NONE;
}

/* The processes end because their sandbox has used up its time, which counts as a quota. */
static void sandbox_set_quota_killer(struct sandbox *sandbox)
{
    lock_take(&sandbox->lock);
    sandbox_set_killer(sandbox, KILLER_QUOTA);
    lock_release(&sandbox->lock);
}

/* Locked. */
static bool sandbox_is_expired(const struct sandbox *sandbox)
{
    return sandbox->info.expires_ms && sandbox->times.expires <= clock_boot_ms();
}

/* Emits the event that says which time is over and which action follows. */
static void expiry_emit(struct sandbox *sandbox, enum duty duty)
{
    static const enum sandbox_action actions[] = {
        [DUTY_KILL] = ACTION_KILL,
        [DUTY_PAUSE] = ACTION_PAUSE,
        [DUTY_STOP] = ACTION_STOP,
        [DUTY_DEEP_PAUSE] = ACTION_DEEP_PAUSE,
    };
    bool is_old;

    lock_take(&sandbox->lock);
    is_old = sandbox_is_expired(sandbox);
    lock_release(&sandbox->lock);
    sandbox_event(sandbox, EVENT_SANDBOX_EXPIRED,
                  json_pack("{s:s, s:s}", "time", is_old ? "ttl" : "idle", "action",
                            sandbox_action_name(actions[duty])));
}

/* A sandbox whose time is over does not go on running: one that cannot be moved to the storage is
 * stopped, with the reason. */
static void deep_pause_or_stop(struct sandbox *sandbox)
{
    struct err err = { 0 }, ignored;

    if (sandbox_deep_pause(sandbox, &err) == 0)
        return;
    (void)sandbox_stop(sandbox, &ignored);
    lock_take(&sandbox->lock);
    if (sandbox->info.state == SANDBOX_STOPPED && !sandbox->info.reason[0])
        (void)snprintf(sandbox->info.reason, sizeof(sandbox->info.reason), "%.200s", err.msg);
    lock_release(&sandbox->lock);
}

static void duty_perform(struct sandbox *sandbox, enum duty duty)
{
    struct err err = { 0 };

    if (duty != DUTY_NONE && duty != DUTY_HANDLE_LOSS)
        expiry_emit(sandbox, duty);

    if (duty == DUTY_HANDLE_LOSS) {
        sandbox_handle_loss(sandbox);
        sandbox_finish(sandbox, SANDBOX_STOPPED);
    } else if (duty == DUTY_KILL) {
        sandbox_set_quota_killer(sandbox);
        (void)sandbox_destroy(sandbox, &err);
    } else if (duty != DUTY_NONE) {
        /* An expiry acts once: a client that resumes the sandbox wants it to run. */
        lock_take(&sandbox->lock);
        if (sandbox_is_expired(sandbox))
            sandbox_expire_at(sandbox, 0);
        lock_release(&sandbox->lock);
        if (duty == DUTY_DEEP_PAUSE)
            deep_pause_or_stop(sandbox);
        else
            (void)(duty == DUTY_PAUSE ? sandbox_pause(sandbox, &err) : sandbox_stop(sandbox, &err));
    }
}

static bool action_count_in(struct expiry *expiry)
{
    lock_scope(&expiry->worker.lock);

    if (expiry->actions >= ACTIONS_MAX)
        return false;
    expiry->actions++;
    return true;
}

/* The expiry may be freed once the last action is counted out. */
static void action_count_out(struct expiry *expiry)
{
    lock_scope(&expiry->worker.lock);

    expiry->actions--;
    expiry->worker.is_woken = true;
    cond_broadcast(&expiry->worker.changed);
}

static void sandbox_set_expiring(struct sandbox *sandbox, bool is_expiring)
{
    lock_take(&sandbox->lock);
    sandbox->is_expiring = is_expiring;
    lock_release(&sandbox->lock);
}

static void action_main(void *argument)
{
    struct action action = *(struct action *)argument;

    free(argument);
    duty_perform(action.sandbox, action.duty);
    sandbox_set_expiring(action.sandbox, false);
    sandbox_unref(action.sandbox);
    action_count_out(action.expiry);
}

/* Locked. Begins a stop operation if the machine is lost, so that no other operation starts. */
static void duty_claim(struct sandbox *sandbox, enum duty duty)
{
    struct sandbox_info *info = &sandbox->info;

    sandbox->is_expiring = true;
    if (duty != DUTY_HANDLE_LOSS)
        return;
    sandbox->operation = OPERATION_STOP;
    info->state = SANDBOX_STOPPED;
    (void)snprintf(info->reason, sizeof(info->reason), "%.200s", sandbox->machine->failure.msg);
}

/* Starts a thread for the duty that was claimed; without one, the expiry thread performs it. */
static void action_start(struct expiry *expiry, struct sandbox *sandbox, enum duty duty)
{
    struct action *action = xcalloc(1, sizeof(*action));

    *action = (struct action){ expiry, sandbox_ref(sandbox), duty };
    if (thread_start_detached("holt-expire", ACTION_STACK_BYTES, action_main, action) < 0)
        action_main(action);
}

/* Finds out what is to be done with a sandbox and starts it. When too many actions are under way,
 * the end of one wakes the expiry thread. */
static void duty_start(struct expiry *expiry, struct sandbox *sandbox, int64_t now,
                       uint64_t *wait_ms)
{
    enum duty duty;

    lock_take(&sandbox->lock);
    duty = duty_find(sandbox, now, wait_ms);
    lock_release(&sandbox->lock);
    if (duty == DUTY_NONE || !action_count_in(expiry))
        return;
    lock_take(&sandbox->lock);
    duty = duty_find(sandbox, now, wait_ms);
    if (duty != DUTY_NONE)
        duty_claim(sandbox, duty);
    lock_release(&sandbox->lock);
    if (duty != DUTY_NONE)
        action_start(expiry, sandbox, duty);
    else
        action_count_out(expiry);
}

static void sandbox_sweep(struct sandbox *sandbox, uint64_t *wait_ms)
{
    struct machine *machine, *second;

    lock_take(&sandbox->lock);
    machine = sandbox->machine ? machine_ref(sandbox->machine) : NULL;
    second = sandbox->second ? machine_ref(sandbox->second) : NULL;
    lock_release(&sandbox->lock);
    if (machine && process_sweep(machine) && *wait_ms > SWEEP_AGAIN_MS)
        *wait_ms = SWEEP_AGAIN_MS;
    if (second && process_sweep(second) && *wait_ms > SWEEP_AGAIN_MS)
        *wait_ms = SWEEP_AGAIN_MS;
    machine_unref(second);
    if (machine) {
        file_pool_prune(&machine->files, clock_ms());
        file_pool_prune(&machine->tools, clock_ms());
    }
    machine_unref(machine);
}

static void sandbox_tend(struct expiry *expiry, struct sandbox *sandbox, int64_t now,
                         uint64_t *wait_ms)
{
    sandbox_correct_times(sandbox);
    idle_look(sandbox, now, wait_ms);
    duty_start(expiry, sandbox, now, wait_ms);
    sandbox_sweep(sandbox, wait_ms);
    services_prune(sandbox);
    process_table_expire(sandbox->process_table, now, wait_ms);
}

/* Visits every sandbox and returns the milliseconds until the next round. */
static uint64_t expiry_round(struct expiry *expiry)
{
    int64_t now = clock_boot_ms();
    uint64_t wait_ms = REST_MAX_MS;
    size_t count;
    cleanup_free struct sandbox **list = host_list_sandboxes(expiry->host, &caller_root, &count);

    for (size_t i = 0; i < count; i++) {
        sandbox_tend(expiry, list[i], now, &wait_ms);
        sandbox_unref(list[i]);
    }
    return wait_ms;
}

static uint64_t gather_ms(uint64_t round_ms)
{
    if (round_ms > GATHER_MAX_MS / ROUND_SHARE)
        return GATHER_MAX_MS;
    return round_ms > GATHER_MIN_MS / ROUND_SHARE ? round_ms * ROUND_SHARE : GATHER_MIN_MS;
}

static void expiry_main(void *argument)
{
    struct expiry *expiry = argument;
    uint64_t wait_ms, began_ms;

    do {
        began_ms = clock_ms();
        wait_ms = expiry_round(expiry);
    } while (worker_rest(&expiry->worker, wait_ms, gather_ms(clock_ms() - began_ms)));
}

struct expiry *expiry_new(struct host *host)
{
    struct expiry *expiry = xcalloc(1, sizeof(*expiry));

    expiry->host = host;
    worker_init(&expiry->worker, LOCK_EXPIRY);
    return expiry;
}

int expiry_start(struct expiry *expiry, struct err *err)
{
    int r = thread_start(&expiry->worker.thread, "holt-expiry", expiry_main, expiry);

    return r < 0 ? err_sys(err, r, "start the expiry thread") : 0;
}

void expiry_wake(struct expiry *expiry)
{
    worker_wake(&expiry->worker);
}

bool expiry_stop(struct expiry *expiry, uint64_t deadline_ms)
{
    struct worker *worker = &expiry->worker;

    worker_stop(worker);
    lock_scope(&worker->lock);
    while (expiry->actions > 0 && cond_wait_until(&worker->changed, &worker->lock, deadline_ms))
        ;
    return expiry->actions == 0;
}

void expiry_free(struct expiry *expiry)
{
    worker_destroy(&expiry->worker);
    free(expiry);
}
