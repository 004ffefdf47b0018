// SPDX-License-Identifier: Apache-2.0
/* Handles the frames of a guest about its processes, and sets their outcomes. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/json.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/observe/event_internal.h"
#include "host/observe/metrics_internal.h"
#include "host/process/process_internal.h"
#include "host/process/record_internal.h"
#include "host/process/restart.h"
#include "host/process/spawn.h"
#include "host/process/writer.h"
#include "host/shell/link.h"
#include "kernel/cgroup/cgroup.h"
#include "wire/message.h"

enum {
    EXIT_NOT_FOUND = 127,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_TIMED_OUT = 124,
    EXIT_SIGNAL_BASE = 128,
};

const char *process_outcome_name(enum outcome outcome)
{
    static const char *const words[] = {
        [OUTCOME_NONE] = "none",         [OUTCOME_EXITED] = "exited",
        [OUTCOME_SIGNALED] = "signaled", [OUTCOME_TIMED_OUT] = "timed-out",
        [OUTCOME_OOM] = "oom",           [OUTCOME_KILLED] = "killed",
        [OUTCOME_LOST] = "lost",         [OUTCOME_NOT_STARTED] = "not-started",
    };

    return words[outcome];
}

/* Locked. */
static void process_emit_end(const struct process *process)
{
    const struct machine *machine = process->machine;

    metrics_add(&machine->host->metrics->process_ends[process->end.outcome]);
    machine_event(machine, EVENT_PROCESS_EXITED, process_end_fields(process->id, &process->end));
}

/* Locked. The event has only the name of the command, as arguments may contain secrets. */
static void process_emit_start(struct process *process, uint32_t pid)
{
    enum { COMMAND_MAX = 256 };
    char *const *args = process->record->spec->args;
    char command[COMMAND_MAX];

    (void)snprintf(command, sizeof(command), "%s", args && args[0] ? args[0] : "");
    machine_event(process->machine, EVENT_PROCESS_STARTED,
                  json_pack("{s:s, s:I, s:o}", "process", process->id, "pid", (json_int_t)pid,
                            "command", json_text(command)));
    if (process->began_ns > 0)
        (void)metrics_note(process->machine->host->metrics, TIMED_EXEC, process->began_ns, 0);
    process->began_ns = 0;
}

/* Locked. Only the first end of a process counts. */
static void process_set_over(struct process *process, enum outcome outcome, int exit_code)
{
    struct machine *machine = process->machine;

    if (process->is_over)
        return;
    if (outcome == OUTCOME_OOM)
        machine_event(machine, EVENT_PROCESS_OOM, json_pack("{s:s}", "process", process->id));
    if (process_wants_restart(process, outcome, exit_code)) {
        process_schedule_restart(process);
        return;
    }
    process->is_over = true;
    process->is_restart_pending = false;
    process->end.outcome = outcome;
    process->end.exit_code = exit_code;
    process->end.duration_ms = clock_ms() - process->started_ms;
    process->is_started = true;
    if (machine->is_released) {
        record_leave(process->record, &process->end);
    } else {
        record_finish(process->record, &process->end, clock_wall_ms());
        process_emit_end(process);
    }
    shell_link_wake(process->shell);
    cond_broadcast(&machine->changed);
    if (machine->process_table && !machine->is_released)
        process_writer_add(machine->host->writer, process);
    else
        record_set_writer(process->record, NULL);
}

void process_set_killed(struct process *process, enum killer killer, int signal)
{
    static const char *const reasons[] = {
        [KILLER_NONE] = "",
        [KILLER_USER] = "a client sent a signal",
        [KILLER_CLIENT] = "the client disconnected",
        [KILLER_ROLLBACK] = "the sandbox was rolled back",
        [KILLER_STOP] = "the sandbox was stopped",
        [KILLER_DESTROY] = "the sandbox was destroyed",
        [KILLER_QUOTA] = "the sandbox expired",
    };

    (void)snprintf(process->end.reason, sizeof(process->end.reason), "%s", reasons[killer]);
    process->end.killer = killer;
    process->end.signal = signal;
    process_set_over(process, OUTCOME_KILLED, EXIT_SIGNAL_BASE + signal);
}

static bool process_was_oom_killed(const struct process *process)
{
    return machine_count_oom_kills(process->machine) > process->record->oom_kills_before ||
           cgroup_meter_oom_kills(&process->meter) > 0;
}

static bool process_was_sent(const struct process *process, int signal)
{
    return signal > 0 && (process->signals_sent >> (signal - 1) & 1);
}

/* The most certain cause comes first. */
static void process_set_exited(struct process *process, uint32_t status)
{
    int signal = WIFSIGNALED(status) ? (int)WTERMSIG(status) : 0;
    int code = signal ? EXIT_SIGNAL_BASE + signal : (int)WEXITSTATUS(status);
    /* A shell whose command was killed exits with 128 + 9. */
    bool is_killed = code == EXIT_SIGNAL_BASE + SIGKILL;

    process->end.signal = signal;
    if (process->is_timed_out)
        process_set_over(process, OUTCOME_TIMED_OUT, EXIT_TIMED_OUT);
    else if (is_killed && process->killer)
        process_set_killed(process, process->killer, SIGKILL);
    else if (process_was_sent(process, signal))
        process_set_killed(process, KILLER_USER, signal);
    else if (is_killed && process_was_oom_killed(process))
        process_set_over(process, OUTCOME_OOM, code);
    else
        process_set_over(process, signal ? OUTCOME_SIGNALED : OUTCOME_EXITED, code);
}

static bool frame_exited(struct process *process, const struct frame *frame)
{
    struct message_exited exited;

    if (!message_get_exited(frame, &exited))
        return false;
    for (int i = 0; i < PROCESS_STREAMS; i++)
        if (process->base[i] + exited.end[i] > record_received(process->record, i))
            return false;
    process->end.cpu_ms = exited.cpu_us / 1000;
    process->end.memory_peak_bytes = exited.peak_bytes;
    process_set_exited(process, exited.status);
    return true;
}

static bool frame_failed(struct process *process, const struct frame *frame)
{
    static const enum start_failure start_failures[FAILED_STEPS] = {
        [FAILED_CWD] = START_FAILURE_CWD,
        [FAILED_EXEC] = START_FAILURE_COMMAND,
        [FAILED_USER] = START_FAILURE_USER,
    };
    struct message_failed failed;
    int code = PROCESS_EXIT_HOLT;

    if (!message_get_failed(frame, &failed))
        return false;
    if (failed.step == FAILED_EXEC)
        code = failed.errnum == ENOENT || failed.errnum == ENOTDIR ? EXIT_NOT_FOUND
                                                                   : EXIT_NOT_EXECUTABLE;
    process->end.start_failure = start_failures[failed.step];
    process_explain_failure(&failed, process->end.reason, sizeof(process->end.reason));
    process_set_over(process, OUTCOME_NOT_STARTED, code);
    return true;
}

/* Rejects output beyond the window, and output that was already received. */
static bool frame_output(struct process *process, const struct frame *frame)
{
    const struct machine *machine = process->machine;
    enum frame_stream stream;
    const char *data;
    uint64_t offset, unspooled;
    size_t len;

    if (!message_get_stream(frame, &stream, &offset, &data, &len) ||
        process->base[stream] + offset !=
            record_received(process->record, (enum output_stream)stream) ||
        process->base[stream] + offset + len - atomic_load(&process->acked[stream]) >
            FRAME_WINDOW ||
        record_add(process->record, (enum output_stream)stream, data, len, &unspooled) < 0)
        return false;
    if (machine->process_table && unspooled >= machine->host->output_memory)
        process_writer_add(machine->host->writer, process);
    return true;
}

static bool frame_input_ack(struct process *process, const struct frame *frame)
{
    uint64_t offset, none;

    if (!message_get_numbers(frame, &offset, &none) || offset < process->input_acked ||
        offset > process->input_sent)
        return false;
    process->input_acked = offset;
    cond_broadcast(&process->machine->changed);
    return true;
}

static bool frame_started(struct process *process, const struct frame *frame)
{
    uint64_t pid, none;

    if (!message_get_numbers(frame, &pid, &none))
        return false;
    record_set_pid(process->record, (uint32_t)pid);
    if (!process->is_started)
        process_emit_start(process, (uint32_t)pid);
    process->is_started = true;
    /* The cgroup may have been killed before the process was in it. */
    if (process->is_timed_out || process->killer)
        (void)cgroup_kill(process->machine->host->cgroups, process->machine->id, process->id);
    cond_broadcast(&process->machine->changed);
    return true;
}

/* A guest sends states after a reconnect. That of a known process has nothing new. */
static bool frame_state(struct process *process, const struct frame *frame)
{
    struct message_state state;

    (void)process;
    return message_get_state(frame, &state);
}

/* The frames that a guest may send about a process; any other is a protocol error. */
static bool (*const handlers[FRAME_TYPES])(struct process *process, const struct frame *frame) = {
    [FRAME_STARTED] = frame_started,     [FRAME_FAILED] = frame_failed,
    [FRAME_OUTPUT] = frame_output,       [FRAME_EXITED] = frame_exited,
    [FRAME_INPUT_ACK] = frame_input_ack, [FRAME_STATE] = frame_state,
};

struct process *process_find_number(struct machine *machine, uint32_t number)
{
    struct process *process = machine->processes;

    while (process && process->number != number)
        process = process->next;
    return process;
}

bool process_frame(struct machine *machine, const struct frame *frame)
{
    struct process *process;
    bool is_ok = true;

    lock_take(&machine->lock);
    process = process_find_number(machine, frame->process);
    if (!process && frame->type == FRAME_STATE && machine->state == MACHINE_BOOTING) {
        process = process_adopt(machine, frame);
        is_ok = process;
    }
    /* A guest that has not forgotten a settled process may repeat frames. */
    if (process && !process->is_settled && shell_link_wants(frame))
        is_ok = shell_link_frame(process->shell, frame);
    else if (process && !process->is_settled)
        is_ok = handlers[frame->type] && handlers[frame->type](process, frame);
    lock_release(&machine->lock);
    return is_ok;
}

static void process_end_with_machine(struct process *process)
{
    const struct machine *machine = process->machine;
    struct process_end *end = &process->end;

    if (process->is_over)
        return;
    if (process->is_timed_out) {
        process_set_over(process, OUTCOME_TIMED_OUT, EXIT_TIMED_OUT);
    } else if (machine->is_released) {
        (void)snprintf(end->reason, sizeof(end->reason),
                       "the daemon is stopping; the process keeps running");
        process_set_over(process, OUTCOME_LOST, PROCESS_EXIT_HOLT);
    } else if (process->killer) {
        process_set_killed(process, process->killer, SIGKILL);
    } else if (machine->state == MACHINE_ENDED) {
        process_set_killed(process, KILLER_DESTROY, SIGKILL);
    } else if (process_was_oom_killed(process)) {
        process_set_over(process, OUTCOME_OOM, EXIT_SIGNAL_BASE + SIGKILL);
    } else {
        (void)snprintf(end->reason, sizeof(end->reason), "%.200s", machine->failure.msg);
        process_set_over(
            process, machine->is_gone || machine->is_exhausted ? OUTCOME_LOST : OUTCOME_NOT_STARTED,
            PROCESS_EXIT_HOLT);
    }
}

void process_end_all(struct machine *machine)
{
    for (struct process *process = machine->processes; process; process = process->next)
        process_end_with_machine(process);
}

/* Runs on the reactor's thread. Kills the whole cgroup, so that setsid and double forks do not
 * escape. */
void process_on_timeout(struct reactor_timer *timer)
{
    struct process *process =
        (struct process *)(void *)((char *)timer - offsetof(struct process, timer));
    struct machine *machine = process->machine;

    lock_take(&machine->lock);
    if (process->is_restart_pending) {
        process_set_over(process, OUTCOME_TIMED_OUT, EXIT_TIMED_OUT);
    } else if (!process->is_over) {
        process->is_timed_out = true;
        (void)cgroup_kill(machine->host->cgroups, machine->id, process->id);
    }
    lock_release(&machine->lock);
    process_unref(process); /* the timer's reference */
}
