// SPDX-License-Identifier: Apache-2.0
/* Runs commands in a shell and detects their end.
 *
 * The shell inherits, at the numbers of wire/shell.h: the pipes for stdout and stderr of a command,
 * a pipe for status lines "COMMAND STATUS", and memory files. The text of a command is written to
 * one of those files as
 *
 *     eval -- 'TEXT' 244<&-
 *
 * and the shell sources it with all these descriptors closed for the programs that the text starts.
 * So the output contains nothing but output, the text needs no terminator that it could contain,
 * and syntax errors and `return` end only the text. $? is restored by sourcing a file with
 * `return N`.
 *
 * bash is at its prompt, with a terminal as stdin. Even there it runs a trap for SIGWINCH at once;
 * the trap sources the control file, whose first line empties it. A signal that arrives at the end
 * of such a trap is lost, so bash is signalled until the file is empty; it still runs the contents
 * only once. A window resize finds the file empty.
 *
 * A plain sh has no such trap; it reads short lines from a pipe as its script. It is interactive
 * nevertheless, so that an error or an interrupt ends a command and not the shell.
 *
 * An interrupt (SIGINT to the foreground process group of the terminal) may return the shell to its
 * prompt without a status line. A probe then asks the shell whether it is at the prompt. */
#include "guest/shell/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "guest/guest.h"
#include "guest/process/process.h"

enum {
    READY_US = 10 * 1000, /* from the end of the startup script to the first prompt */
    NOTIFY_FIRST_US = 200,
    NOTIFY_MAX_US = 50 * 1000,
    RETRY_EVERY_US = 20 * 1000,
    KILL_GROUP_US = 1000 * 1000, /* after an ineffective interrupt: kill the foreground group */
    KILL_SHELL_US = 3000 * 1000, /* then the shell itself */
    RETRIES_PER_SIGINT = 5,      /* SIGINT again: one that came early had no effect */
    KILL_GROUP_RETRIES = 30,     /* minimum, as the clock runs on while the sandbox is paused */
    KILL_SHELL_RETRIES = 90,
    STATUS_INTERRUPTED = 130,
    SCRIPT_MAX = 512,
};

static uint64_t clock_us(void)
{
    return clock_ns() / NS_PER_US;
}

static int memfd_replace(int fd, const char *text, size_t len)
{
    return ftruncate(fd, 0) < 0 ? -errno : pwrite_all(fd, text, len, 0);
}

/* --- starting a command ---------------------------------------------------------------------- */

/* Quotes the text as one shell word, so that the shell reads it in one piece. */
static int put_quoted(struct buf *out, const char *text, size_t len)
{
    int r = buf_add_str(out, "'");

    while (r == 0 && len > 0) {
        const char *quote = memchr(text, '\'', len);
        size_t part = quote ? (size_t)(quote - text) : len;

        r = buf_add(out, text, part);
        if (r == 0 && quote)
            r = buf_add_str(out, "'\\''");
        part += quote ? 1 : 0;
        text += part;
        len -= part;
    }
    return r == 0 ? buf_add_str(out, "'") : r;
}

static int text_replace(struct shell *shell, const struct message_shell_run *run)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(4 * MESSAGE_SHELL_TEXT_MAX + 64);
    bool is_bash = shell->kind == SHELL_BASH;
    int r = buf_add_str(&out, is_bash ? "\\eval -- " : "eval ");

    if (r == 0)
        r = put_quoted(&out, run->text, run->text_len);
    if (r == 0)
        r = buf_printf(&out, " %d<&-\n", is_bash ? SHELL_BASH_TEXT : SHELL_SH_TEXT);
    return r == 0 ? memfd_replace(shell->text_fd, out.data, out.len) : r;
}

static void notify_bash(struct process *process, uint64_t step_us)
{
    struct shell *shell = process->shell;

    (void)kill(process->pid, SIGWINCH);
    shell->notify_step_us = step_us;
    shell->notify_us = clock_us() + step_us;
}

static void start_in_bash(struct process *process)
{
    struct shell *shell = process->shell;
    char script[SCRIPT_MAX];
    int len = snprintf(script, sizeof(script),
                       ">| /proc/self/fd/243\n"
                       "%s\n"
                       ". /proc/self/fd/244 </dev/null >&240 2>&241 240>&- 241>&- 242>&- 243<&- "
                       "245<&-\n"
                       "\\builtin echo %llu $? >&242\n",
                       shell->last_status ? ". /proc/self/fd/245 && \\:" : "\\:",
                       (unsigned long long)shell->command);

    (void)memfd_replace(shell->control_fd, script, (size_t)len);
    notify_bash(process, NOTIFY_FIRST_US);
}

static void start_in_sh(struct process *process)
{
    struct shell *shell = process->shell;
    char script[SCRIPT_MAX];
    int len =
        snprintf(script, sizeof(script),
                 "%s\n"
                 "command . /proc/self/fd/6 </dev/null >&7 2>&8 4<&- 5<&- 7>&- 8>&- 9>&- && :\n"
                 "command echo %llu $? >&9\n",
                 shell->last_status ? "command . /proc/self/fd/5 && :" : ":",
                 (unsigned long long)shell->command);

    (void)!write(shell->script_fd, script, (size_t)len);
}

static void start_command(struct process *process)
{
    struct shell *shell = process->shell;
    char code[32];
    int len = snprintf(code, sizeof(code), "return %u\n", shell->last_status);

    shell->is_started = true;
    (void)memfd_replace(shell->code_fd, code, (size_t)len);
    if (shell->kind == SHELL_BASH)
        start_in_bash(process);
    else
        start_in_sh(process);
}

static void reply_not_run(struct guest *guest, const struct process *process, uint64_t command)
{
    const struct message_shell_done done = {
        .command = command,
        .how = SHELL_NOT_RUN,
        .end = { process->out[STREAM_SHELL_STDOUT].ring.produced,
                 process->out[STREAM_SHELL_STDERR].ring.produced },
    };

    (void)message_put_shell_done(&guest->link.out, process->id, &done);
}

/* Output between two commands belongs to neither. A client that starts a command has read the
 * output of the previous one. */
static void reset_output(struct guest *guest, struct process *process)
{
    for (int i = STREAM_SHELL_STDOUT; i < STREAM_ALL; i++) {
        process_output_ready(guest, process, i);
        (void)ring_ack(&process->out[i].ring, process->out[i].ring.produced);
        process->out[i].sent = process->out[i].ring.produced;
        process->out[i].is_drained = false;
    }
}

static bool handle_run(struct guest *guest, struct process *process, const struct frame *frame)
{
    struct shell *shell = process->shell;
    struct message_shell_run run;

    if (!message_get_shell_run(frame, &run) || run.command == 0)
        return false;
    if (shell->is_busy || process->is_exited || text_replace(shell, &run) < 0) {
        reply_not_run(guest, process, run.command);
        return true;
    }
    reset_output(guest, process);
    shell->command = run.command;
    shell->is_hidden = run.is_hidden;
    shell->is_busy = true;
    shell->is_started = shell->is_ended = shell->is_output_dropped = shell->is_probing = false;
    shell->interrupted_us = 0;
    if (shell->is_ready)
        start_command(process);
    return true;
}

/* --- detecting its end ----------------------------------------------------------------------- */

static bool is_control_read(const struct shell *shell)
{
    struct stat stat;

    return shell->kind != SHELL_BASH || fstat(shell->control_fd, &stat) < 0 || stat.st_size == 0;
}

/* As at the exit of a process: bytes that are in the pipes now belong to the command, later ones
 * do not. */
static void command_end(struct guest *guest, struct process *process, enum shell_end how,
                        uint8_t status)
{
    struct shell *shell = process->shell;

    shell->is_ended = true;
    shell->how = how;
    shell->end_status = status;
    shell->notify_us = 0;
    shell->interrupted_us = 0;
    if (!shell->is_hidden)
        shell->last_status = status;
    if (shell->kind == SHELL_BASH)
        (void)!ftruncate(shell->control_fd, 0);
    (void)!ftruncate(shell->text_fd, 0);
    for (int i = STREAM_SHELL_STDOUT; i < STREAM_ALL; i++)
        process_mark_end(guest, process, i);
}

/* Returns the foreground process group of the terminal, or the shell if it cannot be determined.
 */
static pid_t foreground(const struct process *process)
{
    pid_t group = 0;

    if (ioctl(process->out[STREAM_STDOUT].watch.fd, TIOCGPGRP, &group) < 0 || group <= 1)
        return process->pid;
    return group;
}

/* Returns whether the shell may be waiting at its prompt. A trap during a command is useless and
 * keeps bash from noticing an interrupt. */
static bool may_be_idle(const struct process *process)
{
    char path[32], line[512];
    cleanup_close int fd = -EBADF;
    const char *state;
    ssize_t len;

    if (foreground(process) != process->pid)
        return false;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)process->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
    if (len <= 0)
        return false;
    line[len] = '\0';
    state = strrchr(line, ')');
    return state && state[1] == ' ' && state[2] == 'S';
}

/* The reply is the depth of sourced scripts: 1 at the prompt, more inside a command. */
static void probe_prompt(struct process *process)
{
    struct shell *shell = process->shell;
    char script[SCRIPT_MAX];
    int len;

    if (shell->kind == SHELL_SH) {
        len = snprintf(script, sizeof(script), "command echo %llu p1 >&9\n",
                       (unsigned long long)shell->command);
        (void)!write(shell->script_fd, script, (size_t)len);
        return;
    }
    if (shell->is_probing && !is_control_read(shell))
        return;
    shell->is_probing = true;
    len = snprintf(script, sizeof(script),
                   ">| /proc/self/fd/243\n\\builtin echo %llu p${#BASH_SOURCE[@]} >&242\n",
                   (unsigned long long)shell->command);
    (void)memfd_replace(shell->control_fd, script, (size_t)len);
    notify_bash(process, NOTIFY_FIRST_US);
}

/* Waits for the first prompt because a trap before it cannot be interrupted reliably. */
static void set_ready(struct process *process)
{
    struct shell *shell = process->shell;

    shell->is_ready = true;
    shell->ready_us = 0;
    if (shell->is_busy)
        start_command(process);
}

void shell_terminal_shown(struct process *process)
{
    struct shell *shell = process->shell;

    if (shell->ready_us)
        set_ready(process);

    if (shell->kind == SHELL_BASH && shell->is_busy && shell->is_started && !shell->is_ended &&
        !shell->is_probing && is_control_read(shell) && may_be_idle(process))
        probe_prompt(process);
}

/* Handles a line "COMMAND STATUS", or "COMMAND pDEPTH" in reply to a probe. */
static void handle_status_line(struct guest *guest, struct process *process, const char *line)
{
    struct shell *shell = process->shell;
    char *end;
    unsigned long long command = strtoull(line, &end, 10);
    unsigned long status;

    if (*end != ' ')
        return;
    if (command == 0 && !shell->is_ready) {
        if (shell->kind == SHELL_SH)
            set_ready(process);
        else
            shell->ready_us = clock_us() + READY_US;
        return;
    }
    if (!shell->is_busy || shell->is_ended || !shell->is_started || command != shell->command)
        return;
    if (end[1] == 'p') {
        shell->is_probing = false;
        if (strcmp(end + 2, "1") == 0)
            command_end(guest, process, SHELL_INTERRUPTED, STATUS_INTERRUPTED);
        return;
    }
    status = strtoul(end + 1, &end, 10);
    if (*end == '\0' && status <= UINT8_MAX)
        command_end(guest, process, shell->interrupted_us ? SHELL_INTERRUPTED : SHELL_FINISHED,
                    (uint8_t)status);
}

void shell_status_ready(struct guest *guest, struct process *process)
{
    struct shell *shell = process->shell;
    char data[256];
    ssize_t n = read(shell->status.fd, data, sizeof(data));

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        watch_set(guest->epoll_fd, &shell->status, 0);
        shell->status.fd = fd_close(shell->status.fd);
    }
    for (ssize_t i = 0; i < n; i++) {
        if (data[i] != '\n') {
            /* A line that is too long is not a status line, so its last byte may be overwritten.
             */
            shell->line[shell->line_len] = data[i];
            shell->line_len += shell->line_len < SHELL_LINE_MAX - 1;
            continue;
        }
        shell->line[shell->line_len] = '\0';
        shell->line_len = 0;
        handle_status_line(guest, process, shell->line);
    }
}

bool shell_keeps_output(const struct shell *shell)
{
    return shell->is_busy && !shell->is_output_dropped;
}

void shell_drop_output(struct guest *guest, struct process *process)
{
    for (int i = STREAM_SHELL_STDOUT; i < STREAM_ALL; i++) {
        struct ring *ring = &process->out[i].ring;

        (void)ring_ack(ring, ring->produced);
        process->out[i].sent = ring->produced;
        process->out[i].is_drained = process->out[i].is_drained || process->is_exited;
        process->end[i] = ring->produced;
    }
    process->shell->is_output_dropped = true;
    for (int i = STREAM_SHELL_STDOUT; i < STREAM_ALL; i++)
        process_output_ready(guest, process, i);
}

void shell_pump(struct guest *guest, struct process *process)
{
    struct shell *shell = process->shell;
    struct message_shell_done done = {
        .command = shell->command,
        .how = shell->how,
        .status = shell->end_status,
    };

    if (!shell->is_busy || !shell->is_ended)
        return;
    for (int i = 0; i < STREAM_ALL - STREAM_SHELL_STDOUT; i++) {
        int stream = STREAM_SHELL_STDOUT + i;

        if (!process->out[stream].is_drained || process->out[stream].sent < process->end[stream])
            return;
        done.end[i] = process->out[stream].sent;
    }
    if (message_put_shell_done(&guest->link.out, process->id, &done) < 0)
        return;
    shell->is_busy = false;
    /* A pipe whose ring was full is not being watched; the shell's jobs must not block on it. */
    for (int i = STREAM_SHELL_STDOUT; i < STREAM_ALL; i++) {
        process->out[i].ring.produced = process->out[i].sent;
        process_output_ready(guest, process, i);
    }
}

/* --- interrupting it ------------------------------------------------------------------------- */

/* Cancels the command if the shell has not read it yet. Returns whether it did. */
static bool cancel_unread(struct guest *guest, struct process *process)
{
    struct shell *shell = process->shell;

    if (shell->is_started && is_control_read(shell))
        return false;
    command_end(guest, process, SHELL_NOT_RUN, 0);
    return true;
}

static void interrupt_command(struct guest *guest, struct process *process)
{
    struct shell *shell = process->shell;
    pid_t group = foreground(process);

    if (cancel_unread(guest, process))
        return;
    (void)kill(group == process->pid ? group : -group, SIGINT);
    shell->interrupted_group = group;
    shell->interrupted_us = clock_us();
    shell->retry_us = shell->interrupted_us + RETRY_EVERY_US / 4;
    shell->retries = 0;
}

static void retry_interrupt(struct process *process, uint64_t now)
{
    struct shell *shell = process->shell;
    uint64_t since = now - shell->interrupted_us;
    pid_t group = foreground(process);

    shell->retry_us = now + RETRY_EVERY_US;
    shell->retries++;
    if (since > KILL_SHELL_US && shell->retries > KILL_SHELL_RETRIES)
        (void)kill(process->pid, SIGKILL);
    else if (since > KILL_GROUP_US && shell->retries > KILL_GROUP_RETRIES && group != process->pid)
        (void)kill(-group, SIGKILL);
    else if (group != process->pid && group != shell->interrupted_group)
        (void)kill(-group, SIGINT);
    else if (may_be_idle(process))
        probe_prompt(process);
    else if (group == process->pid && shell->retries % RETRIES_PER_SIGINT == 0)
        (void)kill(process->pid, SIGINT);
    shell->interrupted_group = group;
}

bool shell_handle(struct guest *guest, struct process *process, const struct frame *frame)
{
    const struct shell *shell = process->shell;
    uint64_t command, none;

    if (!shell)
        return false;
    if (frame->type == FRAME_SHELL_RUN)
        return handle_run(guest, process, frame);
    if (!message_get_numbers(frame, &command, &none))
        return false;
    if (shell->is_busy && !shell->is_ended && !process->is_exited && command == shell->command &&
        shell->interrupted_us == 0)
        interrupt_command(guest, process);
    return true;
}

static uint64_t shell_due_us(const struct process *process)
{
    const struct shell *shell = process->shell;
    uint64_t due = UINT64_MAX;

    if (!shell || process->is_exited)
        return due;
    if (shell->ready_us)
        due = shell->ready_us;
    if (shell->notify_us && shell->notify_us < due)
        due = shell->notify_us;
    if (shell->interrupted_us && shell->retry_us < due)
        due = shell->retry_us;
    return due;
}

long shell_wait_us(const struct guest *guest)
{
    uint64_t due = UINT64_MAX, now;

    if (guest->shell_count == 0)
        return -1;
    for (const struct process *process = guest->processes; process; process = process->next)
        if (shell_due_us(process) < due)
            due = shell_due_us(process);
    if (due == UINT64_MAX)
        return -1;
    now = clock_us();
    return due > now ? (long)(due - now) : 0;
}

void shell_tick(struct guest *guest)
{
    uint64_t now;

    if (guest->shell_count == 0)
        return;
    now = clock_us();
    for (struct process *process = guest->processes; process; process = process->next) {
        struct shell *shell = process->shell;
        uint64_t step;

        if (shell_due_us(process) > now)
            continue;
        if (shell->ready_us && shell->ready_us <= now)
            set_ready(process);
        if (shell->notify_us && shell->notify_us <= now) {
            step = shell->notify_step_us * 2;
            if (is_control_read(shell))
                shell->notify_us = 0;
            else
                notify_bash(process, step < NOTIFY_MAX_US ? step : NOTIFY_MAX_US);
        }
        if (shell->interrupted_us && shell->retry_us <= now)
            retry_interrupt(process, now);
    }
}
