// SPDX-License-Identifier: Apache-2.0
/* Runs a command of a shell, from the queue to its end, on the thread that waits for its events.
 * The reactor only fills the process's shell_link and wakes that thread. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/machine/machine_internal.h"
#include "host/process/process_internal.h"
#include "host/shell/link.h"
#include "host/shell/run_internal.h"
#include "wire/message.h"

enum {
    EXIT_NOT_FOUND = 127,
    EXIT_TIMED_OUT = 124,
    HIDDEN_MS = 1000, /* the longest that a snapshot waits for a shell whose terminal is in use */
    DRAIN_MS = 10 * 1000, /* longer than the guest needs to end a command */
    NO_CANCEL = -2 /* as watch_fd: ignore shell_run_cancel while the command is being ended */
};

/* --- queue ----------------------------------------------------------------------------------- */

static void run_wake(const struct shell_run *run)
{
    const uint64_t one = 1;

    (void)!write(run->event_fd, &one, sizeof(one));
}

/* Locked. */
static void run_enqueue(struct shell_run *run)
{
    struct shell_run **slot = &run->shell->queue;

    while (*slot)
        slot = &(*slot)->next;
    *slot = run;
    run->shell->queued++;
}

static void run_dequeue(struct shell_run *run)
{
    struct shell_run **slot;

    lock_take(&run->sandbox->lock);
    slot = &run->shell->queue;
    while (*slot && *slot != run)
        slot = &(*slot)->next;
    if (*slot) {
        *slot = run->next;
        run->shell->queued--;
    }
    if (run->shell->queue)
        run_wake(run->shell->queue);
    lock_release(&run->sandbox->lock);
}

static bool run_is_first(struct shell_run *run)
{
    bool has;

    lock_take(&run->sandbox->lock);
    has = run->shell->queue == run;
    lock_release(&run->sandbox->lock);
    return has;
}

static struct shell_run *run_new(struct sandbox *sandbox, struct shell *shell, const char *text)
{
    struct shell_run *run = xcalloc(1, sizeof(*run));

    run->sandbox = sandbox_ref(sandbox);
    run->shell = shell;
    atomic_fetch_add(&shell->refs, 1);
    run->text = xstrdup(text);
    run->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return run;
}

/* Returns NULL for root. */
static char *user_copy(const char *user)
{
    return user && strcmp(user, "root") != 0 && strcmp(user, "0") != 0 ? xstrdup(user) : NULL;
}

/* Locked. Returns the shell of this name, which is created if there is none. */
static int shell_obtain(struct sandbox *sandbox, const char *name, struct shell **ret,
                        struct err *err)
{
    unsigned count = 0;

    *ret = shell_find(sandbox, name);
    if (*ret && (*ret)->queued >= SHELL_QUEUE_MAX)
        return err_refuse(err, CAUSE_CAPACITY_EXCEEDED,
                          "queue limit of shell '%s' reached (%d commands)", name, SHELL_QUEUE_MAX);
    if (*ret)
        return 0;
    for (const struct shell *shell = sandbox->shells; shell; shell = shell->next)
        count++;
    if (count >= SHELLS_MAX)
        return err_refuse(err, CAUSE_CAPACITY_EXCEEDED, "shell limit of sandbox '%s' reached (%d)",
                          sandbox->info.id, SHELLS_MAX);
    *ret = shell_new(name);
    shell_enlist(sandbox, *ret);
    return 0;
}

/* Locked. Refuses a user or a tier other than that of the shell, whose state it would get. */
static int user_check(struct shell *shell, const struct shell_command *command, struct err *err)
{
    cleanup_free char *wanted = user_copy(command->user);

    if (command->tier && shell_has_user(shell) && strcmp(shell->tier, command->tier) != 0)
        return err_set(err, ERR_BUSY,
                       "shell '%s' runs in %s%s; use another name, or remove it first", shell->name,
                       *shell->tier ? "tier " : "the runtime of the sandbox", shell->tier);
    if (!command->user || !shell_has_user(shell) || strcmp(shell->user, wanted ? wanted : "") == 0)
        return 0;
    return err_set(err, ERR_BUSY,
                   "shell '%s' runs as user '%s'; use another name, or remove it first",
                   shell->name, *shell->user ? shell->user : "root");
}

int shell_run_new(struct sandbox *sandbox, const struct shell_command *command,
                  struct shell_run **ret, struct err *err)
{
    cleanup_free char *preparation = NULL;
    struct shell_run *run = NULL;
    struct shell *shell;
    int r = shell_preparation_make(command, &preparation, err);

    if (r < 0)
        return r;
    if (strlen(command->text) > SHELL_TEXT_MAX)
        return err_set(err, ERR_EXHAUSTED, "the command is longer than %d bytes", SHELL_TEXT_MAX);
    lock_take(&sandbox->lock);
    r = shell_obtain(sandbox, command->name, &shell, err);
    if (r == 0)
        r = user_check(shell, command, err);
    if (r == 0) {
        run = run_new(sandbox, shell, command->text);
        run->preparation = TAKE_PTR(preparation);
        run->user = user_copy(command->user);
        run->tier = command->tier ? xstrdup(command->tier) : NULL;
        run_enqueue(run);
    }
    lock_release(&sandbox->lock);
    if (!run)
        return r;
    sandbox_attach(sandbox);
    run->started_ms = clock_ms();
    run->deadline_ms = command->timeout_ms ? run->started_ms + command->timeout_ms : 0;
    run->silence_ms = command->silence_ms;
    *ret = run;
    if (run->event_fd < 0) {
        shell_run_free(run);
        return err_sys(err, -errno, "create an eventfd");
    }
    return 0;
}

/* --- waiting --------------------------------------------------------------------------------- */

/* Returns 0 after a wakeup, -ETIMEDOUT at the deadline, -EAGAIN after silence_ms, or -ECANCELED
 * if the peer has hung up. */
static int run_wait(const struct shell_run *run, int watch_fd)
{
    struct pollfd fds[2] = {
        { .fd = run->event_fd, .events = POLLIN },
        { .fd = watch_fd, .events = POLLRDHUP },
    };
    uint64_t now = clock_ms(), wait_ms = run->silence_ms ? run->silence_ms : UINT64_MAX, count;
    int n;

    if (watch_fd != NO_CANCEL && atomic_load(&run->is_canceled))
        return -ECANCELED;
    if (run->deadline_ms && !run->is_timed_out) {
        if (now >= run->deadline_ms)
            return -ETIMEDOUT;
        if (run->deadline_ms - now < wait_ms)
            wait_ms = run->deadline_ms - now;
    }
    n = poll(fds, 2, wait_ms == UINT64_MAX ? -1 : (int)(wait_ms < INT_MAX ? wait_ms : INT_MAX));
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    if (n == 0)
        return wait_ms == run->silence_ms ? -EAGAIN : 0;
    if (fds[1].revents)
        return -ECANCELED;
    (void)!read(run->event_fd, &count, sizeof(count));
    return 0;
}

/* --- events ---------------------------------------------------------------------------------- */

static int run_send_numbers(struct shell_run *run, enum frame_type type, uint64_t first,
                            uint64_t second)
{
    return process_send_numbers(run->process, type, first, second);
}

static void run_interrupt(struct shell_run *run)
{
    (void)run_send_numbers(run, FRAME_SHELL_INTERRUPT, shell_run_link(run)->command, 0);
}

/* Locked. Copies output that fits into data; returns whether there was any, and the stream to
 * acknowledge in *ret_ack. */
static bool run_take_output(struct shell_run *run, void *data, size_t size, struct shell_event *ret,
                            int *ret_ack)
{
    struct shell_link *link = shell_run_link(run);

    for (int i = 0; i < SHELL_STREAMS; i++) {
        struct buf *from = &link->out[i].data;
        uint64_t read_up_to;

        if (from->len == 0)
            continue;
        ret->kind = i == 0 ? SHELL_EVENT_STDOUT : SHELL_EVENT_STDERR;
        ret->len = from->len < size ? from->len : size;
        memcpy(data, from->data, ret->len);
        buf_consume(from, ret->len);
        read_up_to = link->out[i].received - from->len;
        if (read_up_to - link->out[i].acked >= PROCESS_ACK_EVERY && link->is_busy) {
            link->out[i].acked = read_up_to;
            *ret_ack = STREAM_SHELL_STDOUT + i;
        }
        return true;
    }
    return false;
}

/* Locked. */
static void run_set_end(struct shell_run *run)
{
    const struct process_end *end = &run->process->end;
    const struct message_shell_done *done = &shell_run_link(run)->done;

    run->end = (struct shell_end_info){ .is_timed_out = run->is_timed_out,
                                        .duration_ms = clock_ms() - run->started_ms };
    run->end.is_shell_ended = run->process->is_over && shell_run_link(run)->is_busy;
    if (!run->end.is_shell_ended) {
        run->end.exit_code = run->is_timed_out ? EXIT_TIMED_OUT : done->status;
        return;
    }
    run->end.exit_code = run->is_timed_out ? EXIT_TIMED_OUT : end->exit_code;
    (void)snprintf(run->end.reason, sizeof(run->end.reason), "%s", end->reason);
}

/* What happened to the command since the last call. */
enum run_progress { PROGRESS_NONE, PROGRESS_OUTPUT, PROGRESS_DONE, PROGRESS_OVER };

static enum run_progress run_poll(struct shell_run *run, void *data, size_t size,
                                  struct shell_event *ret)
{
    struct machine *machine = run->process->machine;
    enum run_progress progress = PROGRESS_NONE;
    int ack = -1;

    lock_take(&machine->lock);
    if (run_take_output(run, data, size, ret, &ack)) {
        progress = PROGRESS_OUTPUT;
    } else if (!shell_run_link(run)->is_busy || run->process->is_over) {
        progress = shell_run_link(run)->is_busy ? PROGRESS_OVER : PROGRESS_DONE;
        run_set_end(run);
    }
    lock_release(&machine->lock);
    /* If the guest is gone, the reactor ends the process. */
    if (ack >= 0)
        (void)run_send_numbers(run, FRAME_ACK, (uint64_t)ack,
                               shell_run_link(run)->out[ack - STREAM_SHELL_STDOUT].acked);
    return progress;
}

/* Returns whether the process was not started because its program does not exist. */
static bool run_is_program_missing(struct shell_run *run)
{
    bool is;

    lock_take(&run->process->machine->lock);
    is = run->process->is_over && run->process->end.outcome == OUTCOME_NOT_STARTED;
    lock_release(&run->process->machine->lock);
    return is;
}

static int run_start_error(struct shell_run *run, struct err *err)
{
    struct process_end *end = &run->process->end;

    if (end->exit_code == EXIT_NOT_FOUND)
        return err_set(err, ERR_UNSUPPORTED, "the sandbox has neither bash nor sh");
    return err_set(err, ERR_BUSY, "shell '%s' cannot start: %.150s", run->shell->name, end->reason);
}

static int preparation_error(const struct shell_run *run, struct err *err)
{
    if (run->preparation_failed == SHELL_PREPARE_NO_DIRECTORY)
        return err_set(err, ERR_INVALID, "shell '%s' cannot enter the directory", run->shell->name);
    return err_set(err, ERR_INVALID, "shell '%s' cannot set a variable; it is read-only there",
                   run->shell->name);
}

/* Handles the end of the process or of a command: ours (returns 1), or the one before it. */
static int run_advance(struct shell_run *run, enum run_progress progress, struct err *err)
{
    if (progress == PROGRESS_OVER && run_is_program_missing(run)) {
        if (run->kind == SHELL_BASH && run->process->end.exit_code == EXIT_NOT_FOUND)
            return shell_run_spawn(run, SHELL_SH, err);
        return run_start_error(run, err);
    }
    if (progress == PROGRESS_DONE && shell_run_link(run)->done.how == SHELL_NOT_RUN &&
        (run->state == RUN_RUNNING || run->state == RUN_PREPARING))
        return err_set(err, ERR_BUSY, "the terminal of shell '%s' is in use", run->shell->name);
    if (run->state == RUN_RUNNING)
        return 1;
    if (progress == PROGRESS_OVER && run->state == RUN_WAITING)
        return shell_run_spawn(run, shell_run_wanted_kind(run), err);
    if (progress == PROGRESS_OVER)
        return err_set(err, ERR_BUSY, "shell '%s' ended while its state was restored: %.100s",
                       run->shell->name, run->end.reason);
    run->has_restored = true;
    run->has_prepared |= run->state == RUN_PREPARING;
    if (run->preparation_failed)
        return preparation_error(run, err);
    return shell_run_begin(run, err);
}

/* At the deadline, interrupts a running command, which then ends soon. */
static int run_time_out(struct shell_run *run, struct err *err)
{
    if (run->state != RUN_RUNNING)
        return err_set(err, ERR_BUSY, "shell '%s' was busy until the timeout", run->shell->name);
    run->is_timed_out = true;
    run_interrupt(run);
    return 0;
}

static int run_wait_or_time_out(struct shell_run *run, int watch_fd, struct err *err)
{
    int r = run_wait(run, watch_fd);

    if (r == -ETIMEDOUT)
        return run_time_out(run, err);
    if (r < 0 && r != -ECANCELED && r != -EAGAIN)
        return err_sys(err, r, "wait for shell '%s'", run->shell->name);
    return r;
}

static int run_wait_turn(struct shell_run *run, int watch_fd, struct err *err)
{
    while (!run_is_first(run)) {
        int r = run_wait_or_time_out(run, watch_fd, err);

        if (r < 0)
            return r;
    }
    return shell_run_dispatch(run, err);
}

int shell_run_next(struct shell_run *run, int watch_fd, void *data, size_t size,
                   struct shell_event *ret, struct err *err)
{
    int r = 0;

    *ret = (struct shell_event){ .kind = SHELL_EVENT_ENDED };
    if (run->state == RUN_QUEUED)
        r = run_wait_turn(run, watch_fd, err);
    while (r == 0 && run->state != RUN_ENDED) {
        enum run_progress progress;

        if (run->state == RUN_RUNNING && !run->is_start_reported) {
            run->is_start_reported = true;
            ret->kind = SHELL_EVENT_STARTED;
            return 0;
        }
        progress = run_poll(run, data, size, ret);
        if (progress == PROGRESS_OUTPUT && run->state == RUN_RUNNING)
            return 0;
        if (progress == PROGRESS_OUTPUT && run->state == RUN_PREPARING && ret->len > 0)
            run->preparation_failed = *(const char *)data;
        if (progress == PROGRESS_NONE)
            r = run_wait_or_time_out(run, watch_fd, err);
        else if (progress != PROGRESS_OUTPUT)
            r = run_advance(run, progress, err);
    }
    if (r == -EAGAIN) {
        ret->kind = SHELL_EVENT_SILENCE;
        return 0;
    }
    if (r < 0)
        return r;
    run->state = RUN_ENDED;
    *ret = (struct shell_event){ .kind = SHELL_EVENT_ENDED, .end = run->end };
    return 0;
}

const char *shell_run_process(const struct shell_run *run)
{
    return run->process ? process_id(run->process) : "";
}

/* Waits until the guest has ended a command that no client waits for. */
static void run_drain(struct shell_run *run)
{
    struct shell_event event;
    char data[4096];
    enum run_progress progress = PROGRESS_OUTPUT;

    run_interrupt(run);
    run->is_timed_out = false;
    run->deadline_ms = clock_ms() + DRAIN_MS;
    while (progress == PROGRESS_OUTPUT || progress == PROGRESS_NONE) {
        progress = run_poll(run, data, sizeof(data), &event);
        if (progress == PROGRESS_NONE && run_wait(run, NO_CANCEL) < 0)
            return;
    }
}

void shell_run_cancel(struct shell_run *run)
{
    atomic_store(&run->is_canceled, true);
    run_wake(run);
}

void shell_run_free(struct shell_run *run)
{
    if (!run)
        return;
    if ((run->state == RUN_RUNNING || run->state == RUN_RESTORING || run->state == RUN_PREPARING) &&
        shell_run_is_process_busy(run))
        run_drain(run);
    shell_run_drop_process(run);
    run_dequeue(run);
    sandbox_detach(run->sandbox, NULL);
    shell_unref(run->shell);
    sandbox_unref(run->sandbox);
    (void)fd_close(run->event_fd);
    free(run->text);
    free(run->preparation);
    free(run->user);
    free(run->tier);
    free(run);
}

/* --- hidden ---------------------------------------------------------------------------------- */

static int run_follow_hidden(struct shell_run *run, struct buf *output)
{
    struct shell_event event = { .kind = SHELL_EVENT_STARTED };
    struct err ignored;
    char data[16 * 1024];
    int r = 0;

    while (r == 0 && event.kind != SHELL_EVENT_ENDED) {
        r = shell_run_next(run, -1, data, sizeof(data), &event, &ignored);
        if (r == 0 && event.kind == SHELL_EVENT_STDOUT && output)
            r = buf_add(output, data, event.len);
    }
    if (r == 0 && (event.end.is_timed_out || event.end.is_shell_ended || event.end.exit_code))
        r = -EIO;
    return r;
}

int shell_run_hidden(struct sandbox *sandbox, struct shell *shell, const char *text,
                     struct buf *output)
{
    struct process *process = shell_live_process(sandbox, shell);
    struct shell_run *run = NULL;
    int r;

    if (!process)
        return -ESRCH;
    lock_take(&sandbox->lock);
    if (!shell->queue) {
        run = run_new(sandbox, shell, text);
        run->is_hidden = true;
        run->deadline_ms = clock_ms() + HIDDEN_MS;
        run_enqueue(run);
    }
    lock_release(&sandbox->lock);
    if (!run) {
        process_unref(process);
        return -EBUSY;
    }
    sandbox_attach(sandbox);
    shell_run_set_process(run, process);
    run->has_restored = true;
    run->state = RUN_WAITING;
    r = run->event_fd < 0 ? -EMFILE : 0;
    if (r == 0 && shell_run_is_process_busy(run))
        r = -EBUSY;
    if (r == 0) {
        struct err ignored;

        r = shell_run_begin(run, &ignored);
    }
    if (r == 0)
        r = run_follow_hidden(run, output);
    shell_run_free(run);
    return r;
}
