// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/machine/machine_internal.h"
#include "host/shell/file.h"
#include "host/shell/link.h"
#include "host/shell/run_internal.h"
#include "wire/message.h"

void shell_run_set_process(struct shell_run *run, struct process *process)
{
    process_unref(run->process);
    run->process = process;
    lock_take(&process->machine->lock);
    shell_run_link(run)->event_fd = run->event_fd;
    lock_release(&process->machine->lock);
}

void shell_run_drop_process(struct shell_run *run)
{
    if (!run->process)
        return;
    lock_take(&run->process->machine->lock);
    shell_run_link(run)->event_fd = -EBADF;
    lock_release(&run->process->machine->lock);
    process_unref(TAKE_PTR(run->process));
}

/* Sends the process a command and marks the shell as busy. */
static int run_send(struct shell_run *run, const char *text, bool is_hidden, struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    struct message_shell_run message = { .is_hidden = is_hidden,
                                         .text = text,
                                         .text_len = strlen(text) };
    struct machine *machine = run->process->machine;
    struct shell_link *link = shell_run_link(run);
    int r;

    lock_take(&machine->lock);
    message.command = ++link->command;
    link->is_busy = true;
    for (int i = 0; i < SHELL_STREAMS; i++) {
        buf_clear(&link->out[i].data);
        link->out[i].acked = link->out[i].received;
    }
    lock_release(&machine->lock);
    r = message_put_shell_run(&out, run->process->number, &message);
    if (r == 0)
        r = channel_send(&machine->channel, &out, NULL, 0);
    if (r == -EPIPE || r == -ECONNRESET)
        return err_set(err, ERR_UNAVAILABLE, "shell '%s' ended together with its machine",
                       run->shell->name);
    return r < 0 ? err_sys(err, r, "send a command to shell '%s'", run->shell->name) : 0;
}

static bool run_is_dormant(struct shell_run *run)
{
    bool is;

    lock_take(&run->sandbox->lock);
    is = run->shell->is_dormant;
    lock_release(&run->sandbox->lock);
    return is;
}

int shell_run_begin(struct shell_run *run, struct err *err)
{
    cleanup_with(buf_done) struct buf state = BUF_INIT(SHELL_STATE_MAX);

    if (!run->has_restored && run_is_dormant(run) &&
        shell_file_read_now(run->sandbox, run->shell->name, &state) == 0) {
        run->state = RUN_RESTORING;
        return run_send(run, state.data, true, err);
    }
    if (run->preparation && !run->has_prepared) {
        run->state = RUN_PREPARING;
        return run_send(run, run->preparation, true, err);
    }
    run->state = RUN_RUNNING;
    if (!run->is_hidden) {
        lock_take(&run->sandbox->lock);
        run->shell->is_dormant = false;
        run->shell->commands++;
        run->shell->is_changed = true;
        lock_release(&run->sandbox->lock);
    }
    return run_send(run, run->text, run->is_hidden, err);
}

int shell_run_spawn(struct shell_run *run, enum shell_kind kind, struct err *err)
{
    struct process *process;
    int r;

    run->kind = kind;
    lock_take(&run->sandbox->lock);
    if (!shell_has_user(run->shell)) {
        (void)snprintf(run->shell->user, sizeof(run->shell->user), "%s",
                       run->user ? run->user : "");
        (void)snprintf(run->shell->tier, sizeof(run->shell->tier), "%s",
                       run->tier ? run->tier : "");
    }
    lock_release(&run->sandbox->lock);
    r = shell_spawn(run->sandbox, run->shell, kind, &process, err);

    if (r < 0)
        return r;
    shell_run_set_process(run, process);
    return shell_run_begin(run, err);
}

bool shell_run_is_process_busy(const struct shell_run *run)
{
    bool is;

    lock_take(&run->process->machine->lock);
    is = shell_run_link(run)->is_busy && !run->process->is_over;
    lock_release(&run->process->machine->lock);
    return is;
}

enum shell_kind shell_run_wanted_kind(struct shell_run *run)
{
    bool is_sh;

    lock_take(&run->sandbox->lock);
    is_sh = run->shell->is_dormant && run->shell->kind == SHELL_SH;
    lock_release(&run->sandbox->lock);
    return is_sh ? SHELL_SH : SHELL_BASH;
}

static bool run_is_listed(struct shell_run *run)
{
    bool is;

    lock_take(&run->sandbox->lock);
    is = shell_find(run->sandbox, run->shell->name) == run->shell;
    lock_release(&run->sandbox->lock);
    return is;
}

int shell_run_dispatch(struct shell_run *run, struct err *err)
{
    struct machine *machine = NULL;
    struct process *process;
    int r = sandbox_hold_machine(run->sandbox, &machine, err);

    if (r < 0)
        return r;
    if (!run_is_listed(run)) {
        sandbox_release_machine(run->sandbox, machine);
        return err_set(err, ERR_BUSY, "shell '%s' was removed", run->shell->name);
    }
    process = shell_live_process(run->sandbox, run->shell);
    if (process) {
        shell_run_set_process(run, process);
        run->has_restored = true;
        run->state = RUN_WAITING;
        if (!shell_run_is_process_busy(run))
            r = shell_run_begin(run, err);
    }
    sandbox_release_machine(run->sandbox, machine);
    return process ? r : shell_run_spawn(run, shell_run_wanted_kind(run), err);
}
