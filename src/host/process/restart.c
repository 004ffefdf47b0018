// SPDX-License-Identifier: Apache-2.0
/* Restarts processes. They keep their id, and their streams continue. */
#include "host/process/restart.h"

#include <signal.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/observe/event_internal.h"
#include "host/process/process_internal.h"
#include "host/process/record_internal.h"
#include "host/process/table.h"
#include "host/process/writer.h"
#include "kernel/cgroup/cgroup.h"

enum {
    DELAY_FIRST_MS = 100, /* doubled after each failure */
    DELAY_MAX_MS = 30 * 1000,
    LONG_RUN_MS = 10 * 1000, /* a run this long resets the delay */
};

#define SIGNAL_BIT(signal) ((uint64_t)1 << ((signal)-1))

bool process_wants_restart(const struct process *process, enum outcome outcome, int exit_code)
{
    const struct machine *machine = process->machine;
    enum restart policy = process->record->spec->restart;
    bool is_its_own =
        outcome == OUTCOME_EXITED || outcome == OUTCOME_SIGNALED || outcome == OUTCOME_OOM;

    return policy != RESTART_NO && is_its_own && machine->state <= MACHINE_ACTIVE &&
           (policy == RESTART_ALWAYS || exit_code != 0);
}

static void restart_fire(struct reactor_timer *timer)
{
    struct process *process =
        (struct process *)(void *)((char *)timer - offsetof(struct process, restart_timer));
    struct machine *machine = process->machine;

    lock_take(&machine->lock);
    process->is_restart_due = process->is_restart_pending;
    lock_release(&machine->lock);
    process_writer_add(machine->host->writer, process); /* the reactor must not wait for a guest */
    process_unref(process);
}

/* Locked. */
static void restart_schedule(struct process *process, uint64_t delay_ms)
{
    process->is_restart_pending = true;
    process->restart_delay_ms = delay_ms;
    process_writer_add(process->machine->host->writer, process);
}

void process_set_timers(struct process *process)
{
    struct machine *machine = process->machine;
    bool wants_timeout;
    uint64_t delay_ms;

    lock_take(&machine->lock);
    delay_ms = process->restart_delay_ms;
    wants_timeout = process->wants_timeout;
    process->restart_delay_ms = 0;
    process->wants_timeout = false;
    lock_release(&machine->lock);
    if (wants_timeout)
        process_set_timeout(process);
    if (delay_ms == 0)
        return;
    process->restart_timer.fire = restart_fire;
    reactor_set_timer(machine->host->reactor, &process_ref(process)->restart_timer,
                      clock_ms() + delay_ms);
}

/* Locked. Returns the killer, even if the last run ended for another reason. */
static enum killer process_find_killer(const struct process *process)
{
    const uint64_t ending =
        SIGNAL_BIT(SIGINT) | SIGNAL_BIT(SIGQUIT) | SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGTERM);

    if (process->killer)
        return process->killer;
    return process->signals_sent & ending ? KILLER_USER : process->machine->killer;
}

void process_schedule_restart(struct process *process)
{
    enum killer killer = process_find_killer(process);
    uint64_t delay_ms = DELAY_FIRST_MS;

    if (killer) { /* only the killer prevents a restart */
        process_set_killed(process, killer, SIGKILL);
        return;
    }
    if (clock_ms() - process->run_started_ms >= LONG_RUN_MS)
        process->failures = 0;
    for (uint32_t i = 0; i < process->failures && delay_ms < DELAY_MAX_MS; i++)
        delay_ms *= 2;
    process->failures++;
    restart_schedule(process, delay_ms < DELAY_MAX_MS ? delay_ms : DELAY_MAX_MS);
}

bool process_claim_restart(struct process *process)
{
    bool is_due;

    lock_take(&process->machine->lock);
    is_due = process->is_restart_due;
    process->is_restart_due = false;
    lock_release(&process->machine->lock);
    return is_due;
}

/* Begins a new run, whose streams continue at the present offsets, unless the process was killed
 * meanwhile. The caller holds ack_lock. */
static bool restart_begin(struct process *process)
{
    struct machine *machine = process->machine;
    bool has_begun;

    lock_take(&machine->lock);
    has_begun = process->is_restart_pending && !machine->killer && machine->state <= MACHINE_ACTIVE;
    if (has_begun) {
        for (int i = 0; i < PROCESS_STREAMS; i++) {
            process->base[i] = record_received(process->record, i);
            atomic_store(&process->acked[i], process->base[i]);
        }
        process->is_restart_pending = process->is_started = false;
        process->input_sent = process->input_acked = 0;
        process->is_input_closed = !process->record->spec->has_stdin;
        process->run_started_ms = clock_ms();
        record_add_restart(process->record, process->base);
        machine_event(machine, EVENT_PROCESS_RESTARTED, json_pack("{s:s}", "process", process->id));
    }
    lock_release(&machine->lock);
    return has_begun;
}

/* Ends leftover processes, which may hold the port. The cgroup is removed too: once cgroup.kill
 * was written, Linux 6.18 kills everything that is cloned into it later. */
static void restart_clear_cgroup(struct process *process)
{
    const struct machine *machine = process->machine;
    struct cgroup_root *cgroups = machine->host->cgroups;

    (void)cgroup_kill(cgroups, machine->id, process->id);
    (void)cgroup_wait_empty(cgroups, machine->id, process->id);
    (void)cgroup_try_remove(cgroups, machine->id, process->id);
}

void process_respawn(struct process *process)
{
    struct machine *machine = process->machine;
    struct err err = { 0 };
    bool has_begun;
    int r;

    restart_clear_cgroup(process);
    process_table_spool(machine->process_table, process->record, SPOOL_EVERYTHING);
    lock_take(&process->ack_lock);
    has_begun = restart_begin(process);
    lock_release(&process->ack_lock);
    if (!has_begun)
        return;
    process_table_write(
        machine->host, &(struct process_table_entry){ machine->process_table, process->record }, 1);
    (void)process_send_numbers(process, FRAME_FORGET, 0, 0);
    r = process_send_spawn(process, process->record->spec, &err);
    if (r < 0) /* the machine has ended, which ends the process */
        log_warn("cannot restart process '%s': %s", process->id, err.msg);
    else
        viewers_restore(process);
}

void process_resume_restart(struct machine *machine, struct record *record)
{
    struct process *process = process_alloc(machine, record_ref(record));

    process->is_recorded = process->is_started = true;
    process_table_resume(machine->process_table, record, record->base);
    record_set_writer(record, process);
    lock_take(&machine->lock);
    process->next = machine->processes;
    machine->processes = process;
    restart_schedule(process, DELAY_FIRST_MS);
    lock_release(&machine->lock);
}
