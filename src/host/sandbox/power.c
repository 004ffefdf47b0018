// SPDX-License-Identifier: Apache-2.0
/* Pause, resume, stop, start. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/json.h"
#include "host/backup/deep_pause.h"
#include "host/core/descriptors.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/observe/event_internal.h"
#include "host/observe/memory_guard.h"
#include "host/observe/metrics_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/shell/state.h"
#include "kernel/cgroup/cgroup.h"

enum { DRAIN_STEP_MS = 100 }; /* between two looks at the client of a pause that waits */

int sandbox_freeze(const struct sandbox *sandbox, bool on, struct err *err)
{
    struct cgroup_root *cgroups = sandbox->host->cgroups;
    int r = sandbox->machine ? cgroup_freeze(cgroups, sandbox->info.machine, on) : 0;

    if (r == 0 && sandbox->second) {
        r = cgroup_freeze(cgroups, sandbox->second->id, on);
        if (r < 0 && on)
            (void)cgroup_freeze(cgroups, sandbox->info.machine, false);
    }
    return r < 0 ? err_sys(err, r, "%s the processes of sandbox '%s'", on ? "freeze" : "thaw",
                           sandbox->info.id)
                 : 0;
}

/* The state changes first, so that nothing new starts; then the processes are frozen, then the
 * registry is written. */
int sandbox_pause(struct sandbox *sandbox, struct err *err)
{
    uint64_t began_ns = clock_ns();
    struct err ignored;
    enum sandbox_state state;
    int r = sandbox_begin(sandbox, OPERATION_PAUSE, &state, err);

    if (r < 0)
        return metrics_note(sandbox->host->metrics, TIMED_PAUSE, began_ns, r);
    sandbox_set_state(sandbox, SANDBOX_PAUSING);
    r = sandbox_wait_starting(sandbox, err);
    fault_point("pause.gated");
    if (r == 0)
        r = sandbox_freeze(sandbox, true, err);
    if (r == 0) {
        fault_point("pause.frozen");
        r = sandbox_record(sandbox, SANDBOX_PAUSED, err);
        if (r < 0)
            (void)sandbox_freeze(sandbox, false, &ignored);
    }
    fault_point("pause.recorded");
    if (r == 0)
        cgroup_reclaim(sandbox->host->cgroups, sandbox->info.limits_group);
    if (r == 0)
        sandbox_event(sandbox, EVENT_SANDBOX_PAUSED, NULL);
    sandbox_finish(sandbox, r < 0 ? state : SANDBOX_PAUSED);
    return metrics_note(sandbox->host->metrics, TIMED_PAUSE, began_ns, r);
}

int sandbox_tool_began(struct sandbox *sandbox, struct err *err)
{
    lock_scope(&sandbox->lock);

    if (atomic_load(&sandbox->host->refuses_tools))
        return err_refuse(err, CAUSE_SHUTTING_DOWN, "the daemon is shutting down");
    if (sandbox->drains > 0)
        return err_refuse(err, CAUSE_SESSION_PAUSED, "sandbox '%s' is about to be paused",
                          sandbox->info.id);
    sandbox->tools++;
    return 0;
}

void sandbox_tool_ended(struct sandbox *sandbox)
{
    lock_scope(&sandbox->lock);

    sandbox->tools--;
    cond_broadcast(&sandbox->changed);
}

static bool has_hung_up(int fd)
{
    struct pollfd hang_up = { .fd = fd, .events = POLLRDHUP };

    return fd >= 0 && poll(&hang_up, 1, 0) > 0;
}

/* Locked. The tool calls need the sandbox as it is: nothing else is claimed while they run. */
static int tools_await(struct sandbox *sandbox, uint64_t deadline_ms, int watch_fd, struct err *err)
{
    while (sandbox->tools > 0 && sandbox->info.state == SANDBOX_ACTIVE && !sandbox->is_gone) {
        uint64_t now_ms = clock_ms();
        int r = host_is_open(sandbox->host, err);

        if (r < 0)
            return r;
        if (has_hung_up(watch_fd))
            return -ECANCELED;
        if (now_ms >= deadline_ms)
            return err_refuse(err, CAUSE_TOOLS_IN_FLIGHT, "sandbox '%s' has %u running tool call%s",
                              sandbox->info.id, sandbox->tools, sandbox->tools == 1 ? "" : "s");
        (void)cond_wait_until(&sandbox->changed, &sandbox->lock,
                              now_ms + DRAIN_STEP_MS < deadline_ms ? now_ms + DRAIN_STEP_MS
                                                                   : deadline_ms);
    }
    return 0;
}

typedef int pause_fn(struct sandbox *sandbox, struct err *err);

static int drain_and(pause_fn *pause, struct sandbox *sandbox, int watch_fd, struct err *err)
{
    uint64_t ms = sandbox->host->pause_drain_ms;
    int r;

    if (ms == 0)
        return pause(sandbox, err);
    lock_take(&sandbox->lock);
    sandbox->drains++;
    r = tools_await(sandbox, clock_after_ms(ms), watch_fd, err);
    lock_release(&sandbox->lock);
    if (r == 0)
        r = pause(sandbox, err);
    lock_take(&sandbox->lock);
    sandbox->drains--;
    lock_release(&sandbox->lock);
    return r;
}

int sandbox_pause_drained(struct sandbox *sandbox, int watch_fd, struct err *err)
{
    return drain_and(sandbox_pause, sandbox, watch_fd, err);
}

int sandbox_deep_pause_drained(struct sandbox *sandbox, int watch_fd, struct err *err)
{
    return drain_and(sandbox_deep_pause, sandbox, watch_fd, err);
}

int sandbox_resume(struct sandbox *sandbox, struct err *err)
{
    uint64_t began_ns = clock_ns();
    enum sandbox_state state;
    int r = sandbox_begin(sandbox, OPERATION_RESUME, &state, err);

    if (r < 0)
        return metrics_note(sandbox->host->metrics, TIMED_RESUME, began_ns, r);
    if (state == SANDBOX_DEEP_PAUSED)
        return metrics_note(sandbox->host->metrics, TIMED_RESUME, began_ns,
                            sandbox_deep_resume(sandbox, err));
    r = sandbox_record(sandbox, SANDBOX_ACTIVE, err);
    fault_point("resume.recorded");
    if (r == 0)
        r = sandbox_freeze(sandbox, false, err);
    fault_point("resume.thawed");
    if (r == 0)
        sandbox_event(sandbox, EVENT_SANDBOX_RESUMED, NULL);
    sandbox_finish(sandbox, r < 0 ? state : SANDBOX_ACTIVE);
    return metrics_note(sandbox->host->metrics, TIMED_RESUME, began_ns, r);
}

/* Records the sandbox without its machine: a daemon that restarts now must end that machine, not
 * adopt it. */
static int sandbox_record_stop(struct sandbox *sandbox, struct err *err)
{
    char machine[RUNTIME_ID_MAX];
    int r;

    lock_take(&sandbox->lock);
    memcpy(machine, sandbox->info.machine, sizeof(machine));
    sandbox->info.machine[0] = '\0';
    lock_release(&sandbox->lock);
    r = sandbox_record(sandbox, SANDBOX_STOPPED, err);
    lock_take(&sandbox->lock);
    memcpy(sandbox->info.machine, machine, sizeof(machine));
    lock_release(&sandbox->lock);
    return r;
}

int sandbox_stop(struct sandbox *sandbox, struct err *err)
{
    uint64_t began_ns = clock_ns();
    enum sandbox_state state;
    int r = sandbox_begin(sandbox, OPERATION_STOP, &state, err);

    if (r == 0)
        r = sandbox_halt(sandbox, state, err);
    return metrics_note(sandbox->host->metrics, TIMED_STOP, began_ns, r);
}

int sandbox_end_machine(struct sandbox *sandbox, enum sandbox_state before, struct err *err)
{
    struct err ignored;
    int r;

    if (before == SANDBOX_STOPPED || before == SANDBOX_FAILED)
        return 0;
    shells_save(sandbox);
    sandbox_set_state(sandbox, SANDBOX_STOPPED);
    /* A process that has not started by then is killed with the others. */
    (void)sandbox_wait_starting(sandbox, &ignored);
    r = sandbox_record_stop(sandbox, err);
    fault_point("stop.recorded");
    if (r < 0) {
        sandbox_set_state(sandbox, before);
        return r;
    }
    sandbox_set_killer(sandbox, KILLER_STOP);
    (void)sandbox_unboot(sandbox, NULL);
    shells_set_dormant(sandbox);
    fault_point("stop.ended");
    sandbox_event(sandbox, EVENT_SANDBOX_STOPPED, NULL);
    return 0;
}

int sandbox_halt(struct sandbox *sandbox, enum sandbox_state before, struct err *err)
{
    int r = sandbox_end_machine(sandbox, before, err);

    sandbox_finish(sandbox, r < 0 || before == SANDBOX_FAILED ? before : SANDBOX_STOPPED);
    return r;
}

/* A failed sandbox may have no open volume. */
static int sandbox_ensure_volume(struct sandbox *sandbox, struct err *err)
{
    struct volume *volume = NULL;
    int r;

    if (sandbox->volume)
        return 0;
    r = sandbox_open_volume(sandbox, &volume, err);
    if (r < 0)
        return r;
    lock_take(&sandbox->lock);
    sandbox->volume = volume;
    lock_release(&sandbox->lock);
    return 0;
}

int sandbox_check_room(struct sandbox *sandbox, struct err *err)
{
    int r = descriptors_check_sandbox(err);

    if (r == 0)
        r = cgroup_root_check_room(sandbox->host->cgroups, err);
    return r == 0 ? memory_guard_check(sandbox->host->memory_guard, err) : r;
}

int sandbox_boot_recorded(struct sandbox *sandbox, struct err *err)
{
    int r = sandbox_ensure_volume(sandbox, err);

    if (r == 0)
        r = sandbox_boot(sandbox, err);
    if (r == 0) {
        r = sandbox_record(sandbox, SANDBOX_ACTIVE, err);
        if (r < 0)
            (void)sandbox_unboot(sandbox, NULL);
    }
    return r;
}

int sandbox_start(struct sandbox *sandbox, struct err *err)
{
    uint64_t began_ns = clock_ns();
    enum sandbox_state before;
    int r = sandbox_begin(sandbox, OPERATION_START, &before, err);

    if (r < 0)
        return metrics_note(sandbox->host->metrics, TIMED_START, began_ns, r);
    if (before == SANDBOX_DEEP_PAUSED)
        return metrics_note(sandbox->host->metrics, TIMED_START, began_ns,
                            sandbox_deep_resume(sandbox, err));
    r = sandbox_check_room(sandbox, err);
    if (r == 0)
        r = sandbox_boot_recorded(sandbox, err);
    fault_point("start.done");
    if (r == 0)
        sandbox_event(sandbox, EVENT_SANDBOX_STARTED, NULL);
    sandbox_finish(sandbox, r < 0 ? before : SANDBOX_ACTIVE);
    return metrics_note(sandbox->host->metrics, TIMED_START, began_ns, r);
}

void sandbox_handle_loss(struct sandbox *sandbox)
{
    struct err ignored;

    (void)sandbox_unboot(sandbox, NULL);
    shells_set_dormant(sandbox);
    fault_point("loss.ended");
    (void)sandbox_record(sandbox, SANDBOX_STOPPED, &ignored);
    fault_point("loss.recorded");
    sandbox_event(sandbox, EVENT_SANDBOX_LOST,
                  json_pack("{s:o}", "reason", json_text(sandbox->info.reason)));
}
