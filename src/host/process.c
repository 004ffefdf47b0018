// SPDX-License-Identifier: Apache-2.0
#include "host/process.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/xalloc.h"
#include "host/ledger.h"
#include "host/process_internal.h"
#include "host/process_restart.h"
#include "host/process_spawn.h"
#include "host/record_internal.h"
#include "host/scribe.h"
#include "host/shell_link.h"
#include "kernel/cgroup.h"
#include "wire/message.h"

enum {
    EXIT_NOT_FOUND = 127,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_TIMED_OUT = 124,
    EXIT_SIGNAL_BASE = 128,
};

/* Locked. The first end is the one that counts. */
static void set_over(struct process *process, enum outcome outcome, int exit_code)
{
    struct machine *machine = process->machine;

    if (process->is_over)
        return;
    if (process_wants_restart(process, outcome, exit_code)) {
        process_rest(process);
        return;
    }
    process->is_over = true;
    process->is_between = false;
    process->end.outcome = outcome;
    process->end.exit_code = exit_code;
    process->end.duration_ms = clock_ms() - process->started_ms;
    process->is_started = true;
    record_finish(process->record, &process->end, clock_wall_ms());
    shell_link_wake(process->shell);
    (void)pthread_cond_broadcast(&machine->changed);
    if (machine->ledger && !machine->is_released)
        scribe_add(machine->host->scribe, process);
    else
        record_set_writer(process->record, NULL);
}

void process_set_killed(struct process *process, enum killer killer, int signal)
{
    static const char *const reasons[] = {
        [KILLER_NONE] = "",
        [KILLER_USER] = "by a signal that a client sent",
        [KILLER_CLIENT] = "its client went away",
        [KILLER_ROLLBACK] = "the sandbox was rolled back",
        [KILLER_STOP] = "the sandbox was stopped",
        [KILLER_DESTROY] = "the sandbox was destroyed",
        [KILLER_QUOTA] = "the time of the sandbox is over",
    };

    (void)snprintf(process->end.reason, sizeof(process->end.reason), "%s", reasons[killer]);
    process->end.killer = killer;
    process->end.signal = signal;
    set_over(process, OUTCOME_KILLED, EXIT_SIGNAL_BASE + signal);
}

static bool was_out_of_memory(const struct process *process)
{
    const struct machine *machine = process->machine;

    return cgroup_meter_oom_kills(&machine->meter) > process->record->oom_kills_before;
}

static bool was_sent(const struct process *process, int signal)
{
    return signal > 0 && (process->signals_sent >> (signal - 1) & 1);
}

/* Outcomes are stated, never guessed: the order below is that of certainty. */
static void set_exited(struct process *process, uint32_t status)
{
    int signal = WIFSIGNALED(status) ? (int)WTERMSIG(status) : 0;
    int code = signal ? EXIT_SIGNAL_BASE + signal : (int)WEXITSTATUS(status);
    /* A shell whose command was killed says so with its own exit code. */
    bool is_killed = code == EXIT_SIGNAL_BASE + SIGKILL;

    process->end.signal = signal;
    if (process->is_timed_out)
        set_over(process, OUTCOME_TIMED_OUT, EXIT_TIMED_OUT);
    else if (is_killed && process->doom)
        process_set_killed(process, process->doom, SIGKILL);
    else if (was_sent(process, signal))
        process_set_killed(process, KILLER_USER, signal);
    else if (is_killed && was_out_of_memory(process))
        set_over(process, OUTCOME_OOM, code);
    else
        set_over(process, signal ? OUTCOME_SIGNALED : OUTCOME_EXITED, code);
}

static bool take_exited(struct process *process, const struct frame *frame)
{
    struct message_exited exited;

    if (!message_get_exited(frame, &exited))
        return false;
    for (int i = 0; i < PROCESS_STREAMS; i++)
        if (process->base[i] + exited.end[i] > record_received(process->record, i))
            return false;
    process->end.cpu_ms = exited.cpu_us / 1000;
    process->end.memory_peak_bytes = exited.peak_bytes;
    set_exited(process, exited.status);
    return true;
}

static bool take_failed(struct process *process, const struct frame *frame)
{
    struct message_failed failed;
    int code = PROCESS_EXIT_HOLT;

    if (!message_get_failed(frame, &failed))
        return false;
    if (failed.step == FAILED_EXEC)
        code = failed.errnum == ENOENT || failed.errnum == ENOTDIR ? EXIT_NOT_FOUND
                                                                   : EXIT_NOT_EXECUTABLE;
    process_explain_failure(&failed, process->end.reason, sizeof(process->end.reason));
    set_over(process, OUTCOME_NOT_STARTED, code);
    return true;
}

/* The guest may send no more than the window holds, and nothing twice. */
static bool take_output(struct process *process, const struct frame *frame)
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
    if (machine->ledger && unspooled >= machine->host->output_memory)
        scribe_add(machine->host->scribe, process);
    return true;
}

static bool take_input_ack(struct process *process, const struct frame *frame)
{
    uint64_t offset, none;

    if (!message_get_numbers(frame, &offset, &none) || offset < process->input_acked ||
        offset > process->input_sent)
        return false;
    process->input_acked = offset;
    (void)pthread_cond_broadcast(&process->machine->changed);
    return true;
}

static bool take_started(struct process *process, const struct frame *frame)
{
    uint64_t pid, none;

    if (!message_get_numbers(frame, &pid, &none))
        return false;
    record_set_pid(process->record, (uint32_t)pid);
    process->is_started = true;
    (void)pthread_cond_broadcast(&process->machine->changed);
    return true;
}

/* After a reconnect; for one that is known there is nothing new in it. */
static bool take_state(struct process *process, const struct frame *frame)
{
    struct message_state state;

    (void)process;
    return message_get_state(frame, &state);
}

/* What a guest may say about a process; anything else is not acceptable. */
static bool (*const takers[FRAME_TYPES])(struct process *process, const struct frame *frame) = {
    [FRAME_STARTED] = take_started,     [FRAME_FAILED] = take_failed,
    [FRAME_OUTPUT] = take_output,       [FRAME_EXITED] = take_exited,
    [FRAME_INPUT_ACK] = take_input_ack, [FRAME_STATE] = take_state,
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

    (void)pthread_mutex_lock(&machine->lock);
    process = process_find_number(machine, frame->process);
    if (!process && frame->type == FRAME_STATE && machine->state == MACHINE_BOOTING) {
        process = process_adopt(machine, frame);
        is_ok = process;
    }
    /* A guest that is yet to forget one may say again what is known. */
    if (process && !process->is_settled && shell_link_wants(frame))
        is_ok = shell_link_take(process->shell, frame);
    else if (process && !process->is_settled)
        is_ok = takers[frame->type] && takers[frame->type](process, frame);
    (void)pthread_mutex_unlock(&machine->lock);
    return is_ok;
}

static void end_with_sandbox(struct process *process)
{
    const struct machine *machine = process->machine;
    struct process_end *end = &process->end;

    if (process->is_over)
        return;
    if (process->is_timed_out) {
        set_over(process, OUTCOME_TIMED_OUT, EXIT_TIMED_OUT);
    } else if (machine->is_released) {
        (void)snprintf(end->reason, sizeof(end->reason), "the daemon stops, the process goes on");
        set_over(process, OUTCOME_LOST, PROCESS_EXIT_HOLT);
    } else if (process->doom) {
        process_set_killed(process, process->doom, SIGKILL);
    } else if (machine->state == MACHINE_ENDED) {
        process_set_killed(process, KILLER_DESTROY, SIGKILL);
    } else if (was_out_of_memory(process)) {
        set_over(process, OUTCOME_OOM, EXIT_SIGNAL_BASE + SIGKILL);
    } else {
        (void)snprintf(end->reason, sizeof(end->reason), "%.200s", machine->failure.msg);
        set_over(process, machine->is_gone ? OUTCOME_LOST : OUTCOME_NOT_STARTED, PROCESS_EXIT_HOLT);
    }
}

void process_end_all(struct machine *machine)
{
    for (struct process *process = machine->processes; process; process = process->next)
        end_with_sandbox(process);
}

/* On the reactor's thread. The group is killed whole: a setsid or double fork changes nothing. */
static void on_timeout(struct reactor_timer *timer)
{
    struct process *process =
        (struct process *)(void *)((char *)timer - offsetof(struct process, timer));
    struct machine *machine = process->machine;

    (void)pthread_mutex_lock(&machine->lock);
    if (process->is_between) {
        set_over(process, OUTCOME_TIMED_OUT, EXIT_TIMED_OUT);
    } else if (!process->is_over) {
        process->is_timed_out = true;
        (void)cgroup_kill(machine->host->cgroups, machine->id, process->id);
    }
    (void)pthread_mutex_unlock(&machine->lock);
    process_unref(process); /* the timer's */
}

struct process *process_alloc(struct machine *machine, struct record *record)
{
    struct process *process = xcalloc(1, sizeof(*process));

    atomic_init(&process->refs, 1);
    process->machine = machine_ref(machine);
    process->number = record->number;
    memcpy(process->id, record->id, sizeof(process->id));
    process->record = record;
    process->started_ms = process->incarnated_ms = clock_ms();
    process->timer.fire = on_timeout;
    (void)pthread_mutex_init(&process->ack_lock, NULL);
    return process;
}

/* A record with a number, in the sandbox's ledger if it is one that stays. */
static int make_record(struct machine *machine, const struct process_spec *spec,
                       struct record **ret, struct err *err)
{
    uint32_t number;

    if (machine->ledger)
        return ledger_add(machine->ledger, spec, ret, err);
    (void)pthread_mutex_lock(&machine->lock);
    number = ++machine->last_process;
    (void)pthread_mutex_unlock(&machine->lock);
    *ret = record_new(number, spec, 0);
    return 0;
}

static void withdraw_record(struct machine *machine, struct record *record)
{
    if (machine->ledger)
        ledger_withdraw(machine->ledger, record);
}

/* Puts it where frames find it. */
static int enlist(struct process *process, struct err *err)
{
    struct machine *machine = process->machine;
    int r = 0;

    (void)pthread_mutex_lock(&machine->lock);
    if (machine->state == MACHINE_FAILED) {
        *err = machine->failure;
        r = -EIO;
    } else if (machine->state != MACHINE_ACTIVE) {
        r = err_set(err, ERR_BUSY, "sandbox '%s' is being destroyed", machine->id);
    } else {
        process->next = machine->processes;
        machine->processes = process_ref(process);
    }
    (void)pthread_mutex_unlock(&machine->lock);
    return r;
}

static void delist(struct process *process)
{
    struct machine *machine = process->machine;
    struct process **slot = &machine->processes;

    (void)pthread_mutex_lock(&machine->lock);
    while (*slot && *slot != process)
        slot = &(*slot)->next;
    if (*slot)
        *slot = process->next;
    (void)pthread_mutex_unlock(&machine->lock);
    process_unref(process);
}

int process_send_spawn(struct process *process, const struct process_spec *spec, struct err *err)
{
    struct machine *machine = process->machine;
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    cleanup_close int cgroup_fd = -EBADF;
    int r = cgroup_open_child(machine->host->cgroups, machine->id, process->id,
                              machine->guest.first_uid, &cgroup_fd, err);

    fault_point("exec.grouped");
    if (r == 0)
        r = process_put_spawn(&out, process->number, spec, err);
    if (r < 0)
        return r;
    r = channel_send(&machine->channel, &out, &cgroup_fd, 1);
    fault_point("exec.sent");
    return r < 0 ? err_sys(err, r, "send the process to sandbox '%s'", machine->id) : 0;
}

void process_set_timeout(struct process *process)
{
    uint64_t timeout_ms = process->record->spec->timeout_ms;

    if (timeout_ms > 0)
        reactor_set_timer(process->machine->host->reactor, &process_ref(process)->timer,
                          process->started_ms + timeout_ms);
}

static int launch(struct process *process, const struct process_spec *spec, struct err *err)
{
    const struct reader_spec all = { .follows = true, .is_flow = true };
    int r = 0;

    if (!spec->is_detached)
        r = reader_open(process->record, &all, &process->reader, err);
    if (r == 0)
        r = enlist(process, err);
    if (r < 0)
        return r;
    r = process_send_spawn(process, spec, err);
    if (r < 0)
        delist(process);
    return r;
}

int process_start(struct machine *machine, const struct process_spec *spec, struct process **ret,
                  struct err *err)
{
    struct process *process;
    struct record *record;
    int r = make_record(machine, spec, &record, err);

    if (r < 0)
        return r;
    record->oom_kills_before = cgroup_meter_oom_kills(&machine->meter);
    process = process_alloc(machine, record);
    process->has_terminal = spec->has_terminal;
    process->is_input_closed = !spec->has_stdin && !spec->has_terminal;
    process->is_recorded = spec->is_detached;
    record_set_writer(record, process);
    process->shell = spec->shell ? shell_link_new(NULL) : NULL;
    r = launch(process, spec, err);
    if (r < 0) {
        record_set_writer(record, NULL);
        withdraw_record(machine, record);
        /* The record and the list have dropped theirs; this is the caller's, which the analyzer
         * cannot count. */
        process_abandon(process); // NOLINT(clang-analyzer-unix.Malloc)
        return r;
    }
    process_set_timeout(process);
    if (machine->ledger && !spec->is_detached)
        scribe_add_later(machine->host->scribe, process);
    *ret = process;
    return 0;
}

int process_find(struct machine *machine, const char *id, struct process **ret, struct err *err)
{
    struct process *process;

    (void)pthread_mutex_lock(&machine->lock);
    process = machine->processes;
    while (process && strcmp(process->id, id) != 0)
        process = process->next;
    if (process)
        atomic_fetch_add(&process->refs, 1);
    (void)pthread_mutex_unlock(&machine->lock);
    if (!process)
        return err_refuse(err, CAUSE_PROCESS_NOT_FOUND, "no process '%.20s' in sandbox '%s'", id,
                          machine->id);
    *ret = process;
    return 0;
}

const char *process_id(const struct process *process)
{
    return process->id;
}

int process_send_numbers(struct process *process, enum frame_type type, uint64_t first,
                         uint64_t second)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64);
    int r = message_put_numbers(&out, type, process->number, first, second);

    return r < 0 ? r : channel_send(&process->machine->channel, &out, NULL, 0);
}

int process_next(struct process *process, int watch_fd, void *data, size_t size,
                 struct reader_event *ret)
{
    return reader_next(process->reader, watch_fd, data, size, ret);
}

struct record *process_record(struct process *process)
{
    return process->record;
}

void process_acknowledge(struct process *process)
{
    bool is_kept = process->machine->ledger;

    (void)pthread_mutex_lock(&process->ack_lock);
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        uint64_t settled = record_settled(process->record, i, is_kept);

        if (settled < atomic_load(&process->acked[i]) + PROCESS_ACK_EVERY)
            continue;
        atomic_store(&process->acked[i], settled);
        /* If the guest is gone its end is on the way, and that is what readers get. */
        (void)process_send_numbers(process, FRAME_ACK, (uint64_t)i, settled - process->base[i]);
    }
    (void)pthread_mutex_unlock(&process->ack_lock);
}

static int refuse_over(const struct process *process, struct err *err)
{
    return err_refuse(err, CAUSE_PROCESS_ENDED, "process '%s' has ended", process->id);
}

/* Waits for room in the window and claims it: the offset to send at. */
static int claim_input(struct process *process, size_t len, bool eof, uint64_t *ret_offset,
                       struct err *err)
{
    struct machine *machine = process->machine;
    int r = 0;

    (void)pthread_mutex_lock(&machine->lock);
    while (!process->is_over && !process->is_input_closed &&
           process->input_sent + len - process->input_acked > FRAME_WINDOW)
        (void)pthread_cond_wait(&machine->changed, &machine->lock);
    if (process->is_over) {
        r = refuse_over(process, err);
    } else if (process->is_input_closed) {
        r = err_set(err, ERR_BUSY, "stdin of process '%s' is closed", process->id);
    } else {
        *ret_offset = process->input_sent;
        process->input_sent += len;
        process->is_input_closed = eof;
    }
    (void)pthread_mutex_unlock(&machine->lock);
    return r;
}

int process_send_input(struct process *process, const void *data, size_t len, bool eof,
                       struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(PROCESS_INPUT_MAX + 4096);
    uint64_t offset = 0;
    int r = claim_input(process, len, eof, &offset, err);

    if (r < 0)
        return r;
    if (len > 0)
        r = message_put_input(&out, process->number, offset, data, len);
    if (r == 0 && eof)
        r = message_put_numbers(&out, FRAME_INPUT_EOF, process->number, offset + len, 0);
    if (r == 0 && out.len > 0)
        r = channel_send(&process->machine->channel, &out, NULL, 0);
    return r < 0 ? err_sys(err, r, "send input to process '%s'", process->id) : 0;
}

bool process_is_over(struct process *process)
{
    bool is_over;

    (void)pthread_mutex_lock(&process->machine->lock);
    is_over = process->is_over;
    (void)pthread_mutex_unlock(&process->machine->lock);
    return is_over;
}

/* Notes that a client sends this signal, before it has an effect. */
static int claim_signal(struct process *process, int signal, struct err *err)
{
    struct machine *machine = process->machine;
    bool is_over;

    (void)pthread_mutex_lock(&machine->lock);
    /* One that is just being started again would not be there to take it. */
    while (!process->is_over && !process->is_started)
        (void)pthread_cond_wait(&machine->changed, &machine->lock);
    is_over = process->is_over;
    process->signals_sent |= (uint64_t)1 << (signal - 1);
    if (process->is_between) /* there is nobody to take it */
        process_set_killed(process, KILLER_USER, signal);
    (void)pthread_mutex_unlock(&machine->lock);
    return is_over ? refuse_over(process, err) : 0;
}

int process_signal(struct process *process, int signal, bool tree, struct err *err)
{
    struct machine *machine = process->machine;
    int r = claim_signal(process, signal, err);

    if (r < 0)
        return r;
    if (tree)
        r = cgroup_signal(machine->host->cgroups, machine->id, process->id, signal);
    else
        r = process_send_numbers(process, FRAME_SIGNAL, (uint64_t)signal, 0);
    return r < 0 ? err_sys(err, r, "signal process '%s'", process->id) : 0;
}

int process_resize(struct process *process, uint16_t rows, uint16_t columns, struct err *err)
{
    int r;

    if (process_is_over(process))
        return refuse_over(process, err);
    if (!process->has_terminal)
        return err_set(err, ERR_INVALID, "process '%s' has no terminal", process->id);
    r = process_send_numbers(process, FRAME_RESIZE, rows, columns);
    return r < 0 ? err_sys(err, r, "resize the terminal of process '%s'", process->id) : 0;
}

struct process *process_ref(struct process *process)
{
    atomic_fetch_add(&process->refs, 1);
    return process;
}

void process_unref(struct process *process)
{
    if (!process || atomic_fetch_sub(&process->refs, 1) != 1)
        return;
    reader_close(process->reader);
    (void)pthread_mutex_destroy(&process->ack_lock);
    record_unref(process->record);
    shell_link_free(process->shell);
    machine_unref(process->machine);
    free(process);
}
