// SPDX-License-Identifier: Apache-2.0
/* Decides when an operation may begin: the table of sandbox.h. */
#include "base/cleanup.h"
#include "host/core/descriptors.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/process/processes.h"
#include "host/sandbox/expiry.h"
#include "host/sandbox/sandbox_internal.h"

/* The result of a request to begin an operation, by state. A transient state (pausing, rolling
 * back, creating) fails at once instead of waiting, so that the client can decide. */
enum gate_result { GATE_NO, GATE_YES, GATE_PAUSED, GATE_ROLLING, GATE_DESTROYING, GATE_WAIT };

#define STATES(creating, active, pausing, paused, stopped, rolling, failed, deep)                  \
    {                                                                                              \
        [SANDBOX_CREATING] = GATE_##creating, [SANDBOX_ACTIVE] = GATE_##active,                    \
        [SANDBOX_PAUSING] = GATE_##pausing, [SANDBOX_PAUSED] = GATE_##paused,                      \
        [SANDBOX_STOPPED] = GATE_##stopped, [SANDBOX_ROLLING_BACK] = GATE_##rolling,               \
        [SANDBOX_DESTROYING] = GATE_DESTROYING, [SANDBOX_FAILED] = GATE_##failed,                  \
        [SANDBOX_DEEP_PAUSED] = GATE_##deep                                                        \
    }

static const enum gate_result gate_results[OPERATIONS][SANDBOX_STATES] = {
    [OPERATION_EXEC] = STATES(NO, YES, PAUSED, PAUSED, NO, ROLLING, NO, PAUSED),
    [OPERATION_TURN] = STATES(NO, YES, PAUSED, PAUSED, YES, ROLLING, NO, PAUSED),
    [OPERATION_SNAPSHOT] = STATES(NO, YES, WAIT, YES, YES, ROLLING, NO, PAUSED),
    [OPERATION_FORK] = STATES(NO, YES, WAIT, YES, YES, ROLLING, NO, PAUSED),
    [OPERATION_ROLLBACK] = STATES(NO, YES, PAUSED, PAUSED, YES, ROLLING, NO, PAUSED),
    [OPERATION_UNMARK] = STATES(NO, YES, WAIT, YES, YES, WAIT, YES, PAUSED),
    [OPERATION_UPDATE] = STATES(NO, YES, WAIT, YES, YES, WAIT, YES, PAUSED),
    [OPERATION_TIER] = STATES(NO, YES, PAUSED, PAUSED, NO, ROLLING, NO, PAUSED),
    [OPERATION_PAUSE] = STATES(NO, YES, PAUSED, PAUSED, NO, ROLLING, NO, PAUSED),
    [OPERATION_RESUME] = STATES(NO, NO, WAIT, YES, NO, ROLLING, NO, YES),
    [OPERATION_STOP] = STATES(NO, YES, WAIT, YES, YES, WAIT, YES, PAUSED),
    [OPERATION_START] = STATES(NO, NO, NO, NO, YES, ROLLING, YES, YES),
    [OPERATION_DEEP_PAUSE] = STATES(NO, YES, WAIT, YES, YES, ROLLING, NO, PAUSED),
};

static int gate_error(const struct sandbox *sandbox, enum gate_result result, struct err *err)
{
    const char *word = sandbox->info.name[0] ? sandbox->info.name : sandbox->info.id;
    const char *state = sandbox_state_name(sandbox->info.state);
    int r;

    if (result == GATE_PAUSED)
        return err_refuse(err, CAUSE_SESSION_PAUSED, "sandbox '%s' is %s", word, state);
    if (result == GATE_ROLLING)
        return err_refuse(err, CAUSE_ROLLBACK_IN_PROGRESS, "sandbox '%s' is rolling back", word);
    if (result == GATE_DESTROYING)
        return err_refuse(err, CAUSE_SESSION_DESTROYING, "sandbox '%s' is being destroyed", word);
    if (sandbox->info.reason[0])
        return err_refuse(err, CAUSE_INVALID_STATE, "sandbox '%s' is %s: %.160s", word, state,
                          sandbox->info.reason);
    r = err_refuse(err, CAUSE_INVALID_STATE, "sandbox '%s' is %s", word, state);
    if (sandbox->info.state == SANDBOX_STOPPED)
        (void)err_remedy(err, "start it with 'holt start %s'", word);
    return r;
}

/* Locked. Waits until the operation may begin, or returns why it may not. */
static int gate_wait(struct sandbox *sandbox, enum operation operation, struct err *err)
{
    for (;;) {
        enum gate_result result =
            sandbox->is_gone ? GATE_DESTROYING : gate_results[operation][sandbox->info.state];
        bool is_busy = operation == OPERATION_EXEC ? sandbox->is_quiesced
                                                   : sandbox->operation != OPERATION_NONE;

        if (result != GATE_YES && result != GATE_WAIT)
            return gate_error(sandbox, result, err);
        if (result == GATE_YES && !is_busy)
            return 0;
        cond_wait(&sandbox->changed, &sandbox->lock);
    }
}

int sandbox_begin(struct sandbox *sandbox, enum operation operation, enum sandbox_state *ret_state,
                  struct err *err)
{
    int r = host_is_open(sandbox->host, err);

    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    r = gate_wait(sandbox, operation, err);
    if (r == 0) {
        sandbox->operation = operation;
        *ret_state = sandbox->info.state;
        sandbox_touch(sandbox);
    }
    lock_release(&sandbox->lock);
    return r;
}

void sandbox_set_state(struct sandbox *sandbox, enum sandbox_state state)
{
    lock_take(&sandbox->lock);
    if (sandbox->info.state != SANDBOX_DESTROYING)
        sandbox->info.state = state;
    if (state == SANDBOX_ACTIVE)
        sandbox->info.reason[0] = '\0';
    cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
}

void sandbox_finish(struct sandbox *sandbox, enum sandbox_state state)
{
    sandbox_set_state(sandbox, state);
    lock_take(&sandbox->lock);
    sandbox->operation = OPERATION_NONE;
    sandbox_touch(sandbox);
    cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
    expiry_wake(sandbox->host->expiry);
}

bool sandbox_wait_created(struct sandbox *sandbox)
{
    bool is_there;

    lock_take(&sandbox->lock);
    while (!sandbox->is_gone &&
           (sandbox->info.state == SANDBOX_CREATING || sandbox->info.state == SANDBOX_DESTROYING))
        cond_wait(&sandbox->changed, &sandbox->lock);
    is_there = !sandbox->is_gone;
    lock_release(&sandbox->lock);
    return is_there;
}

int sandbox_wait_starting(struct sandbox *sandbox, struct err *err)
{
    uint64_t deadline_ms = clock_after_ms(PROCESS_START_WAIT_MS);
    bool is_late = false;

    lock_take(&sandbox->lock);
    while (!is_late && sandbox->starting > 0)
        is_late = !cond_wait_until(&sandbox->changed, &sandbox->lock, deadline_ms);
    lock_release(&sandbox->lock);
    if (!is_late && sandbox->machine)
        is_late = !process_wait_all_started(sandbox->machine, deadline_ms);
    if (!is_late && sandbox->second)
        is_late = !process_wait_all_started(sandbox->second, deadline_ms);
    if (!is_late)
        return 0;
    return err_set(err, ERR_DEADLINE,
                   "holt-init of sandbox '%s' does not answer: a process has been starting for %d "
                   "s; try again, or stop the sandbox",
                   sandbox->info.id, PROCESS_START_WAIT_MS / 1000);
}

int sandbox_hold_machine(struct sandbox *sandbox, struct machine **ret, struct err *err)
{
    int r = host_is_open(sandbox->host, err);

    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    r = gate_wait(sandbox, OPERATION_EXEC, err);
    if (r == 0) {
        sandbox->starting++;
        sandbox_touch(sandbox);
        *ret = machine_ref(sandbox->machine);
    }
    lock_release(&sandbox->lock);
    return r;
}

void sandbox_release_machine(struct sandbox *sandbox, struct machine *machine)
{
    machine_unref(machine);
    lock_take(&sandbox->lock);
    sandbox->starting--;
    cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
}

int sandbox_exec(struct sandbox *sandbox, const struct process_spec *spec, struct process **ret,
                 struct err *err)
{
    struct machine *machine = NULL;
    int r = descriptors_check_process(err);

    if (r == 0)
        r = spec->tier ? sandbox_hold_tier(sandbox, spec->tier, &machine, err)
                       : sandbox_hold_machine(sandbox, &machine, err);
    if (r < 0)
        return r;
    r = process_start(machine, spec, ret, err);
    sandbox_release_machine(sandbox, machine);
    return r;
}

int sandbox_ref_machine(struct sandbox *sandbox, struct machine **ret, struct err *err)
{
    int r = host_is_open(sandbox->host, err);

    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    r = gate_wait(sandbox, OPERATION_EXEC, err);
    if (r == 0) {
        sandbox_touch(sandbox);
        *ret = machine_ref(sandbox->machine);
    }
    lock_release(&sandbox->lock);
    return r;
}
