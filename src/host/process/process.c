// SPDX-License-Identifier: Apache-2.0
#include "host/process/process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/image/defaults.h"
#include "host/machine/machine_internal.h"
#include "host/net/net.h"
#include "host/observe/event_internal.h"
#include "host/observe/metrics_internal.h"
#include "host/process/cell.h"
#include "host/process/process_internal.h"
#include "host/process/record_internal.h"
#include "host/process/spawn.h"
#include "host/process/table.h"
#include "host/process/writer.h"
#include "host/shell/link.h"
#include "kernel/cgroup/cgroup.h"
#include "wire/message.h"

enum { WATCH_EVERY_MS = 1000 }; /* interval of checks for a client that hung up */

struct process *process_alloc(struct machine *machine, struct record *record)
{
    struct process *process = xcalloc(1, sizeof(*process));

    atomic_init(&process->refs, 1);
    process->machine = machine_ref(machine);
    process->number = record->number;
    memcpy(process->id, record->id, sizeof(process->id));
    process->record = record;
    process->started_ms = process->run_started_ms = clock_ms();
    process->timer.fire = process_on_timeout;
    process->meter = (struct cgroup_meter)CGROUP_METER_INIT;
    lock_init(&process->ack_lock, LOCK_ACKNOWLEDGEMENT);
    return process;
}

/* Allocates a record with the next number, in the process table if the machine is a sandbox's. */
static int record_make(struct machine *machine, const struct process_spec *spec,
                       struct record **ret, struct err *err)
{
    uint32_t number;

    if (machine->process_table)
        return process_table_add(machine->process_table, spec, ret, err);
    lock_take(&machine->lock);
    number = ++machine->last_process;
    lock_release(&machine->lock);
    *ret = record_new(number, spec, 0);
    return 0;
}

static void record_withdraw(struct machine *machine, struct record *record)
{
    if (machine->process_table)
        process_table_withdraw(machine->process_table, record);
}

/* Adds the process to the machine's list, where frames find it. */
static int process_enlist(struct process *process, struct err *err)
{
    struct machine *machine = process->machine;
    int r = 0;

    lock_take(&machine->lock);
    if (machine->state == MACHINE_FAILED) {
        *err = machine->failure;
        r = -EIO;
    } else if (machine->state != MACHINE_ACTIVE) {
        r = err_set(err, ERR_BUSY, "sandbox '%s' is being destroyed", machine->id);
    } else {
        process->next = machine->processes;
        machine->processes = process_ref(process);
    }
    lock_release(&machine->lock);
    return r;
}

static void process_delist(struct process *process)
{
    struct machine *machine = process->machine;
    struct process **slot = &machine->processes;

    lock_take(&machine->lock);
    while (*slot && *slot != process)
        slot = &(*slot)->next;
    if (*slot)
        *slot = process->next;
    lock_release(&machine->lock);
    process_unref(process);
}

/* Returns a list of all variables of two lists (NULL: none), which keep the texts. */
static char **environment_join(char *const *one, char *const *other)
{
    char *const *const lists[] = { one, other };
    char **joined = xcalloc(1, sizeof(*joined));
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        for (char *const *each = lists[i]; each && *each; each++) {
            joined = xreallocarray(joined, count + 2, sizeof(*joined));
            joined[count++] = *each;
            joined[count] = NULL;
        }
    }
    return joined;
}

int process_send_spawn(struct process *process, const struct process_spec *spec, struct err *err)
{
    struct machine *machine = process->machine;
    struct spawn_place place = { .is_cell = false };
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    cleanup_with(image_defaults_done) struct image_defaults defaults = { .env = NULL };
    cleanup_free char **models = net_environment(machine->host->net, machine);
    cleanup_free char **env = environment_join(machine->env, models);
    cleanup_with(cell_fds_close) struct cell_fds cell = CELL_FDS_INIT;
    cleanup_close int cgroup_fd = -EBADF;
    int fds[CELL_FDS + 1];
    size_t fd_count = 0;
    int r = cgroup_open_child(machine->host->cgroups, machine->id, process->id,
                              machine->guest.first_uid, &cgroup_fd, err);

    fault_point("exec.grouped");
    host_files_limit(machine->host, machine->limit_files, &place.files);
    place.env = env;
    image_defaults_take(machine->host, machine->template, spec, &defaults);
    place.is_cell = machine->guest.ops->has_cells;
    if (r == 0 && place.is_cell) {
        r = cell_put(machine, &out, &cell, err);
        memcpy(fds, cell.all, sizeof(cell.all));
        fd_count = CELL_FDS;
    }
    fds[fd_count++] = cgroup_fd;
    if (r == 0)
        r = process_put_spawn(&out, process->number, &defaults.spec, &place, err);
    if (r < 0)
        return r;
    r = channel_send(&machine->channel, &out, fds, fd_count);
    fault_point("exec.sent");
    return r < 0 ? err_sys(err, r, "send the process to the guest of sandbox '%s'", machine->id)
                 : 0;
}

void process_set_timeout(struct process *process)
{
    uint64_t timeout_ms = process->record->spec->timeout_ms;
    struct reactor *reactor = process->machine->host->reactor;

    if (timeout_ms == 0)
        return;
    reactor_set_timer(reactor, &process_ref(process)->timer, process->started_ms + timeout_ms);
    /* A process that has ended by now is in no list, so nothing else would cancel the timer. */
    if (process_is_over(process) && reactor_cancel_timer(reactor, &process->timer))
        process_unref(process);
}

static int process_launch(struct process *process, const struct process_spec *spec, struct err *err)
{
    const struct reader_spec all = { .follows = true, .is_flow = true };
    int r = 0;

    if (!spec->is_detached)
        r = reader_open(process->record, &all, &process->reader, err);
    if (r == 0)
        r = process_enlist(process, err);
    if (r < 0)
        return r;
    r = process_send_spawn(process, spec, err);
    if (r < 0)
        process_delist(process);
    return r;
}

int process_start(struct machine *machine, const struct process_spec *spec, struct process **ret,
                  struct err *err)
{
    uint64_t began_ns = clock_ns();
    struct process *process;
    struct record *record;
    int r = record_make(machine, spec, &record, err);

    if (r < 0)
        return metrics_note(machine->host->metrics, TIMED_EXEC, began_ns, r);
    lock_take(&machine->lock);
    record->oom_kills_before = machine_count_oom_kills(machine);
    lock_release(&machine->lock);
    process = process_alloc(machine, record);
    process->has_terminal = spec->has_terminal;
    process->size_wanted = process->size_sent = (struct terminal_size){ spec->rows, spec->columns };
    record_set_size(record, process->size_sent);
    process->is_input_closed = !spec->has_stdin && !spec->has_terminal;
    process->is_recorded = spec->is_detached;
    process->began_ns = began_ns;
    record_set_writer(record, process);
    process->shell = spec->shell ? shell_link_new(NULL) : NULL;
    r = process_launch(process, spec, err);
    if (r < 0) {
        record_set_writer(record, NULL);
        record_withdraw(machine, record);
        /* This is the last reference, which the analyzer cannot count. */
        process_abandon(process); // NOLINT(clang-analyzer-unix.Malloc)
        return metrics_note(machine->host->metrics, TIMED_EXEC, began_ns, r);
    }
    if (machine->process_table && !spec->is_detached)
        process_writer_add_later(machine->host->writer, process);
    process_set_timeout(process);
    machine_record_start(machine, process->id);
    *ret = process;
    return 0;
}

int process_find(struct machine *machine, const char *id, struct process **ret, struct err *err)
{
    struct process *process;

    lock_take(&machine->lock);
    process = machine->processes;
    while (process && strcmp(process->id, id) != 0)
        process = process->next;
    if (process)
        atomic_fetch_add(&process->refs, 1);
    lock_release(&machine->lock);
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

struct output_reader *process_reader(struct process *process)
{
    return process->reader;
}

bool process_wait_started(struct process *process)
{
    struct machine *machine = process->machine;
    bool is_started;

    lock_take(&machine->lock);
    while (!process->is_over && !process->is_started)
        cond_wait(&machine->changed, &machine->lock);
    is_started = !process->is_over || process->end.outcome != OUTCOME_NOT_STARTED;
    lock_release(&machine->lock);
    return is_started;
}

struct record *process_record(struct process *process)
{
    return process->record;
}

/* Returns whether enough output was handed on since the last acknowledgement. */
static bool process_wants_ack(const struct process *process, int stream, uint64_t *ret_offset)
{
    *ret_offset = record_ack_offset(process->record, stream, process->machine->process_table);
    return *ret_offset >= atomic_load(&process->acked[stream]) + PROCESS_ACK_EVERY;
}

/* Sends one acknowledgement if the guest takes it now: 0, -EAGAIN to try again, or -errno. The
 * offset is stored first: with the acknowledgement the guest may send more, and the reactor rejects
 * output beyond the window. */
static int process_offer_ack(struct process *process, int stream, uint64_t offset)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64);
    uint64_t before = atomic_exchange(&process->acked[stream], offset);
    int r = message_put_numbers(&out, FRAME_ACK, process->number, (uint64_t)stream,
                                offset - process->base[stream]);

    if (r == 0)
        r = channel_offer(&process->machine->channel, &out);
    if (r == -EAGAIN)
        atomic_store(&process->acked[stream], before);
    return r > 0 ? -EAGAIN : r;
}

bool process_try_acknowledge(struct process *process)
{
    const struct buf none = BUF_INIT(0);
    bool is_done;

    if (!lock_try(&process->ack_lock))
        return false;
    /* The unsent end of an earlier frame. */
    is_done = channel_offer(&process->machine->channel, &none) != -EAGAIN;
    for (int i = 0; is_done && i < PROCESS_STREAMS; i++) {
        uint64_t offset;

        if (process_wants_ack(process, i, &offset))
            is_done = process_offer_ack(process, i, offset) != -EAGAIN;
    }
    lock_release(&process->ack_lock);
    return is_done;
}

void process_acknowledge(struct process *process)
{
    lock_take(&process->ack_lock);
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        uint64_t offset;

        if (!process_wants_ack(process, i, &offset))
            continue;
        atomic_store(&process->acked[i], offset);
        /* If the guest is gone, the reactor ends the process, which readers then see. */
        (void)process_send_numbers(process, FRAME_ACK, (uint64_t)i, offset - process->base[i]);
    }
    lock_release(&process->ack_lock);
}

static int process_ended_error(const struct process *process, struct err *err)
{
    return err_refuse(err, CAUSE_PROCESS_ENDED, "process '%s' has ended", process->id);
}

/* Locked. Waits for a change of the machine, or for WATCH_EVERY_MS if there is a watch_fd.
 * -ECANCELED if that has hung up. */
static int machine_wait_change(struct machine *machine, int watch_fd)
{
    struct pollfd hang_up = { .fd = watch_fd, .events = POLLRDHUP };

    if (watch_fd < 0) {
        cond_wait(&machine->changed, &machine->lock);
        return 0;
    }
    if (poll(&hang_up, 1, 0) > 0)
        return -ECANCELED;
    (void)cond_wait_until(&machine->changed, &machine->lock, clock_after_ms(WATCH_EVERY_MS));
    return 0;
}

/* Waits for room in the window, reserves it and returns the offset to send at. */
static int process_reserve_input(struct process *process, int watch_fd, size_t len, bool eof,
                                 uint64_t *ret_offset, struct err *err)
{
    struct machine *machine = process->machine;
    int r = 0;

    lock_take(&machine->lock);
    while (r == 0 && !process->is_over && !process->is_input_closed &&
           process->input_sent + len - process->input_acked > FRAME_WINDOW)
        r = machine_wait_change(machine, watch_fd);
    if (r < 0) {
        (void)err_set(err, ERR_CANCELED,
                      "the client disconnected before process '%s' read its input", process->id);
    } else if (process->is_over) {
        r = process_ended_error(process, err);
    } else if (process->is_input_closed) {
        r = err_set(err, ERR_BUSY, "stdin of process '%s' is closed", process->id);
    } else {
        *ret_offset = process->input_sent;
        process->input_sent += len;
        process->is_input_closed = eof;
    }
    lock_release(&machine->lock);
    return r;
}

int process_send_input(struct process *process, const void *data, size_t len, bool eof,
                       struct err *err)
{
    return process_offer_input(process, -1, data, len, eof, err);
}

int process_offer_input(struct process *process, int watch_fd, const void *data, size_t len,
                        bool eof, struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(PROCESS_INPUT_MAX + 4096);
    uint64_t offset = 0;
    int r = process_reserve_input(process, watch_fd, len, eof, &offset, err);

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

    lock_take(&process->machine->lock);
    is_over = process->is_over;
    lock_release(&process->machine->lock);
    return is_over;
}

/* Records that a client sends this signal, before it takes effect. */
static int process_add_signal(struct process *process, int signal, struct err *err)
{
    struct machine *machine = process->machine;
    bool is_over;

    lock_take(&machine->lock);
    /* A process that is being restarted could miss the signal. */
    while (!process->is_over && !process->is_started)
        cond_wait(&machine->changed, &machine->lock);
    is_over = process->is_over;
    process->signals_sent |= (uint64_t)1 << (signal - 1);
    if (process->is_restart_pending) /* it does not run now */
        process_set_killed(process, KILLER_USER, signal);
    lock_release(&machine->lock);
    return is_over ? process_ended_error(process, err) : 0;
}

int process_signal(struct process *process, int signal, bool tree, struct err *err)
{
    struct machine *machine = process->machine;
    int r = process_add_signal(process, signal, err);

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
    return viewer_resize(process, 0, (struct terminal_size){ rows, columns }, err);
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
    cgroup_meter_close(&process->meter);
    lock_destroy(&process->ack_lock);
    record_unref(process->record);
    shell_link_free(process->shell);
    machine_unref(process->machine);
    free(process);
}
