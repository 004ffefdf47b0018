// SPDX-License-Identifier: Apache-2.0
/* Processes that are started again when they end. They keep their id, and what they write goes on
 * where the one before has stopped. */
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
    PAUSE_FIRST_MS = 100, /* doubled with each failure */
    PAUSE_MOST_MS = 30 * 1000,
    FAIR_RUN_MS = 10 * 1000, /* who has run that long begins again with a short pause */
};

#define BIT(signal) ((uint64_t)1 << ((signal)-1))

bool process_wants_restart(const struct process *process, enum outcome outcome, int exit_code)
{
    const struct machine *machine = process->machine;
    enum restart policy = process->record->spec->restart;
    bool is_its_own =
        outcome == OUTCOME_EXITED || outcome == OUTCOME_SIGNALED || outcome == OUTCOME_OOM;

    return policy != RESTART_NO && is_its_own && machine->state <= MACHINE_ACTIVE &&
           (policy == RESTART_ALWAYS || exit_code != 0);
}

static void on_restart_due(struct reactor_timer *timer)
{
    struct process *process =
        (struct process *)(void *)((char *)timer - offsetof(struct process, restart_timer));
    struct machine *machine = process->machine;

    lock_take(&machine->lock);
    process->is_restart_due = process->is_between;
    lock_release(&machine->lock);
    process_writer_add(machine->host->writer, process); /* this thread must not wait for a guest */
    process_unref(process);
}

/* Locked. */
static void rest(struct process *process, uint64_t pause_ms)
{
    process->is_between = true;
    process->wants_rest_ms = pause_ms;
    process_writer_add(process->machine->host->writer, process);
}

void process_set_timers(struct process *process)
{
    struct machine *machine = process->machine;
    bool wants_timeout;
    uint64_t rest_ms;

    lock_take(&machine->lock);
    rest_ms = process->wants_rest_ms;
    wants_timeout = process->wants_timeout;
    process->wants_rest_ms = 0;
    process->wants_timeout = false;
    lock_release(&machine->lock);
    if (wants_timeout)
        process_set_timeout(process);
    if (rest_ms == 0)
        return;
    process->restart_timer.fire = on_restart_due;
    reactor_set_timer(machine->host->reactor, &process_ref(process)->restart_timer,
                      clock_ms() + rest_ms);
}

/* Locked. Who wants it to end, whatever it did last itself. */
static enum killer killer_of(const struct process *process)
{
    const uint64_t ending = BIT(SIGINT) | BIT(SIGQUIT) | BIT(SIGKILL) | BIT(SIGTERM);

    if (process->killer)
        return process->killer;
    return process->signals_sent & ending ? KILLER_USER : process->machine->killer;
}

void process_rest(struct process *process)
{
    enum killer killer = killer_of(process);
    uint64_t pause_ms = PAUSE_FIRST_MS;

    if (killer) { /* it would have gone on, had it not been for that */
        process_set_killed(process, killer, SIGKILL);
        return;
    }
    if (clock_ms() - process->incarnated_ms >= FAIR_RUN_MS)
        process->failures = 0;
    for (uint32_t i = 0; i < process->failures && pause_ms < PAUSE_MOST_MS; i++)
        pause_ms *= 2;
    process->failures++;
    rest(process, pause_ms < PAUSE_MOST_MS ? pause_ms : PAUSE_MOST_MS);
}

bool process_take_restart(struct process *process)
{
    bool is_due;

    lock_take(&process->machine->lock);
    is_due = process->is_restart_due;
    process->is_restart_due = false;
    lock_release(&process->machine->lock);
    return is_due;
}

/* Its streams go on behind what there is. Whether it is still to be. Acknowledgements wait. */
static bool begin_again(struct process *process)
{
    struct machine *machine = process->machine;
    bool goes_on;

    lock_take(&machine->lock);
    goes_on = process->is_between && !machine->killer && machine->state <= MACHINE_ACTIVE;
    if (goes_on) {
        for (int i = 0; i < PROCESS_STREAMS; i++) {
            process->base[i] = record_received(process->record, i);
            atomic_store(&process->acked[i], process->base[i]);
        }
        process->is_between = process->is_started = false;
        process->input_sent = process->input_acked = 0;
        process->is_input_closed = !process->record->spec->has_stdin;
        process->incarnated_ms = clock_ms();
        record_note_restart(process->record, process->base);
        machine_event(machine, EVENT_PROCESS_RESTARTED, json_pack("{s:s}", "process", process->id));
    }
    lock_release(&machine->lock);
    return goes_on;
}

/* What it has left behind may hold its port. The group goes too: where cgroup.kill was ever written
 * Linux 6.18 kills whatever is cloned into it later. */
static void clear_group(struct process *process)
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
    bool goes_on;
    int r;

    clear_group(process);
    process_table_spool(machine->process_table, process->record, SPOOL_EVERYTHING);
    lock_take(&process->ack_lock);
    goes_on = begin_again(process);
    lock_release(&process->ack_lock);
    if (!goes_on)
        return;
    process_table_write(
        machine->host, &(struct process_table_entry){ machine->process_table, process->record }, 1);
    (void)process_send_numbers(process, FRAME_FORGET, 0, 0);
    r = process_send_spawn(process, process->record->spec, &err);
    if (r < 0) /* the machine has ended, and with it the process */
        log_warn("process '%s' is not started again: %s", process->id, err.msg);
}

void process_revive(struct machine *machine, struct record *record)
{
    struct process *process = process_alloc(machine, record_ref(record));

    process->is_recorded = process->is_started = true;
    process_table_resume(machine->process_table, record, record->base);
    record_set_writer(record, process);
    lock_take(&machine->lock);
    process->next = machine->processes;
    machine->processes = process;
    rest(process, PAUSE_FIRST_MS);
    lock_release(&machine->lock);
}
