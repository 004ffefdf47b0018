// SPDX-License-Identifier: Apache-2.0
#include "guest/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "guest/cell/cell.h"
#include "guest/guest.h"
#include "guest/process/spawn.h"
#include "guest/process/tree.h"
#include "guest/process/user.h"
#include "guest/shell/shell.h"
#include "kernel/pty.h"
#include "wire/message.h"

enum { TERMINAL_EOF = 4 /* Ctrl-D */, DISCARD_CHUNK = 4096, DISCARDS_PER_TURN = 64 };

/* Both ends of the stdio of a process; -1: none. */
struct stdio_ends {
    int child[3];
    int ours[3]; /* stdin, stdout, stderr; with a terminal, stdin and stdout are its master */
    struct shell_ends shell; /* only of a shell */
};

static const struct stdio_ends stdio_ends_none = {
    .child = { -1, -1, -1 },
    .ours = { -1, -1, -1 },
    .shell = { .side = { -1, -1, -1, -1, -1, -1 }, .out = { -1, -1 } },
};

static void stdio_ends_done(struct stdio_ends *ends)
{
    for (int i = 0; i < 3; i++) {
        cleanup_close_fd(&ends->child[i]);
        cleanup_close_fd(&ends->ours[i]);
    }
    shell_ends_done(&ends->shell);
}

static int set_nonblocking(int fd)
{
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 ? -errno : 0;
}

/* Only our end is non-blocking: the program expects an ordinary blocking pipe. */
static int open_pipe(struct stdio_ends *ends, int number)
{
    int fds[2], ours = number == 0 ? 1 : 0;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    ends->ours[number] = fds[ours];
    ends->child[number] = fds[1 - ours];
    return set_nonblocking(fds[ours]);
}

static int open_terminal(const struct guest *guest, const struct message_spawn *message,
                         struct stdio_ends *ends)
{
    int r = pty_open(guest->base.devpts_fd, &ends->ours[1], &ends->child[1]);

    if (r == 0)
        r = pty_resize(ends->ours[1], message->rows, message->columns);
    if (r == 0)
        r = set_nonblocking(ends->ours[1]);
    if (r < 0)
        return r;
    ends->ours[0] = fcntl(ends->ours[1], F_DUPFD_CLOEXEC, 3);
    ends->child[0] = fcntl(ends->child[1], F_DUPFD_CLOEXEC, 3);
    ends->child[2] = fcntl(ends->child[1], F_DUPFD_CLOEXEC, 3);
    return ends->ours[0] < 0 || ends->child[0] < 0 || ends->child[2] < 0 ? -EMFILE : 0;
}

static int open_shell(const struct guest *guest, const struct message_spawn *message,
                      struct stdio_ends *ends)
{
    int r = open_terminal(guest, message, ends);

    return r < 0 ? r : shell_open(message->shell, &ends->shell);
}

static int open_ends(const struct guest *guest, const struct message_spawn *message,
                     struct stdio_ends *ends)
{
    int r;

    if (message->shell != SHELL_NONE)
        return open_shell(guest, message, ends);
    if (message->has_terminal)
        return open_terminal(guest, message, ends);
    if (message->has_stdin) {
        r = open_pipe(ends, 0);
    } else {
        ends->child[0] = fcntl(guest->base.null_fd, F_DUPFD_CLOEXEC, 3);
        r = ends->child[0] < 0 ? -errno : 0;
    }
    if (r == 0)
        r = open_pipe(ends, 1);
    return r == 0 ? open_pipe(ends, 2) : r;
}

/* gVisor refuses it for pipes. */
static int chown_end(const struct guest *guest, int fd, uid_t uid)
{
    return fchown(fd, uid, (gid_t)-1) < 0 && !(guest->is_inner && errno == EPERM) ? -errno : 0;
}

/* The user of the process must be able to reopen them by way of /dev/stdout or /dev/tty. */
static int chown_ends(const struct guest *guest, const struct message_spawn *message,
                      const struct stdio_ends *ends)
{
    int r = 0;

    for (int i = 0; r == 0 && i < 3 && message->uid != 0; i++)
        if (i > 0 || message->has_stdin || message->has_terminal)
            r = chown_end(guest, ends->child[i], message->uid);
    for (int i = 0; r == 0 && i < ends->shell.side_count && message->uid != 0; i++)
        r = chown_end(guest, ends->shell.side[i], message->uid);
    return r;
}

/* Takes over our ends and adds the process to the table. */
static void process_add(struct guest *guest, uint32_t id, pid_t pid, struct stdio_ends *ends,
                        const struct message_spawn *message)
{
    struct process *process = xcalloc(1, sizeof(*process));

    process->id = id;
    process->pid = pid;
    process->has_terminal = message->has_terminal;
    process->waits_for_writers = message->waits_for_writers;
    process->started_ms = clock_ms();
    process->in = (struct watch){ .kind = WATCH_INPUT, .fd = TAKE_FD(ends->ours[0]) };
    process->in.owner = process;
    process->input.max = FRAME_WINDOW;
    for (int i = 0; i < STREAM_ALL; i++) {
        int *end = i < STREAM_COUNT ? &ends->ours[1 + i] : &ends->shell.out[i - STREAM_COUNT];

        process->out[i].watch = (struct watch){
            .kind = WATCH_OUTPUT, .fd = TAKE_FD(*end), .owner = process, .index = i
        };
        ring_init(&process->out[i].ring, FRAME_WINDOW);
        watch_set(guest->epoll_fd, &process->out[i].watch, EPOLLIN);
    }
    process->shell = TAKE_PTR(ends->shell.shell);
    if (process->shell) {
        guest->shell_count++;
        process->shell->status.owner = process;
        watch_set(guest->epoll_fd, &process->shell->status, EPOLLIN);
    }
    process->next = guest->processes;
    guest->processes = process;
    guest->process_count++;
    if (guest->last_process < id)
        guest->last_process = id;
}

static void reply_failed(struct guest *guest, uint32_t id, enum failed_step step, int r)
{
    const struct message_failed failed = { .step = step,
                                           .errnum = (uint32_t)-r,
                                           .text = strerror(-r) };

    (void)message_put_failed(&guest->link.out, id, &failed);
}

void process_spawn(struct guest *guest, const struct frame *frame, const int *fds)
{
    static struct message_spawn message; /* static: 32 KiB, and there is one thread */
    cleanup_with(stdio_ends_done) struct stdio_ends ends = stdio_ends_none;
    cleanup_close int cgroup_fd = frame->fds > 0 ? fds[0] : -EBADF;
    enum failed_step step = FAILED_SETUP;
    struct spawn spawn = { .rules = &guest->rules, .message = &message, .cgroup_fd = cgroup_fd };
    int r = 0;

    if (!message_get_spawn(frame, &message))
        r = -EPROTO;
    else if (!guest->is_rooted)
        r = -ENXIO;
    else if (process_find(guest, frame->process))
        r = -EEXIST;
    else if (guest->process_count >= GUEST_PROCESSES_MAX)
        r = -EAGAIN;
    if (r == 0 && message.user[0]) {
        step = FAILED_USER;
        r = user_resolve(guest, &message);
    }
    if (r == 0) {
        step = FAILED_SETUP;
        r = open_ends(guest, &message, &ends);
    }
    if (r == 0)
        r = chown_ends(guest, &message, &ends);
    if (r == 0) {
        memcpy(spawn.fds, ends.child, sizeof(spawn.fds));
        spawn.terminal_fd = message.has_terminal ? ends.child[1] : -1;
        spawn.side_fds = ends.shell.side;
        spawn.side_first = ends.shell.side_first;
        spawn.side_count = ends.shell.side_count;
        r = spawn_start(&spawn, &step);
    }
    if (r < 0) {
        reply_failed(guest, frame->process, step, r);
    } else {
        process_add(guest, frame->process, r, &ends, &message);
        (void)message_put_numbers(&guest->link.out, FRAME_STARTED, frame->process, (uint64_t)r, 0);
    }
    message_spawn_done(&message);
}

struct process *process_find(struct guest *guest, uint32_t id)
{
    struct process *process = guest->processes;

    while (process && process->id != id)
        process = process->next;
    return process;
}

static void close_watch(struct guest *guest, struct watch *watch)
{
    watch_set(guest->epoll_fd, watch, 0);
    watch->fd = fd_close(watch->fd);
}

/* Updates is_drained: set once everything up to the end mark has been read, or the pipe is empty.
 */
static void update_drained(struct process *process, int stream, bool is_empty)
{
    uint64_t produced = process->out[stream].ring.produced;

    if (process->out[stream].is_drained)
        return;
    if (is_empty && produced < process->end[stream])
        process->end[stream] = produced;
    process->out[stream].is_drained = produced >= process->end[stream];
}

/* Returns whether the end of the stream is known: the process or the shell's command has ended. */
static bool is_ending(const struct process *process, int stream)
{
    return process->is_exited || (stream >= STREAM_COUNT && process->shell->is_ended);
}

/* Returns whether an empty pipe is not the end, because other processes hold it and may write. */
static bool waits_for_others(const struct process *process)
{
    return process->waits_for_writers && !process->is_terminated;
}

/* Between commands, output of a shell's background jobs is discarded so that they do not block. */
static void discard_output(struct guest *guest, struct process *process, int stream)
{
    struct watch *watch = &process->out[stream].watch;
    char data[DISCARD_CHUNK];
    ssize_t n = 1;

    for (int i = 0; i < DISCARDS_PER_TURN && watch->fd >= 0 && n > 0; i++)
        n = read(watch->fd, data, sizeof(data));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_watch(guest, watch);
    watch_set(guest->epoll_fd, watch, EPOLLIN);
}

/* A terminal without a slave left returns EIO, which is its end of file. */
void process_output_ready(struct guest *guest, struct process *process, int stream)
{
    struct watch *watch = &process->out[stream].watch;
    struct ring *ring = &process->out[stream].ring;
    long n = 1;

    if (stream >= STREAM_COUNT && !shell_keeps_output(process->shell)) {
        discard_output(guest, process, stream);
        return;
    }
    while (watch->fd >= 0 && n > 0 && !ring_is_full(ring))
        n = ring_fill(ring, watch->fd);
    if (n == 0 || (n < 0 && n != -EAGAIN))
        close_watch(guest, watch);
    if (is_ending(process, stream))
        update_drained(process, stream,
                       watch->fd < 0 || (n == -EAGAIN && !waits_for_others(process)));
    watch_set(guest->epoll_fd, watch, ring_is_full(ring) ? 0 : EPOLLIN);
    if (process->shell && stream == STREAM_STDOUT)
        shell_terminal_shown(process);
}

/* The process has closed its stdin: the rest is discarded, so that the client does not block. */
static void abandon_input(struct guest *guest, struct process *process)
{
    buf_done(&process->input);
    close_watch(guest, &process->in);
}

static int write_input(struct process *process)
{
    while (process->input.len > 0) {
        ssize_t n = write(process->in.fd, process->input.data, process->input.len);

        if (n < 0)
            return -errno;
        buf_consume(&process->input, (size_t)n);
    }
    if (process->input_eof && process->has_terminal) {
        const char eof = TERMINAL_EOF;

        return write(process->in.fd, &eof, 1) < 0 ? -errno : 0;
    }
    return 0;
}

void process_input_ready(struct guest *guest, struct process *process)
{
    int r;

    if (process->in.fd < 0)
        return;
    r = write_input(process);
    if (r < 0 && r != -EAGAIN)
        abandon_input(guest, process);
    else if (r == 0 && process->input_eof)
        close_watch(guest, &process->in);
    watch_set(guest->epoll_fd, &process->in, r == -EAGAIN ? EPOLLOUT : 0);
}

/* After a reconnect the daemon sends bytes again; only new ones count. A gap is an error. */
static bool handle_input(struct guest *guest, struct process *process, const struct frame *frame)
{
    uint64_t offset, skip;
    const char *data;
    size_t len;

    if (!message_get_input(frame, &offset, &data, &len) || offset > process->input_received)
        return false;
    skip = process->input_received - offset;
    if (skip >= len)
        return true;
    process->input_received += len - skip;
    if (process->in.fd < 0)
        return true;
    if (buf_add(&process->input, data + skip, len - (size_t)skip) < 0)
        return false;
    process_input_ready(guest, process);
    return true;
}

/* Removed from the table at once, freed at the end of the turn: queued events may still point to
 * it. */
static void process_forget(struct guest *guest, struct process *process)
{
    struct process **slot = &guest->processes;

    while (*slot != process)
        slot = &(*slot)->next;
    *slot = process->next;
    close_watch(guest, &process->in);
    buf_done(&process->input);
    for (int i = 0; i < STREAM_ALL; i++) {
        close_watch(guest, &process->out[i].watch);
        ring_done(&process->out[i].ring);
    }
    if (process->shell) {
        watch_set(guest->epoll_fd, &process->shell->status, 0);
        guest->shell_count--;
    }
    process->next = guest->forgotten;
    guest->forgotten = process;
    guest->process_count--;
}

static bool handle_ack(struct guest *guest, struct process *process, uint64_t stream,
                       uint64_t offset)
{
    if (stream >= (process->shell ? STREAM_ALL : STREAM_COUNT) ||
        !ring_ack(&process->out[stream].ring, offset))
        return false;
    /* After a reconnect the acknowledgement can be ahead of the bytes sent again. */
    if (process->out[stream].sent < offset)
        process->out[stream].sent = offset;
    if (process->out[stream].watch.fd >= 0)
        process_output_ready(guest, process, (int)stream);
    return true;
}

/* Counts the bytes that are in the pipe. Other holders of the pipe may write forever, and the
 * exit of the process does not wait for them unless the spawn asked for that. */
static uint64_t waiting_bytes(const struct watch *watch)
{
    int count = 0;

    return watch->fd >= 0 && ioctl(watch->fd, FIONREAD, &count) == 0 ? (uint64_t)count : 0;
}

void process_mark_end(struct guest *guest, struct process *process, int stream)
{
    bool is_kept = stream < STREAM_COUNT || (process->shell && shell_keeps_output(process->shell));

    process->end[stream] = process->out[stream].ring.produced;
    process->out[stream].is_drained = !is_kept;
    if (is_kept && process->is_exited && waits_for_others(process))
        process->end[stream] = UINT64_MAX;
    else if (is_kept)
        process->end[stream] += waiting_bytes(&process->out[stream].watch);
    if (stream < STREAM_COUNT || process->shell)
        process_output_ready(guest, process, stream);
}

static void mark_ends(struct guest *guest, struct process *process)
{
    for (int i = 0; i < STREAM_ALL; i++)
        process_mark_end(guest, process, i);
}

static void handle_signal(struct guest *guest, struct process *process, int signal)
{
    bool is_tree = signal & SIGNAL_TREE;

    signal &= ~SIGNAL_TREE;
    if (is_tree && (!process->is_exited || process->waits_for_writers))
        tree_signal(process->pid, signal);
    else if (!process->is_exited)
        (void)kill(process->pid, signal);
    if (process->is_terminated || (signal != SIGKILL && signal != SIGTERM))
        return;
    process->is_terminated = true;
    if (process->is_exited)
        mark_ends(guest, process);
}

bool process_handle(struct guest *guest, struct process *process, const struct frame *frame)
{
    uint64_t first, second;

    if (frame->type == FRAME_INPUT)
        return handle_input(guest, process, frame);
    if (frame->type == FRAME_SHELL_RUN || frame->type == FRAME_SHELL_INTERRUPT)
        return shell_handle(guest, process, frame);
    if (!message_get_numbers(frame, &first, &second))
        return false;
    if (frame->type == FRAME_ACK)
        return handle_ack(guest, process, first, second);
    if (frame->type == FRAME_INPUT_EOF) {
        process->input_eof = true;
        process_input_ready(guest, process);
    } else if (frame->type == FRAME_SIGNAL) {
        handle_signal(guest, process, (int)first);
    } else if (frame->type == FRAME_RESIZE && process->has_terminal) {
        (void)pty_resize(process->out[STREAM_STDOUT].watch.fd, (uint16_t)first, (uint16_t)second);
    } else if (frame->type == FRAME_FORGET) {
        process_forget(guest, process);
    }
    return true;
}

static uint64_t micros(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

void process_reap(struct guest *guest)
{
    struct rusage usage;
    pid_t pid;
    int status;

    /* Several SIGCHLD may merge into one. */
    while ((pid = wait4(-1, &status, WNOHANG | __WALL, &usage)) > 0) {
        struct process *process = guest->processes;

        while (process && (process->pid != pid || process->is_exited))
            process = process->next;
        if (!process) {
            (void)cell_reap(guest, pid, status);
            continue;
        }
        process->is_exited = true;
        process->ended_ms = clock_ms();
        process->status = (uint32_t)status;
        process->cpu_us = micros(usage.ru_utime) + micros(usage.ru_stime);
        process->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
        mark_ends(guest, process);
    }
}

static void pump_stream(struct guest *guest, struct process *process, int stream)
{
    const char *data;
    size_t len;

    while (guest->link.out.len < LINK_OUT_BUSY &&
           (len = ring_peek(&process->out[stream].ring, process->out[stream].sent, &data)) > 0) {
        if (len > FRAME_DATA_MAX)
            len = FRAME_DATA_MAX;
        if (message_put_stream(&guest->link.out, process->id, (enum frame_stream)stream,
                               process->out[stream].sent, data, len) < 0)
            return;
        process->out[stream].sent += len;
    }
}

static void pump_end(struct guest *guest, struct process *process)
{
    struct message_exited exited = {
        .status = process->status,
        .cpu_us = process->cpu_us,
        .peak_bytes = process->peak_bytes,
    };

    if (!process->is_exited || process->is_end_sent)
        return;
    for (int i = 0; i < STREAM_ALL; i++) {
        if (!process->out[i].is_drained || process->out[i].sent < process->end[i])
            return;
        if (i < STREAM_COUNT)
            exited.end[i] = process->end[i];
    }
    process->is_end_sent = message_put_exited(&guest->link.out, process->id, &exited) == 0;
}

static uint64_t input_taken(const struct process *process)
{
    return process->input_received - process->input.len;
}

static void pump_input_ack(struct guest *guest, struct process *process)
{
    uint64_t taken = input_taken(process);

    if (taken != process->input_acked &&
        message_put_numbers(&guest->link.out, FRAME_INPUT_ACK, process->id, taken, 0) == 0)
        process->input_acked = taken;
}

void process_pump(struct guest *guest)
{
    for (struct process *process = guest->processes; process; process = process->next) {
        for (int i = 0; i < STREAM_ALL; i++)
            pump_stream(guest, process, i);
        if (process->shell)
            shell_pump(guest, process);
        pump_end(guest, process);
        pump_input_ack(guest, process);
    }
}

static struct message_state state_of(const struct process *process)
{
    struct message_state state = {
        .pid = (uint32_t)process->pid,
        .has_terminal = process->has_terminal,
        .is_exited = process->is_exited,
        .is_input_open = process->in.fd >= 0 && !process->input_eof,
        .input = process->input_received,
        .input_taken = input_taken(process),
        .age_ms = (process->is_exited ? process->ended_ms : clock_ms()) - process->started_ms,
    };

    if (process->shell) {
        state.is_shell = true;
        state.is_shell_busy = process->shell->is_busy;
        state.shell_command = process->shell->command;
        for (int i = STREAM_COUNT; i < STREAM_ALL; i++)
            state.shell_output[i - STREAM_COUNT] = process->out[i].ring.produced;
    }
    for (int i = 0; i < STREAM_COUNT; i++) {
        state.acked[i] = process->out[i].ring.acked;
        state.produced[i] = process->out[i].ring.produced;
    }
    return state;
}

bool process_announce(struct guest *guest)
{
    bool is_ok = true;

    for (struct process *process = guest->processes; process; process = process->next) {
        struct message_state state;

        if (process->shell)
            shell_drop_output(guest, process);
        state = state_of(process);
        for (int i = 0; i < STREAM_COUNT; i++)
            process->out[i].sent = process->out[i].ring.acked;
        process->is_end_sent = false;
        process->input_acked = state.input_taken;
        is_ok = is_ok && message_put_state(&guest->link.out, process->id, &state) == 0;
    }
    return is_ok;
}
