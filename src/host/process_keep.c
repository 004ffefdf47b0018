// SPDX-License-Identifier: Apache-2.0
/* Processes that outlive whoever asked for them: their client, a rollback, the daemon itself. */
#include <stdio.h>

#include "base/parse.h"
#include "host/process_internal.h"
#include "kernel/cgroup.h"
#include "wire/message.h"

enum { ACKS_A_SWEEP = 64 };

struct process *process_adopt(struct machine *machine, const struct frame *frame)
{
    struct message_state state;
    struct process *process = message_get_state(frame, &state) ? process_alloc(machine) : NULL;

    if (!process)
        return NULL;
    process->number = frame->process;
    (void)snprintf(process->id, sizeof(process->id), "p%u", process->number);
    for (int i = 0; i < STREAM_COUNT; i++)
        process->out[i].received = process->out[i].acked = state.acked[i];
    process->input_sent = state.input;
    process->input_acked = state.input_taken;
    process->is_input_closed = !state.is_input_open;
    process->has_terminal = state.has_terminal;
    process->started_ms -= state.age_ms;
    process->is_started = true;
    process->is_abandoned = true;
    process->next = machine->processes;
    machine->processes = process;
    return process;
}

/* Of a process whose end was told and forgotten. */
static void adopt_group(void *context, const char *group)
{
    struct machine *machine = context;
    struct process *process;
    uint64_t number;

    if (group[0] != 'p' || parse_u64(group + 1, &number) < 0 || number > INT32_MAX)
        return;
    (void)pthread_mutex_lock(&machine->lock);
    process = process_find_number(machine, (uint32_t)number) ? NULL : process_alloc(machine);
    if (process) {
        process->number = (uint32_t)number;
        (void)snprintf(process->id, sizeof(process->id), "%.15s", group);
        process->is_started = process->is_over = true;
        process->is_abandoned = process->is_forgotten = true;
        process->next = machine->processes;
        machine->processes = process;
    }
    if (number > machine->last_process)
        machine->last_process = (uint32_t)number;
    (void)pthread_mutex_unlock(&machine->lock);
}

void process_adopt_groups(struct machine *machine)
{
    (void)cgroup_list_children(machine->host->cgroups, machine->id, adopt_group, machine);
}

/* Locked. */
static bool wants_ack(const struct process *process, int stream)
{
    return process->is_abandoned && !process->is_over &&
           process->out[stream].received - process->out[stream].acked >= PROCESS_ACK_EVERY;
}

/* The keeper acknowledges it: the reactor's thread, which is here at times, must not wait for a
 * guest. */
void process_discard(struct process *process)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        buf_clear(&process->out[i].data);
        if (wants_ack(process, i))
            keeper_wake(process->machine->host->keeper);
    }
}

/* One whose discarded output the guest is to hear of, referenced; or NULL. */
static struct process *take_discarded(struct machine *machine, int *ret_stream)
{
    struct process *process;

    (void)pthread_mutex_lock(&machine->lock);
    for (process = machine->processes; process; process = process->next) {
        *ret_stream = wants_ack(process, STREAM_STDOUT) ? STREAM_STDOUT : STREAM_STDERR;
        if (wants_ack(process, *ret_stream))
            break;
    }
    if (process) {
        process->out[*ret_stream].acked = process->out[*ret_stream].received;
        atomic_fetch_add(&process->refs, 1);
    }
    (void)pthread_mutex_unlock(&machine->lock);
    return process;
}

/* Whether there may be more: a sandbox that writes without end must not keep the others waiting. */
static bool acknowledge_discarded(struct machine *machine)
{
    for (int i = 0; i < ACKS_A_SWEEP; i++) {
        int stream;
        struct process *process = take_discarded(machine, &stream);

        if (!process)
            return false;
        (void)process_send_numbers(process, FRAME_ACK, (uint64_t)stream,
                                   process->out[stream].acked);
        process_unref(process);
    }
    return true;
}

void process_abandon(struct process *process)
{
    struct machine *machine = process->machine;

    (void)pthread_mutex_lock(&machine->lock);
    process->is_abandoned = true;
    process_discard(process);
    (void)pthread_mutex_unlock(&machine->lock);
    process_unref(process);
    keeper_wake(machine->host->keeper);
}

void process_doom_all(struct machine *machine, const char *why)
{
    (void)pthread_mutex_lock(&machine->lock);
    for (struct process *process = machine->processes; process; process = process->next)
        if (!process->is_over)
            process->doom = why;
    (void)pthread_mutex_unlock(&machine->lock);
}

/* Locked. */
static bool has_unstarted(const struct machine *machine)
{
    for (const struct process *process = machine->processes; process; process = process->next)
        if (!process->is_started)
            return true;
    return false;
}

void process_settle(struct machine *machine)
{
    (void)pthread_mutex_lock(&machine->lock);
    while (!machine->is_gone && has_unstarted(machine))
        (void)pthread_cond_wait(&machine->changed, &machine->lock);
    (void)pthread_mutex_unlock(&machine->lock);
}

int machine_end_processes(struct machine *machine, const char *why)
{
    process_settle(machine);
    process_doom_all(machine, why);
    return cgroup_kill_processes(machine->host->cgroups, machine->id);
}

/* Takes the first that is over and unwanted off the list, behind those that were looked at. Locked.
 */
static struct process *take_ended(struct machine *machine)
{
    struct process **slot = &machine->processes, *found;

    while (*slot && !((*slot)->is_over && (*slot)->is_abandoned))
        slot = &(*slot)->next;
    found = *slot;
    if (found)
        *slot = found->next;
    return found;
}

/* Gives back the references of the list and of the timer. */
static void process_release(struct process *process)
{
    if (reactor_cancel_timer(process->machine->host->reactor, &process->timer))
        process_unref(process);
    process_unref(process); // NOLINT(clang-analyzer-unix.Malloc): it does not count references
}

/* Whether nothing is left of it: what it started in the background may go on in its group. */
static bool forget(struct process *process)
{
    const struct machine *machine = process->machine;

    if (!process->is_forgotten)
        (void)process_send_numbers(process, FRAME_FORGET, 0, 0);
    process->is_forgotten = true;
    return cgroup_try_remove(machine->host->cgroups, machine->id, process->id) == 0;
}

bool process_sweep(struct machine *machine)
{
    struct process *process, *left = NULL, *last = NULL;
    bool is_more = acknowledge_discarded(machine);

    for (;;) {
        (void)pthread_mutex_lock(&machine->lock);
        process = take_ended(machine);
        (void)pthread_mutex_unlock(&machine->lock);
        if (!process)
            break;
        if (forget(process)) {
            process_release(process);
            continue;
        }
        last = left ? last : process;
        process->next = left;
        left = process;
    }
    if (left) {
        (void)pthread_mutex_lock(&machine->lock);
        last->next = machine->processes;
        machine->processes = left;
        (void)pthread_mutex_unlock(&machine->lock);
    }
    return left || is_more;
}

void process_drop_all(struct machine *machine)
{
    struct process *process, *next;

    (void)pthread_mutex_lock(&machine->lock);
    process = machine->processes;
    machine->processes = NULL;
    (void)pthread_mutex_unlock(&machine->lock);
    for (; process; process = next) {
        next = process->next;
        process_release(process);
    }
}
