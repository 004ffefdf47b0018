// SPDX-License-Identifier: Apache-2.0
#include "cli/run/session.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/terminal.h"
#include "cli/run/input.h"
#include "cli/run/line_times.h"
#include "cli/run/outcome.h"
#include "cli/run/signals.h"
#include "holt.h"

enum {
    STAMPED_BYTES_MAX = 256 * 1024 * 1024
}; /* of one message, each byte of which may be a line */

struct session {
    const struct run_setup *setup;
    enum run_role role;
    struct terminal terminal;
    int leave_fd; /* readable after the keys that detach; -1: they have no meaning */
    bool is_started;
    bool is_resize_due;    /* our terminal has changed its size before the start */
    bool has_input;        /* a thread passes stdin on */
    bool cannot_nowait[2]; /* stdout and stderr do not support RWF_NOWAIT */
    int status;            /* the exit status, once a step has returned -1 */
};

static int session_stop(struct session *session, int status)
{
    session->status = status;
    return -1;
}

/* Returns whether a signal is meant for holt. A terminal turns keys into signals inside the
 * sandbox, so a signal that reaches holt is not meant for the process, and a shell would ignore it.
 * Before the start there is no process. A guest is ended by a signal that is not a key. */
static bool is_for_holt(const struct session *session, int number)
{
    bool is_order = number == SIGTERM || number == SIGHUP;
    bool is_key = number == SIGINT || number == SIGQUIT;

    return !session->is_started || (is_order && session->role != RUN_OWNER) ||
           (session->setup->has_tty && (is_order || is_key));
}

static void process_resize(struct session *session)
{
    struct holt_error ignored;
    uint32_t rows, columns;

    session->is_resize_due = !session->is_started;
    if (session->is_resize_due)
        return;
    terminal_size(&rows, &columns);
    (void)holt_process_resize(session->setup->process, rows, columns, HOLT_NO_DEADLINE, &ignored);
}

/* Returns whether the process has ended; the reason follows as an event. */
static bool is_over(const struct holt_error *error)
{
    return strcmp(error->code, "not_found") == 0 || strcmp(error->cause, "ProcessEnded") == 0;
}

/* A terminal signals the whole foreground group, kill(2) only one process. */
static void signal_forward(struct session *session, const struct run_signal *received)
{
    const struct holt_process *process = session->setup->process;
    struct holt_error error;
    int r = (received->is_from_kernel ? holt_process_signal_tree : holt_process_signal)(
        session->setup->connection->holt, holt_process_sandbox_id(process),
        holt_process_id(process), received->number, HOLT_NO_DEADLINE, &error);

    if (r < 0 && !is_over(&error))
        (void)report("cannot forward signal %d: %s", received->number, error.message);
}

static int handle_signals(struct session *session)
{
    struct run_signal received;

    while (run_signals_next(session->setup->signal_fd, &received)) {
        if (received.number == SIGWINCH)
            process_resize(session);
        else if (is_for_holt(session, received.number))
            return session_stop(session, STATUS_SIGNAL + received.number);
        else
            signal_forward(session, &received);
    }
    return 0;
}

static int handle_leave(struct session *session)
{
    terminal_restore(&session->terminal);
    report_note("detached from process '%s', which continues",
                holt_process_id(session->setup->process));
    return session_stop(session, STATUS_OK);
}

/* Waits for fd and handles signals meanwhile. Returns 0 or -1. */
static int wait_for(struct session *session, int fd, short events)
{
    struct pollfd waits[] = {
        { .fd = fd, .events = events },
        { .fd = session->setup->signal_fd, .events = POLLIN },
        { .fd = session->leave_fd, .events = POLLIN },
    };

    for (;;) {
        if (poll(waits, ARRAY_SIZE(waits), -1) < 0) {
            if (errno == EINTR)
                continue;
            return session_stop(session, report("poll: %s", strerror(errno)));
        }
        if (waits[1].revents && handle_signals(session) < 0)
            return -1;
        if (waits[2].revents)
            return handle_leave(session);
        if (waits[0].revents)
            return 0;
    }
}

/* Writes as much as fd takes without blocking. Other programs share fd, so it must not become
 * non-blocking. RWF_NOWAIT works for pipes since Linux 6.4; elsewhere, a pipe that polls as
 * writable takes PIPE_BUF bytes without blocking. */
static ssize_t write_some(struct session *session, int fd, const char *data, size_t len)
{
    const struct iovec part = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
    bool *cannot = &session->cannot_nowait[fd == STDOUT_FILENO ? 0 : 1];

    if (!*cannot) {
        ssize_t n = pwritev2(fd, &part, 1, -1, RWF_NOWAIT);

        *cannot = n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL);
        if (!*cannot)
            return n;
    }
    return write(fd, data, len < PIPE_BUF ? len : PIPE_BUF);
}

/* Blocks only in poll, where signals are handled. */
static int write_output(struct session *session, int fd, const char *data, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n;

        if (wait_for(session, fd, POLLOUT) < 0)
            return -1;
        n = write_some(session, fd, data + done, size - done);
        if (n < 0 && errno == EPIPE)
            return session_stop(session, STATUS_BROKEN_PIPE);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return session_stop(session,
                                report("cannot write to %s: %s",
                                       fd == STDOUT_FILENO ? "stdout" : "stderr", strerror(errno)));
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Writes output of a stream, with the times of its lines if that is wanted. */
static int show_output(struct session *session, int stream, const struct holt_process_event *event)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(STAMPED_BYTES_MAX);
    const int fd = stream == 0 ? STDOUT_FILENO : STDERR_FILENO;

    if (!session->setup->line_times)
        return write_output(session, fd, event->data, event->len);
    line_times_add(session->setup->line_times, stream, event, &text);
    return write_output(session, fd, text.data, text.len);
}

/* Connects our terminal and stdin to the process. */
static int connect_user(struct session *session)
{
    const struct run_setup *setup = session->setup;
    struct run_input input = {
        .process = setup->process,
        .keeps_open = setup->keeps_stdin,
        .leave_fd = -1,
    };
    int r;

    if (setup->has_tty) {
        terminal_make_raw(&session->terminal);
        if (session->is_resize_due)
            process_resize(session);
        if (session->role == RUN_GUEST) {
            session->leave_fd = eventfd(0, EFD_CLOEXEC);
            input.leave_fd = session->leave_fd;
        }
    }
    if (!setup->has_stdin)
        return 0;
    r = run_input_start(&input);
    session->has_input = r == 0;
    return r < 0 ? session_stop(session, report("start the thread for stdin: %s", strerror(-r)))
                 : 0;
}

/* The input of a process of an earlier call belongs to that call. */
static int handle_started(struct session *session)
{
    bool is_joined = holt_process_is_joined(session->setup->process);

    if (session->is_started)
        return 0;
    session->is_started = true;
    if (is_joined)
        session->role = RUN_GUEST;
    return is_joined ? 0 : connect_user(session);
}

static int handle_gap(const struct holt_process_event *gap)
{
    (void)report("%" PRIu64 " bytes of %s at offset %" PRIu64 " were not kept", gap->missing,
                 gap->stream == HOLT_STDERR ? "stderr" : "stdout", gap->offset);
    return 0;
}

static int handle_ended(struct session *session, const struct holt_end *end)
{
    const bool is_viewer = session->role == RUN_VIEWER;
    int status = STATUS_OK;

    terminal_restore(&session->terminal);
    /* A process that never ran has no output, so a viewer would see nothing at all. */
    if (!is_viewer || end->outcome == HOLT_NOT_STARTED)
        status = run_outcome(session->setup->command, end);
    return session_stop(session, is_viewer ? STATUS_OK : status);
}

static int handle_event(struct session *session, const struct holt_process_event *event)
{
    switch (event->kind) {
    case HOLT_PROCESS_STARTED:
        return handle_started(session);
    case HOLT_PROCESS_STDOUT:
        return show_output(session, 0, event);
    case HOLT_PROCESS_STDERR:
        return show_output(session, 1, event);
    case HOLT_PROCESS_GAP:
        return handle_gap(event);
    case HOLT_PROCESS_ENDED:
        break;
    }
    return handle_ended(session, event->end);
}

static int session_step(struct session *session)
{
    struct holt_process *process = session->setup->process;
    const struct holt_process_event *event;
    int fd = holt_process_fd(process), r;
    struct holt_error error;

    if (fd >= 0 && wait_for(session, fd, POLLIN) < 0)
        return -1;
    r = holt_process_next(process, &event, &error);
    if (r > 0)
        return handle_event(session, event);
    terminal_restore(&session->terminal);
    if (r == 0 && session->role == RUN_VIEWER)
        return session_stop(session, STATUS_OK);
    return session_stop(session, r < 0 ? report_holt_error(&error)
                                       : report("the daemon ended the run without an outcome"));
}

/* The thread for stdin may still use the process and the connection: they stay open until the end
 * of the program, where a leak checker finds them. */
static struct holt_process *volatile abandoned_process;
static struct holt *volatile abandoned_holt;

static void session_abandon(const struct run_setup *setup)
{
    abandoned_process = setup->process;
    abandoned_holt = TAKE_PTR(setup->connection->holt);
}

int run_session(const struct run_setup *setup)
{
    struct session session = { .setup = setup, .role = setup->role, .leave_fd = -1 };

    while (session_step(&session) == 0)
        ;
    terminal_restore(&session.terminal);
    (void)fd_close(session.leave_fd);
    if (session.has_input)
        session_abandon(setup);
    else
        holt_process_close(setup->process);
    return session.status;
}
