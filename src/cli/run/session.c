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
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/xalloc.h"
#include "cli/core/report.h"
#include "cli/core/terminal.h"
#include "cli/run/input.h"
#include "cli/run/outcome.h"
#include "cli/run/signals.h"
#include "cli/run/target.h"
#include "holt.h"

enum { OUTPUT_MAX = 1024 * 1024 };

struct session {
    const struct run_setup *setup;
    enum run_role role;
    struct run_target target; /* known once the process has started */
    struct terminal terminal;
    struct buf output;
    int leave_fd; /* readable once the user has typed the keys to leave; -1: there are none */
    bool is_started;
    bool cannot_nowait[2]; /* our stdout and stderr can only be written to in pieces */
    int status;            /* the exit status, once a step has returned -1 */
};

static int stop(struct session *session, int status)
{
    session->status = status;
    return -1;
}

/* A terminal turns keys into signals inside the sandbox; what reaches holt itself means holt, and a
 * shell at the terminal would ignore it. Before the start there is nobody else it could mean. And a
 * guest is told to go by what is not typed. */
static bool is_for_us(const struct session *session, int number)
{
    bool is_order = number == SIGTERM || number == SIGHUP;
    bool is_key = number == SIGINT || number == SIGQUIT;

    return !session->is_started || (is_order && session->role != RUN_OWNER) ||
           (session->setup->has_tty && (is_order || is_key));
}

static void resize(struct session *session)
{
    struct holt_error ignored;
    uint32_t rows, columns;

    if (!session->is_started)
        return;
    terminal_size(&rows, &columns);
    (void)run_target_resize(&session->target, rows, columns, &ignored);
}

/* There is nobody left to signal, and what became of the process is about to be told. */
static bool is_over(const struct holt_error *error)
{
    return strcmp(error->code, "not_found") == 0 || strcmp(error->cause, "ProcessEnded") == 0;
}

static int handle_signals(struct session *session)
{
    struct run_signal received;
    struct holt_error error;

    while (run_signals_next(session->setup->signal_fd, &received)) {
        if (received.number == SIGWINCH)
            resize(session);
        else if (is_for_us(session, received.number))
            return stop(session, STATUS_SIGNAL + received.number);
        /* A terminal signals the whole group in front of it, kill(2) only the one it names. */
        else if (run_target_signal(&session->target, received.number, received.is_from_kernel,
                                   &error) < 0 &&
                 !is_over(&error))
            (void)report("cannot pass on signal %d: %s", received.number, error.message);
    }
    return 0;
}

static int handle_leave(struct session *session)
{
    terminal_restore(&session->terminal);
    report_note("left process '%s', which goes on", session->target.process_id);
    return stop(session, STATUS_OK);
}

/* Waits for fd, and serves signals meanwhile: 0 or -1. */
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
            return stop(session, report("poll: %s", strerror(errno)));
        }
        if (waits[1].revents && handle_signals(session) < 0)
            return -1;
        if (waits[2].revents)
            return handle_leave(session);
        if (waits[0].revents)
            return 0;
    }
}

/* As much as the descriptor takes without waiting; 0: nothing. It is shared with others and is
 * therefore not made non-blocking. Pipes can do that since Linux 6.4, other files and kernels may
 * not; but a pipe that polls as writable takes PIPE_BUF bytes at once. */
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

/* Blocks in poll and nowhere else, where signals are still served. */
static int write_output(struct session *session, int fd, const char *data, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n;

        if (wait_for(session, fd, POLLOUT) < 0)
            return -1;
        n = write_some(session, fd, data + done, size - done);
        if (n < 0 && errno == EPIPE)
            return stop(session, STATUS_BROKEN_PIPE);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return stop(session,
                        report("cannot write to %s: %s", fd == STDOUT_FILENO ? "stdout" : "stderr",
                               strerror(errno)));
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int handle_output(struct session *session, const json_t *event, const char *name, int fd)
{
    struct err err;

    buf_clear(&session->output);
    if (json_get_bytes(event, name, &session->output, &err) < 0)
        return stop(session, report("the daemon's answer cannot be read: %s", err.msg));
    return write_output(session, fd, session->output.data, session->output.len);
}

/* Our terminal and our stdin become the process's. */
static int connect_user(struct session *session)
{
    const struct run_setup *setup = session->setup;
    struct run_input input = {
        .target = &session->target,
        .stream = setup->stream,
        .keeps_open = setup->keeps_stdin,
        .leave_fd = -1,
    };
    int r = 0;

    if (setup->has_tty) {
        terminal_make_raw(&session->terminal);
        if (session->role == RUN_GUEST) {
            resize(session);
            session->leave_fd = eventfd(0, EFD_CLOEXEC);
            input.leave_fd = session->leave_fd;
        }
    }
    if (setup->has_stdin)
        r = run_input_start(&input);
    return r < 0 ? stop(session, report("start the thread for stdin: %s", strerror(-r))) : 0;
}

/* A process that an earlier call has started has somebody else's input. */
static int handle_started(struct session *session, const json_t *started)
{
    const char *sandbox_id = "", *process_id = "";
    bool is_joined = false;
    struct err err;

    if (json_get_text(started, "sandboxId", &sandbox_id, &err) < 0 ||
        json_get_text(started, "processId", &process_id, &err) < 0 ||
        json_get_bool(started, "joined", &is_joined, &err) < 0)
        return stop(session, report("the daemon's answer cannot be read: %s", err.msg));
    if (session->is_started)
        return 0;
    session->is_started = true;
    session->target = (struct run_target){
        .host = session->setup->host,
        .sandbox_id = xstrdup(sandbox_id),
        .process_id = xstrdup(process_id),
    };
    if (is_joined)
        session->role = RUN_GUEST;
    return is_joined ? 0 : connect_user(session);
}

static int handle_gap(struct session *session, const json_t *gap)
{
    const char *stream = "";
    uint64_t offset = 0, missing = 0;
    struct err err;

    if (json_get_text(gap, "stream", &stream, &err) < 0 ||
        json_get_u64(gap, "offset", &offset, &err) < 0 ||
        json_get_u64(gap, "missing", &missing, &err) < 0)
        return stop(session, report("the daemon's answer cannot be read: %s", err.msg));
    (void)report("%" PRIu64 " bytes of %s from offset %" PRIu64 " on are not kept", missing,
                 strcmp(stream, "STREAM_STDERR") == 0 ? "stderr" : "stdout", offset);
    return 0;
}

static int handle_ended(struct session *session, const json_t *ended)
{
    terminal_restore(&session->terminal);
    return stop(session, session->role == RUN_VIEWER ? STATUS_OK
                                                     : run_outcome(session->setup->command, ended));
}

static int handle_event(struct session *session, const char *message, size_t len)
{
    cleanup_json json_t *event = NULL;
    const json_t *started = NULL, *ended = NULL, *gap = NULL;
    struct err err;

    if (json_parse_object(message, len, &event, &err) < 0 ||
        json_get_object(event, "started", &started, &err) < 0 ||
        json_get_object(event, "ended", &ended, &err) < 0 ||
        json_get_object(event, "gap", &gap, &err) < 0)
        return stop(session, report("the daemon's answer cannot be read: %s", err.msg));
    if (started)
        return handle_started(session, started);
    if (ended)
        return handle_ended(session, ended);
    if (gap)
        return handle_gap(session, gap);
    if (handle_output(session, event, "stdout", STDOUT_FILENO) < 0)
        return -1;
    return handle_output(session, event, "stderr", STDERR_FILENO);
}

/* The length of {"offset":"123", at the beginning of a message, or of the brace alone. */
static size_t head_length(const char *message, size_t len)
{
    static const char start[] = "{\"offset\":\"";
    size_t at = strlen(start);

    if (len < at || memcmp(message, start, at) != 0)
        return 1;
    while (at < len && message[at] >= '0' && message[at] <= '9')
        at++;
    return at + 2 < len && memcmp(message + at, "\",", 2) == 0 ? at + 2 : 1;
}

/* Whether message is {"name":"BASE64"}, perhaps with an offset before the name, and nothing else;
 * it is then decoded. Almost every message of a talkative process is, and a parser of all JSON
 * would cost more than all the rest. */
static bool is_plain_output(struct session *session, const char *name, const char *message,
                            size_t len)
{
    char start[32];
    size_t start_len = (size_t)snprintf(start, sizeof(start), "\"%s\":\"", name);
    size_t head = head_length(message, len), around = head + start_len + strlen("\"}");

    buf_clear(&session->output);
    return len >= around && *message == '{' && memcmp(message + head, start, start_len) == 0 &&
           memcmp(message + len - 2, "\"}", 2) == 0 &&
           base64_decode(&session->output, message + head + start_len, len - around) == 0;
}

static int handle_message(struct session *session, const char *message, size_t len)
{
    if (is_plain_output(session, "stdout", message, len))
        return write_output(session, STDOUT_FILENO, session->output.data, session->output.len);
    if (is_plain_output(session, "stderr", message, len))
        return write_output(session, STDERR_FILENO, session->output.data, session->output.len);
    return handle_event(session, message, len);
}

static int handle_piece(struct session *session, const struct holt_piece *piece)
{
    switch (piece->kind) {
    case HOLT_STDOUT:
        return write_output(session, STDOUT_FILENO, piece->data, piece->len);
    case HOLT_STDERR:
        return write_output(session, STDERR_FILENO, piece->data, piece->len);
    case HOLT_EVENT:
        break;
    }
    return handle_message(session, piece->data, piece->len);
}

static int step(struct session *session)
{
    int fd = holt_stream_fd(session->setup->stream), r;
    struct holt_error error;
    struct holt_piece piece;

    if (fd >= 0 && wait_for(session, fd, POLLIN) < 0)
        return -1;
    r = holt_stream_next_raw(session->setup->stream, &piece, &error);
    if (r > 0)
        return handle_piece(session, &piece);
    terminal_restore(&session->terminal);
    if (r == 0 && session->role == RUN_VIEWER)
        return stop(session, STATUS_OK);
    return stop(session, r < 0 ? report_holt_error(&error)
                               : report("the daemon ended the run without an outcome"));
}

int run_session(const struct run_setup *setup)
{
    struct session session = {
        .setup = setup,
        .role = setup->role,
        .output = BUF_INIT(OUTPUT_MAX),
        .leave_fd = -1,
    };

    while (step(&session) == 0)
        ;
    terminal_restore(&session.terminal);
    run_target_done(&session.target);
    (void)fd_close(session.leave_fd);
    buf_done(&session.output);
    return session.status;
}
