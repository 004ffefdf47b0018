// SPDX-License-Identifier: Apache-2.0
/* The expiry thread: ends expired and idle sandboxes, detects machines that ended unexpectedly,
 * and cleans up ended processes. */
#include "host/sandbox/expiry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/machine/machine_internal.h"
#include "host/observe/event_internal.h"
#include "host/process/processes.h"
#include "host/process/service.h"
#include "host/process/table.h"
#include "host/sandbox/sandbox_internal.h"

#define IDLE_MAX_MS INT64_C(0x3fffffffffffffff)

enum {
    SWEEP_AGAIN_MS = 1000,
    REST_MAX_MS = 60000,
    GATHER_MS = 20, /* batches wakeups: a round visits every sandbox, and every ended process wakes
                       the thread */
};

struct expiry {
    struct host *host;
    struct worker worker;
};

/* What the expiry thread has to do with a sandbox. */
enum duty { DUTY_NONE, DUTY_HANDLE_LOSS, DUTY_KILL, DUTY_PAUSE, DUTY_STOP };

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
    if (action == ACTION_STOP)
        return DUTY_STOP;
    return action == ACTION_PAUSE ? DUTY_PAUSE : DUTY_KILL;
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

/* Locked. Begins a stop operation if the machine is lost, so that no other operation starts. */
static enum duty duty_find(struct sandbox *sandbox, int64_t now, uint64_t *wait_ms)
{
    struct sandbox_info *info = &sandbox->info;
    bool is_on = info->state == SANDBOX_ACTIVE || info->state == SANDBOX_PAUSED;

    if (sandbox->operation != OPERATION_NONE || info->state == SANDBOX_DESTROYING)
        return DUTY_NONE;
    if (is_on && sandbox->machine && is_machine_gone(sandbox->machine)) {
        sandbox->operation = OPERATION_STOP;
        info->state = SANDBOX_STOPPED;
        (void)snprintf(info->reason, sizeof(info->reason), "%.200s", sandbox->machine->failure.msg);
        return DUTY_HANDLE_LOSS;
    }
    if (info->expires_ms && (info->expire_action == ACTION_KILL || info->state == SANDBOX_ACTIVE) &&
        duty_is_due(sandbox->times.expires - now, wait_ms))
        return duty_of_action(info->expire_action);
    if (info->idle_timeout_ms && sandbox->attached == 0 && sandbox->starting == 0 &&
        (info->state == SANDBOX_ACTIVE || (is_on && info->idle_action == ACTION_KILL)) &&
        duty_is_due(idle_left_ms(sandbox, now), wait_ms))
        return duty_of_action(info->idle_action);
    return DUTY_NONE;
}

/* The processes end because their sandbox has used up its time, which counts as a quota. */
static void sandbox_set_killer(struct sandbox *sandbox)
{
    lock_take(&sandbox->lock);
    if (sandbox->machine)
        process_set_killer_all(sandbox->machine, KILLER_QUOTA);
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
    enum sandbox_action action = ACTION_KILL;
    bool is_old;

    if (duty != DUTY_KILL)
        action = duty == DUTY_PAUSE ? ACTION_PAUSE : ACTION_STOP;
    lock_take(&sandbox->lock);
    is_old = sandbox_is_expired(sandbox);
    lock_release(&sandbox->lock);
    sandbox_event(sandbox, EVENT_SANDBOX_EXPIRED,
                  json_pack("{s:s, s:s}", "time", is_old ? "ttl" : "idle", "action",
                            sandbox_action_name(action)));
}

static void duty_perform(struct sandbox *sandbox, enum duty duty)
{
    struct err err = { 0 };

    if (duty == DUTY_KILL || duty == DUTY_PAUSE || duty == DUTY_STOP)
        expiry_emit(sandbox, duty);

    if (duty == DUTY_HANDLE_LOSS) {
        sandbox_handle_loss(sandbox);
        sandbox_finish(sandbox, SANDBOX_STOPPED);
    } else if (duty == DUTY_KILL) {
        sandbox_set_killer(sandbox);
        (void)sandbox_destroy(sandbox, &err);
    } else if (duty == DUTY_PAUSE || duty == DUTY_STOP) {
        /* An expiry acts once: a client that resumes the sandbox wants it to run. */
        lock_take(&sandbox->lock);
        if (sandbox_is_expired(sandbox))
            sandbox_expire_at(sandbox, 0);
        lock_release(&sandbox->lock);
        (void)(duty == DUTY_PAUSE ? sandbox_pause(sandbox, &err) : sandbox_stop(sandbox, &err));
    }
}

static void sandbox_sweep(struct sandbox *sandbox, uint64_t *wait_ms)
{
    struct machine *machine;

    lock_take(&sandbox->lock);
    machine = sandbox->machine ? machine_ref(sandbox->machine) : NULL;
    lock_release(&sandbox->lock);
    if (machine && process_sweep(machine) && *wait_ms > SWEEP_AGAIN_MS)
        *wait_ms = SWEEP_AGAIN_MS;
    if (machine) {
        file_pool_prune(&machine->files, clock_ms());
        file_pool_prune(&machine->tools, clock_ms());
    }
    machine_unref(machine);
}

static void sandbox_tend(struct sandbox *sandbox, int64_t now, uint64_t *wait_ms)
{
    enum duty duty;

    sandbox_correct_times(sandbox);
    lock_take(&sandbox->lock);
    duty = duty_find(sandbox, now, wait_ms);
    lock_release(&sandbox->lock);
    duty_perform(sandbox, duty);
    sandbox_sweep(sandbox, wait_ms);
    services_prune(sandbox);
    process_table_expire(sandbox->process_table, now, wait_ms);
}

/* Visits every sandbox and returns the milliseconds until the next round. */
static uint64_t expiry_round(struct host *host)
{
    int64_t now = clock_boot_ms();
    uint64_t wait_ms = REST_MAX_MS;
    size_t count;
    cleanup_free struct sandbox **list = host_list_sandboxes(host, &count);

    for (size_t i = 0; i < count; i++) {
        sandbox_tend(list[i], now, &wait_ms);
        sandbox_unref(list[i]);
    }
    return wait_ms;
}

static void expiry_main(void *argument)
{
    struct expiry *expiry = argument;
    uint64_t wait_ms;

    do
        wait_ms = expiry_round(expiry->host);
    while (worker_rest(&expiry->worker, wait_ms, GATHER_MS));
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

void expiry_stop(struct expiry *expiry)
{
    worker_stop(&expiry->worker);
}

void expiry_free(struct expiry *expiry)
{
    worker_destroy(&expiry->worker);
    free(expiry);
}
