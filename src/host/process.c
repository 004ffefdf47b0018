// SPDX-License-Identifier: Apache-2.0
#include "host/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/xalloc.h"
#include "host/process_internal.h"
#include "host/process_spawn.h"
#include "kernel/cgroup.h"
#include "wire/message.h"

enum {
    EXIT_NOT_FOUND = 127,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_HOLT_FAILED = 125,
    EXIT_TIMED_OUT = 124,
    EXIT_SIGNAL_BASE = 128,
};

static void wake_reader(const struct process *process)
{
    const uint64_t one = 1;

    (void)!write(process->event_fd, &one, sizeof(one));
}

/* Locked. The first end is the one that counts. */
static void set_over(struct process *process, enum outcome outcome, int exit_code)
{
    if (process->is_over)
        return;
    process->is_over = true;
    process->end.outcome = outcome;
    process->end.exit_code = exit_code;
    process->end.duration_ms = clock_ms() - process->started_ms;
    process->is_started = true;
    wake_reader(process);
    (void)pthread_cond_broadcast(&process->machine->changed);
    if (process->is_abandoned)
        keeper_wake(process->machine->host->keeper);
}

static void set_doomed(struct process *process)
{
    (void)snprintf(process->end.reason, sizeof(process->end.reason), "%s", process->doom);
    set_over(process, OUTCOME_KILLED, EXIT_SIGNAL_BASE + SIGKILL);
}

static bool was_out_of_memory(const struct process *process)
{
    const struct machine *machine = process->machine;

    return cgroup_oom_kills(machine->host->cgroups, machine->guest.limits_group) >
           process->oom_kills_before;
}

/* Outcomes are stated, never guessed: the order below is that of certainty. */
static void set_exited(struct process *process, uint32_t status)
{
    int code = WIFSIGNALED(status) ? EXIT_SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
    bool is_killed = code == EXIT_SIGNAL_BASE + SIGKILL;

    process->end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (process->is_timed_out)
        set_over(process, OUTCOME_TIMED_OUT, EXIT_TIMED_OUT);
    else if (is_killed && process->doom)
        set_doomed(process);
    else if (is_killed && was_out_of_memory(process))
        set_over(process, OUTCOME_OOM, code);
    else
        set_over(process, WIFSIGNALED(status) ? OUTCOME_SIGNALED : OUTCOME_EXITED, code);
}

static bool take_exited(struct process *process, const struct frame *frame)
{
    struct message_exited exited;

    if (!message_get_exited(frame, &exited))
        return false;
    for (int i = 0; i < STREAM_COUNT; i++)
        if (exited.end[i] > process->out[i].received)
            return false;
    process->end.cpu_ms = exited.cpu_us / 1000;
    set_exited(process, exited.status);
    return true;
}

static bool take_failed(struct process *process, const struct frame *frame)
{
    struct message_failed failed;
    int code = EXIT_HOLT_FAILED;

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
    enum frame_stream stream;
    const char *data;
    uint64_t offset;
    size_t len;

    if (!message_get_stream(frame, &stream, &offset, &data, &len) ||
        offset != process->out[stream].received ||
        buf_add(&process->out[stream].data, data, len) < 0)
        return false;
    process->out[stream].received += len;
    if (process->is_abandoned)
        process_discard(process);
    else
        wake_reader(process);
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
    (void)frame;
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
    /* One that nobody asks about any more may still be writing. */
    if (process)
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
    } else if (process->doom) {
        set_doomed(process);
    } else if (machine->state == MACHINE_ENDED) {
        (void)snprintf(end->reason, sizeof(end->reason), "the sandbox was destroyed");
        set_over(process, OUTCOME_KILLED, EXIT_SIGNAL_BASE + SIGKILL);
    } else if (was_out_of_memory(process)) {
        set_over(process, OUTCOME_OOM, EXIT_SIGNAL_BASE + SIGKILL);
    } else {
        (void)snprintf(end->reason, sizeof(end->reason), "%.200s", machine->failure.msg);
        set_over(process, machine->is_gone ? OUTCOME_LOST : OUTCOME_NOT_STARTED, EXIT_HOLT_FAILED);
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
    if (!process->is_over) {
        process->is_timed_out = true;
        (void)cgroup_kill(machine->host->cgroups, machine->id, process->id);
    }
    (void)pthread_mutex_unlock(&machine->lock);
    process_unref(process); /* the timer's */
}

struct process *process_alloc(struct machine *machine)
{
    cleanup_close int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct process *process;

    if (event_fd < 0)
        return NULL;
    process = xcalloc(1, sizeof(*process));
    atomic_init(&process->refs, 1);
    process->machine = machine_ref(machine);
    process->event_fd = TAKE_FD(event_fd);
    process->started_ms = clock_ms();
    process->oom_kills_before =
        cgroup_oom_kills(machine->host->cgroups, machine->guest.limits_group);
    process->timer.fire = on_timeout;
    for (int i = 0; i < STREAM_COUNT; i++)
        process->out[i].data.max = FRAME_WINDOW;
    return process;
}

/* Gives it a number and puts it where frames find it. */
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
        process->number = ++machine->last_process;
        (void)snprintf(process->id, sizeof(process->id), "p%u", process->number);
        process->next = machine->processes;
        machine->processes = process;
        atomic_fetch_add(&process->refs, 1);
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

static int send_spawn(struct process *process, const struct process_spec *spec, struct err *err)
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

int process_start(struct machine *machine, const struct process_spec *spec, struct process **ret,
                  struct err *err)
{
    struct process *process = process_alloc(machine);
    int r;

    if (!process)
        return err_sys(err, -errno, "make an event descriptor");
    process->has_terminal = spec->has_terminal;
    process->is_input_closed = !spec->has_stdin && !spec->has_terminal;
    r = enlist(process, err);
    if (r == 0) {
        r = send_spawn(process, spec, err);
        if (r < 0)
            delist(process);
    }
    if (r < 0) {
        /* The list has dropped its reference; this is the caller's, which the analyzer cannot
         * count. */
        process_unref(process); // NOLINT(clang-analyzer-unix.Malloc)
        return r;
    }
    if (spec->timeout_ms > 0) {
        atomic_fetch_add(&process->refs, 1);
        reactor_set_timer(machine->host->reactor, &process->timer,
                          process->started_ms + spec->timeout_ms);
    }
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

/* Locked. Takes what fits; true if there was any. An acknowledgement that is due is in *ret_ack. */
static bool take_event(struct process *process, void *data, size_t size, struct process_event *ret,
                       bool *ret_ack)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        struct buf *from = &process->out[i].data;
        uint64_t read_up_to;

        if (from->len == 0)
            continue;
        ret->kind = i == STREAM_STDOUT ? PROCESS_STDOUT : PROCESS_STDERR;
        ret->len = from->len < size ? from->len : size;
        memcpy(data, from->data, ret->len);
        buf_consume(from, ret->len);
        read_up_to = process->out[i].received - from->len;
        *ret_ack = read_up_to - process->out[i].acked >= PROCESS_ACK_EVERY;
        if (*ret_ack)
            process->out[i].acked = read_up_to;
        return true;
    }
    if (!process->is_over)
        return false;
    ret->kind = PROCESS_ENDED;
    ret->end = process->end;
    return true;
}

static int wait_event(const struct process *process, int watch_fd)
{
    struct pollfd fds[2] = {
        { .fd = process->event_fd, .events = POLLIN },
        { .fd = watch_fd, .events = POLLRDHUP },
    };
    uint64_t count;

    if (poll(fds, 2, -1) < 0)
        return errno == EINTR ? 0 : -errno;
    if (fds[1].revents)
        return -ECANCELED;
    (void)!read(process->event_fd, &count, sizeof(count));
    return 0;
}

int process_next(struct process *process, int watch_fd, void *data, size_t size,
                 struct process_event *ret)
{
    struct machine *machine = process->machine;
    bool has_event, wants_ack = false;

    for (;;) {
        int r;

        (void)pthread_mutex_lock(&machine->lock);
        has_event = take_event(process, data, size, ret, &wants_ack);
        (void)pthread_mutex_unlock(&machine->lock);
        if (has_event)
            break;
        r = wait_event(process, watch_fd);
        if (r < 0)
            return r;
    }
    if (ret->kind == PROCESS_ENDED) {
        ret->end.memory_peak_bytes =
            cgroup_memory_peak(machine->host->cgroups, machine->guest.limits_group);
    } else if (wants_ack) {
        int stream = ret->kind == PROCESS_STDOUT ? STREAM_STDOUT : STREAM_STDERR;

        /* If the guest is gone its end is on the way, and that is what the reader gets. */
        (void)process_send_numbers(process, FRAME_ACK, (uint64_t)stream,
                                   process->out[stream].acked);
    }
    return 0;
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
        r = err_set(err, ERR_BUSY, "process '%s' has ended", process->id);
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

static int refuse_if_over(struct process *process, struct err *err)
{
    bool is_over;

    (void)pthread_mutex_lock(&process->machine->lock);
    is_over = process->is_over;
    (void)pthread_mutex_unlock(&process->machine->lock);
    return is_over ? err_set(err, ERR_BUSY, "process '%s' has ended", process->id) : 0;
}

int process_signal(struct process *process, int signal, bool tree, struct err *err)
{
    struct machine *machine = process->machine;
    int r = refuse_if_over(process, err);

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
    int r = refuse_if_over(process, err);

    if (r < 0)
        return r;
    if (!process->has_terminal)
        return err_set(err, ERR_INVALID, "process '%s' has no terminal", process->id);
    r = process_send_numbers(process, FRAME_RESIZE, rows, columns);
    return r < 0 ? err_sys(err, r, "resize the terminal of process '%s'", process->id) : 0;
}

void process_unref(struct process *process)
{
    if (!process || atomic_fetch_sub(&process->refs, 1) != 1)
        return;
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_done(&process->out[i].data);
    (void)fd_close(process->event_fd);
    machine_unref(process->machine);
    free(process);
}
