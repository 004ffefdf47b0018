// SPDX-License-Identifier: Apache-2.0
/* Reads messages of an agent from stdin, one a line, until it or stdout ends. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/xalloc.h"
#include "cli/core/report.h"
#include "cli/mcp/bridge_internal.h"
#include "cli/mcp/sandbox.h"
#include "cli/run/signals.h"
#include "holt.h"

enum { READ_SIZE = 64 * 1024, UNDER_WAY_MAX = 256, LEAVE_MS = 1000 };

/* Returns whether no further request can be taken for now. */
static bool is_full(struct bridge *bridge)
{
    bool is_full;

    lock_take(&bridge->lock);
    is_full = bridge->under_way >= UNDER_WAY_MAX;
    lock_release(&bridge->lock);
    return is_full;
}

static bool is_blank(const char *line, size_t len)
{
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t' || line[len - 1] == '\r'))
        len--;
    return len == 0;
}

/* Requests without a session are cancelled here; other cancellations are for the daemon. Returns
 * whether nothing else is to be done. */
static bool cancellation_take(struct bridge *bridge, const json_t *message)
{
    const json_t *id = json_object_get(json_object_get(message, "params"), "requestId");
    const char *method = json_string_value(json_object_get(message, "method"));
    char session[MCP_SESSION_SIZE];

    if (!method || !id || strcmp(method, "notifications/cancelled") != 0)
        return false;
    bridge_get_session(bridge, session);
    return jobs_cancel(bridge, id) || !*session;
}

/* Invalid lines are sent too, so that the daemon replies with the error. A request runs in a thread
 * of its own; other messages are short and are sent in order. */
static void line_take(struct bridge *bridge, const char *line, size_t len)
{
    struct job *job;
    const char *method;

    if (is_blank(line, len))
        return;
    job = job_new(bridge, line, len);
    method = json_string_value(json_object_get(job->message, "method"));
    if (method && job->id && !job->is_stateless && strcmp(method, "initialize") == 0) {
        job_initialize(job);
        job_free(job);
    } else if (job->needs_sandbox || (method && job->id)) {
        job_start(job);
    } else {
        if (!cancellation_take(bridge, job->message))
            job_do(job);
        job_free(job);
    }
}

/* Input that was read and not handled yet. */
struct input {
    struct buf bytes;
    bool has_ended;
    bool is_skipping; /* the line is too long: skip to its end */
};

/* Returns the length of the next line, or -1 if it is incomplete. The end of stdin ends a line. */
static ssize_t line_find(const struct input *input)
{
    const struct buf *bytes = &input->bytes;
    const char *end = bytes->len > 0 ? memchr(bytes->data, '\n', bytes->len) : NULL;

    if (end)
        return end - bytes->data;
    return input->has_ended && bytes->len > 0 ? (ssize_t)bytes->len : -1;
}

static void lines_take(struct bridge *bridge, struct input *input)
{
    ssize_t len;

    while (!is_full(bridge) && (len = line_find(input)) >= 0) {
        if (!input->is_skipping)
            line_take(bridge, input->bytes.data, (size_t)len);
        input->is_skipping = false;
        buf_consume(&input->bytes, (size_t)len < input->bytes.len ? (size_t)len + 1 : (size_t)len);
    }
}

static void input_read(struct bridge *bridge, struct input *input)
{
    struct buf *bytes = &input->bytes;
    ssize_t n;

    if (bytes->len > MCP_LINE_MAX) {
        if (!input->is_skipping)
            bridge_put_error(bridge, NULL, MCP_CODE_INVALID, "a message is longer than 4 MiB");
        input->is_skipping = true;
        buf_clear(bytes);
    }
    if (buf_reserve(bytes, READ_SIZE) < 0) {
        input->has_ended = true;
        return;
    }
    n = read(STDIN_FILENO, bytes->data + bytes->len, READ_SIZE);
    if (n > 0)
        bytes->len += (size_t)n;
    input->has_ended = n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

static bool is_over(struct bridge *bridge, const struct input *input)
{
    bool is_over;

    lock_take(&bridge->lock);
    is_over =
        bridge->is_broken || (input->has_ended && input->bytes.len == 0 && bridge->under_way == 0);
    lock_release(&bridge->lock);
    return is_over;
}

static bool is_idle(struct bridge *bridge)
{
    bool is_idle;

    lock_take(&bridge->lock);
    is_idle = bridge->under_way == 0;
    lock_release(&bridge->lock);
    return is_idle;
}

/* Returns the number of the signal that ended the loop, or 0. */
static int serve(struct bridge *bridge, struct input *input)
{
    struct run_signal signal;
    uint64_t count;

    while (!is_over(bridge, input)) {
        bool has_room = !input->has_ended && !is_full(bridge);
        struct pollfd fds[] = {
            { .fd = bridge->signal_fd, .events = POLLIN },
            { .fd = bridge->wake_fd, .events = POLLIN },
            { .fd = STDOUT_FILENO, .events = 0 },
            { .fd = has_room ? STDIN_FILENO : -1, .events = POLLIN },
        };

        if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
            return 0;
        if (fds[0].revents && run_signals_next(bridge->signal_fd, &signal) > 0)
            return signal.number;
        if (fds[1].revents)
            (void)!read(bridge->wake_fd, &count, sizeof(count));
        if (fds[2].revents & (POLLERR | POLLHUP))
            return 0;
        if (fds[3].revents)
            input_read(bridge, input);
        lines_take(bridge, input);
    }
    return 0;
}

/* Cancels the running requests in the daemon too. */
static void session_end(struct bridge *bridge)
{
    struct mcp_post_request request = { .verb = "DELETE", .path = bridge->path, .body = "" };
    char session[MCP_SESSION_SIZE];
    struct mcp_post *reply;
    struct holt_error error;

    bridge_get_session(bridge, session);
    request.session = session;
    (void)jobs_cancel(bridge, NULL);
    if (!*session)
        return;
    if (mcp_post_open(bridge->options->holt, &request, &reply, &error) < 0)
        return;
    (void)mcp_post_wait(reply, &error);
    mcp_post_close(reply);
}

/* The daemon has ended the running requests. A thread may still be blocked on stdout or copy a
 * workspace; it ends with the process. */
static void jobs_await(struct bridge *bridge, int status)
{
    struct pollfd fd = { .fd = bridge->wake_fd, .events = POLLIN };
    uint64_t count;

    while (!is_idle(bridge)) {
        if (poll(&fd, 1, LEAVE_MS) <= 0)
            _exit(status);
        (void)!read(bridge->wake_fd, &count, sizeof(count));
    }
}

static void bridge_done(struct bridge *bridge)
{
    lock_destroy(&bridge->out_lock);
    lock_destroy(&bridge->lock);
    (void)fd_close(bridge->signal_fd);
    (void)fd_close(bridge->wake_fd);
    buf_done(&bridge->first);
    free(bridge->path);
}

int mcp_bridge_run(const struct mcp_bridge_options *options)
{
    cleanup_with(bridge_done) struct bridge bridge = {
        .options = options,
        .first = BUF_INIT(MCP_LINE_MAX),
        .path = xasprintf("mcp?sandbox=%s%s", mcp_sandbox_name(options->sandbox),
                          options->is_read_only ? "&read-only=true" : ""),
        .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .signal_fd = run_signals_open(false),
    };
    struct input input = { .bytes = BUF_INIT(MCP_LINE_MAX + 2 * READ_SIZE) };
    int number, status;

    lock_init(&bridge.out_lock, LOCK_BRIDGE_OUTPUT);
    lock_init(&bridge.lock, LOCK_BRIDGE);
    if (bridge.wake_fd < 0 || bridge.signal_fd < 0)
        return report("prepare to wait: %s", strerror(errno));
    if (isatty(STDIN_FILENO))
        report_note("waiting for messages of an agent on stdin; see 'holt mcp --help'");
    number = serve(&bridge, &input);
    status = number ? STATUS_SIGNAL + number : STATUS_OK;
    buf_done(&input.bytes);
    session_end(&bridge);
    mcp_sandbox_remove(options->sandbox, options->holt);
    jobs_await(&bridge, status);
    return status;
}
