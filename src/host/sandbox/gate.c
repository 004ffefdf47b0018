// SPDX-License-Identifier: Apache-2.0
/* Which operation may begin when: the table of sandbox.h. */
#include "base/cleanup.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/process/processes.h"
#include "host/sandbox/expiry.h"
#include "host/sandbox/sandbox_internal.h"

/* What an operation needs to begin, by state. A state that passes (pausing, rolling back, creating)
 * is refused at once rather than waited for: whoever asks can then decide. */
enum answer { NO, YES, PAUSED, ROLLING, DESTROYING, LATER };

#define STATES(creating, active, pausing, paused, stopped, rolling, failed)                        \
    {                                                                                              \
        [SANDBOX_CREATING] = (creating), [SANDBOX_ACTIVE] = (active),                              \
        [SANDBOX_PAUSING] = (pausing), [SANDBOX_PAUSED] = (paused), [SANDBOX_STOPPED] = (stopped), \
        [SANDBOX_ROLLING_BACK] = (rolling), [SANDBOX_DESTROYING] = DESTROYING,                     \
        [SANDBOX_FAILED] = (failed)                                                                \
    }

static const enum answer answers[OPERATIONS][SANDBOX_STATES] = {
    [OPERATION_EXEC] = STATES(NO, YES, PAUSED, PAUSED, NO, ROLLING, NO),
    [OPERATION_TURN] = STATES(NO, YES, PAUSED, PAUSED, YES, ROLLING, NO),
    [OPERATION_SNAPSHOT] = STATES(NO, YES, LATER, YES, YES, ROLLING, NO),
    [OPERATION_FORK] = STATES(NO, YES, LATER, YES, YES, ROLLING, NO),
    [OPERATION_ROLLBACK] = STATES(NO, YES, PAUSED, PAUSED, YES, ROLLING, NO),
    [OPERATION_UNMARK] = STATES(NO, YES, LATER, YES, YES, LATER, YES),
    [OPERATION_PAUSE] = STATES(NO, YES, PAUSED, PAUSED, NO, ROLLING, NO),
    [OPERATION_RESUME] = STATES(NO, NO, LATER, YES, NO, ROLLING, NO),
    [OPERATION_STOP] = STATES(NO, YES, LATER, YES, YES, LATER, YES),
    [OPERATION_START] = STATES(NO, NO, NO, NO, YES, ROLLING, YES),
};

static int refuse(const struct sandbox *sandbox, enum answer answer, struct err *err)
{
    const char *word = sandbox->info.name[0] ? sandbox->info.name : sandbox->info.id;
    const char *state = sandbox_state_name(sandbox->info.state);

    if (answer == PAUSED)
        return err_refuse(err, CAUSE_SESSION_PAUSED, "sandbox '%s' is %s", word, state);
    if (answer == ROLLING)
        return err_refuse(err, CAUSE_ROLLBACK_IN_PROGRESS, "sandbox '%s' is rolling back", word);
    if (answer == DESTROYING)
        return err_refuse(err, CAUSE_SESSION_DESTROYING, "sandbox '%s' is being destroyed", word);
    if (sandbox->info.reason[0])
        return err_refuse(err, CAUSE_INVALID_STATE, "sandbox '%s' is %s: %.160s", word, state,
                          sandbox->info.reason);
    return err_refuse(err, CAUSE_INVALID_STATE, "sandbox '%s' is %s", word, state);
}

/* Locked; waits for what must be over first. */
static int pass(struct sandbox *sandbox, enum operation operation, struct err *err)
{
    for (;;) {
        enum answer answer =
            sandbox->is_gone ? DESTROYING : answers[operation][sandbox->info.state];
        bool is_busy =
            operation == OPERATION_EXEC ? sandbox->is_still : sandbox->operation != OPERATION_NONE;

        if (answer != YES && answer != LATER)
            return refuse(sandbox, answer, err);
        if (answer == YES && !is_busy)
            return 0;
        (void)pthread_cond_wait(&sandbox->changed, &sandbox->lock.mutex);
    }
}

int sandbox_begin(struct sandbox *sandbox, enum operation operation, enum sandbox_state *ret_state,
                  struct err *err)
{
    int r = host_is_open(sandbox->host, err);

    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    r = pass(sandbox, operation, err);
    if (r == 0) {
        sandbox->operation = operation;
        *ret_state = sandbox->info.state;
        sandbox->info.last_active_ms = clock_wall_ms();
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
    (void)pthread_cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
}

void sandbox_finish(struct sandbox *sandbox, enum sandbox_state state)
{
    sandbox_set_state(sandbox, state);
    lock_take(&sandbox->lock);
    sandbox->operation = OPERATION_NONE;
    sandbox->info.last_active_ms = clock_wall_ms();
    (void)pthread_cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
    expiry_wake(sandbox->host->expiry);
}

bool sandbox_wait_made(struct sandbox *sandbox)
{
    bool is_there;

    lock_take(&sandbox->lock);
    while (!sandbox->is_gone &&
           (sandbox->info.state == SANDBOX_CREATING || sandbox->info.state == SANDBOX_DESTROYING))
        (void)pthread_cond_wait(&sandbox->changed, &sandbox->lock.mutex);
    is_there = !sandbox->is_gone;
    lock_release(&sandbox->lock);
    return is_there;
}

void sandbox_wait_starting(struct sandbox *sandbox)
{
    lock_take(&sandbox->lock);
    while (sandbox->starting > 0)
        (void)pthread_cond_wait(&sandbox->changed, &sandbox->lock.mutex);
    lock_release(&sandbox->lock);
    if (sandbox->machine)
        process_settle(sandbox->machine);
}

int sandbox_pass(struct sandbox *sandbox, struct machine **ret, struct err *err)
{
    int r = host_is_open(sandbox->host, err);

    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    r = pass(sandbox, OPERATION_EXEC, err);
    if (r == 0) {
        sandbox->starting++;
        sandbox->info.last_active_ms = clock_wall_ms();
        *ret = machine_ref(sandbox->machine);
    }
    lock_release(&sandbox->lock);
    return r;
}

void sandbox_passed(struct sandbox *sandbox, struct machine *machine)
{
    machine_unref(machine);
    lock_take(&sandbox->lock);
    sandbox->starting--;
    (void)pthread_cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
}

int sandbox_exec(struct sandbox *sandbox, const struct process_spec *spec, struct process **ret,
                 struct err *err)
{
    struct machine *machine = NULL;
    int r = sandbox_pass(sandbox, &machine, err);

    if (r < 0)
        return r;
    r = process_start(machine, spec, ret, err);
    sandbox_passed(sandbox, machine);
    return r;
}

int sandbox_borrow_machine(struct sandbox *sandbox, struct machine **ret, struct err *err)
{
    int r = host_is_open(sandbox->host, err);

    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    r = pass(sandbox, OPERATION_EXEC, err);
    if (r == 0) {
        sandbox->info.last_active_ms = clock_wall_ms();
        *ret = machine_ref(sandbox->machine);
    }
    lock_release(&sandbox->lock);
    return r;
}
