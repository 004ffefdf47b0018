// SPDX-License-Identifier: Apache-2.0
/* The process list of a machine: adoption after a restart of the daemon, killing, and cleanup. */
#include <signal.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/process/process_internal.h"
#include "host/process/record_internal.h"
#include "host/process/table.h"
#include "host/process/writer.h"
#include "host/sandbox/expiry.h"
#include "host/shell/link.h"
#include "kernel/cgroup/cgroup.h"
#include "wire/message.h"

/* Continues the streams at the offsets that were acknowledged to the guest. */
static void process_continue(struct process *process, const struct message_state *state)
{
    uint64_t acked[PROCESS_STREAMS];

    for (int i = 0; i < PROCESS_STREAMS; i++) {
        process->base[i] = process->record->base[i];
        acked[i] = process->base[i] + state->acked[i];
        atomic_store(&process->acked[i], acked[i]);
    }
    process_table_resume(process->machine->process_table, process->record, acked);
    process->input_sent = state->input;
    process->input_acked = state->input_taken;
    process->is_input_closed = !state->is_input_open;
    process->has_terminal = state->has_terminal;
    process->started_ms -= state->age_ms;
    process->is_started = process->is_recorded = true;
    record_set_pid(process->record, state->pid);
    record_set_writer(process->record, process);
    /* A process that has ended did so before the timeout, or its outcome says that it was
     * killed. */
    if (!state->is_exited) {
        process->wants_timeout = true;
        process_writer_add(process->machine->host->writer, process);
    }
}

struct process *process_adopt(struct machine *machine, const struct frame *frame)
{
    struct message_state state;
    struct process *process;

    if (!machine->process_table || !message_get_state(frame, &state))
        return NULL;
    process = process_alloc(machine, process_table_adopt(machine->process_table, frame->process));
    if (record_is_over(process->record)) {
        /* The journal has its end; only the guest was not told to forget it. */
        process->is_started = process->is_over = process->is_settled = true;
    } else {
        process_continue(process, &state);
        process->shell = state.is_shell ? shell_link_new(&state) : NULL;
    }
    process->next = machine->processes;
    machine->processes = process;
    return process;
}

/* Adds an ended process for a cgroup that the guest does not know any more. */
static void process_adopt_group(void *context, const char *group)
{
    static char *const no_words[] = { NULL };
    static const struct process_spec unknown = { .args = no_words };
    struct machine *machine = context;
    struct process *process;
    uint64_t number;

    if (group[0] != 'p' || parse_u64(group + 1, &number) < 0 || number > INT32_MAX)
        return;
    lock_take(&machine->lock);
    process = process_find_number(machine, (uint32_t)number)
                  ? NULL
                  : process_alloc(machine, record_new((uint32_t)number, &unknown, 0));
    if (process) {
        process->is_started = process->is_over = true;
        process->is_settled = process->is_forgotten = true;
        process->next = machine->processes;
        machine->processes = process;
    }
    lock_release(&machine->lock);
    process_table_skip(machine->process_table, (uint32_t)number);
}

void process_adopt_groups(struct machine *machine)
{
    (void)cgroup_list_children(machine->host->cgroups, machine->id, process_adopt_group, machine);
}

void process_set_settled(struct process *process)
{
    struct machine *machine = process->machine;

    lock_take(&machine->lock);
    process->is_settled = true;
    lock_release(&machine->lock);
    record_shrink(process->record);
    record_set_writer(process->record, NULL);
    expiry_wake(machine->host->expiry);
}

void process_abandon(struct process *process)
{
    reader_close(TAKE_PTR(process->reader));
    process_unref(process);
}

/* Locked. */
static void process_set_killer(struct process *process, enum killer killer)
{
    if (process->is_over)
        return;
    process->killer = killer;
    if (process->is_restart_pending)
        process_set_killed(process, killer, SIGKILL);
}

void process_kill(struct process *process, enum killer killer)
{
    struct machine *machine = process->machine;
    bool is_over;

    lock_take(&machine->lock);
    process_set_killer(process, killer);
    is_over = process->is_over;
    lock_release(&machine->lock);
    if (!is_over)
        (void)cgroup_kill(machine->host->cgroups, machine->id, process->id);
}

void process_set_killer_all(struct machine *machine, enum killer killer)
{
    lock_take(&machine->lock);
    for (struct process *process = machine->processes; process; process = process->next)
        process_set_killer(process, killer);
    lock_release(&machine->lock);
}

/* Locked. */
static bool machine_has_unstarted(const struct machine *machine)
{
    for (const struct process *process = machine->processes; process; process = process->next)
        if (!process->is_started)
            return true;
    return false;
}

bool process_wait_all_started(struct machine *machine, uint64_t deadline_ms)
{
    bool is_late = false;
    lock_scope(&machine->lock);

    while (!is_late && !machine->is_gone && machine_has_unstarted(machine))
        is_late = !cond_wait_until(&machine->changed, &machine->lock, deadline_ms);
    return !is_late;
}

static void machine_set_killer(struct machine *machine, enum killer killer)
{
    lock_take(&machine->lock);
    machine->killer = killer;
    lock_release(&machine->lock);
}

uint64_t machine_count_oom_kills(struct machine *machine)
{
    if (machine->meter.oom_fd < 0)
        cgroup_meter_open(machine->host->cgroups, machine->guest.limits_group, &machine->meter);
    return cgroup_meter_oom_kills(&machine->meter);
}

/* An idle sandbox has no descriptor for this. */
static void machine_close_meter(struct machine *machine)
{
    lock_scope(&machine->lock);

    if (!machine->processes)
        cgroup_meter_close(&machine->meter);
}

uint32_t machine_count_processes(struct machine *machine)
{
    uint32_t count = 0;

    lock_take(&machine->lock);
    for (const struct process *process = machine->processes; process; process = process->next)
        count += !process->is_over;
    lock_release(&machine->lock);
    return count;
}

int machine_end_processes(struct machine *machine, enum killer killer)
{
    int r = -ETIMEDOUT;

    machine_set_killer(machine, killer);
    if (process_wait_all_started(machine, clock_after_ms(PROCESS_START_WAIT_MS))) {
        process_set_killer_all(machine, killer);
        r = cgroup_kill_processes(machine->host->cgroups, machine->id);
    }
    machine_set_killer(machine, KILLER_NONE);
    return r;
}

/* The lock keeps the machine from being reaped meanwhile: that begins in machine_destroy. */
void machine_kill(struct machine *machine, enum killer killer)
{
    lock_scope(&machine->lock);

    if (machine->state == MACHINE_ENDED)
        return;
    for (struct process *process = machine->processes; process; process = process->next)
        if (process->killer == KILLER_NONE)
            process_set_killer(process, killer);
    (void)runtime_guest_kill(&machine->guest);
}

/* Removes the first settled process from the list and returns it. Locked. */
static struct process *process_take_settled(struct machine *machine)
{
    struct process **slot = &machine->processes, *found;

    while (*slot && !(*slot)->is_settled)
        slot = &(*slot)->next;
    found = *slot;
    if (found)
        *slot = found->next;
    return found;
}

/* Drops the references of the list and of the timers. */
static void process_release(struct process *process)
{
    struct reactor *reactor = process->machine->host->reactor;

    if (reactor_cancel_timer(reactor, &process->timer))
        process_unref(process);
    if (reactor_cancel_timer(reactor, &process->restart_timer))
        process_unref(process);
    process_unref(process); // NOLINT(clang-analyzer-unix.Malloc): it does not count references
}

/* Tells the guest to forget the process, without waiting for a guest that does not read. Returns
 * false if this has to be called again. */
static bool process_offer_forget(struct process *process)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64);
    int r = 0;

    if (!process->is_forgotten)
        r = message_put_numbers(&out, FRAME_FORGET, process->number, 0, 0);
    /* Of one that is, the end of a frame may be unsent. */
    if (r == 0)
        r = channel_offer(&process->machine->channel, &out);
    process->is_forgotten = process->is_forgotten || r != -EAGAIN;
    return r <= 0 && r != -EAGAIN;
}

/* Returns whether the cgroup is gone too: background children may still run in it. */
static bool process_forget(struct process *process)
{
    const struct machine *machine = process->machine;

    if (!process_offer_forget(process))
        return false;
    if (cgroup_try_remove(machine->host->cgroups, machine->id, process->id) < 0)
        return false;
    process_unlimit(process);
    return true;
}

bool process_sweep(struct machine *machine)
{
    struct process *process, *left = NULL, *last = NULL;

    for (;;) {
        lock_take(&machine->lock);
        process = process_take_settled(machine);
        lock_release(&machine->lock);
        if (!process)
            break;
        if (process_forget(process)) {
            process_release(process);
            continue;
        }
        last = left ? last : process;
        process->next = left;
        left = process;
    }
    if (left) {
        lock_take(&machine->lock);
        last->next = machine->processes;
        machine->processes = left;
        lock_release(&machine->lock);
    } else {
        machine_close_meter(machine);
    }
    return left;
}

void process_drop_all(struct machine *machine)
{
    struct process *process, *next;

    lock_take(&machine->lock);
    process = machine->processes;
    machine->processes = NULL;
    lock_release(&machine->lock);
    for (; process; process = next) {
        next = process->next;
        process_release(process);
    }
}
