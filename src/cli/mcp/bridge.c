// SPDX-License-Identifier: Apache-2.0
#include "cli/mcp/bridge.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "cli/core/report.h"
#include "cli/mcp/sandbox.h"
#include "cli/run/signals.h"
#include "client/transport/mcp.h"
#include "holt.h"

enum {
    LINE_MAX_BYTES = 4 * 1024 * 1024, /* equal to the daemon's limit */
    READ_SIZE = 64 * 1024,
    UNDER_WAY_MAX = 256,
    LEAVE_MS = 1000,
    CODE_INTERNAL = -32603,
    CODE_INVALID = -32600,
    STATUS_NO_SESSION = 404,
};

struct bridge {
    const struct mcp_bridge_options *options;
    char *path;
    int signal_fd;
    int wake_fd; /* a message was answered, or stdout was closed */

    struct lock out_lock; /* serialises writes to stdout, which may block */
    struct lock lock;     /* protects everything below */
    struct buf first; /* the initialize request, sent again if the daemon has lost the session */
    char session[MCP_SESSION_SIZE];
    unsigned under_way;
    struct job *jobs; /* requests without a session that are under way */
    bool is_broken;   /* stdout was closed */
};

/* A message in flight and its thread. */
struct job {
    struct bridge *bridge;
    struct buf line;
    json_t *message; /* NULL: not JSON */
    json_t *id;      /* for an error reply, points into it; NULL: unknown */
    bool needs_sandbox;
    bool is_stateless; /* of a revision without sessions: the end of its connection cancels it */

    struct job *next;      /* from here on: the lock of the bridge */
    struct mcp_post *post; /* NULL: not sent yet */
    bool is_cancelled;
};

static void job_free(struct job *job)
{
    buf_done(&job->line);
    json_decref(job->message);
    free(job);
}

static void wake(struct bridge *bridge)
{
    const uint64_t one = 1;

    (void)!write(bridge->wake_fd, &one, sizeof(one));
}

static void put_line(struct bridge *bridge, const char *text, size_t len)
{
    bool is_broken;

    lock_take(&bridge->out_lock);
    is_broken = write_all(STDOUT_FILENO, text, len) < 0 || write_all(STDOUT_FILENO, "\n", 1) < 0;
    lock_release(&bridge->out_lock);
    if (!is_broken)
        return;
    lock_take(&bridge->lock);
    bridge->is_broken = true;
    lock_release(&bridge->lock);
    wake(bridge);
}

static void put_error(struct bridge *bridge, json_t *id, int code, const char *text)
{
    cleanup_json json_t *message = json_pack("{s:s, s:o, s:{s:i, s:o}}", "jsonrpc", "2.0", "id",
                                             id ? json_incref(id) : json_null(), "error", "code",
                                             code, "message", json_text(text));
    cleanup_free char *line = message ? json_dumps(message, JSON_COMPACT) : NULL;

    if (line)
        put_line(bridge, line, strlen(line));
}

/* Returns a copy of the current session id. */
static void session_get(struct bridge *bridge, char ret[MCP_SESSION_SIZE])
{
    lock_take(&bridge->lock);
    memcpy(ret, bridge->session, MCP_SESSION_SIZE);
    lock_release(&bridge->lock);
}

/* --- requests without a session --------------------------------------------------------------- */

static bool job_is_cancelled(struct job *job)
{
    bool is_cancelled;

    lock_take(&job->bridge->lock);
    is_cancelled = job->is_cancelled;
    lock_release(&job->bridge->lock);
    return is_cancelled;
}

/* Needs the lock. */
static void job_cancel(struct job *job)
{
    job->is_cancelled = true;
    if (job->post)
        mcp_post_hang_up(job->post);
}

static void job_set_post(struct job *job, struct mcp_post *post)
{
    lock_take(&job->bridge->lock);
    job->post = post;
    if (job->is_cancelled)
        job_cancel(job);
    lock_release(&job->bridge->lock);
}

static void job_enter(struct job *job)
{
    lock_take(&job->bridge->lock);
    job->next = job->bridge->jobs;
    job->bridge->jobs = job;
    lock_release(&job->bridge->lock);
}

static void job_leave(struct job *job)
{
    struct job **slot = &job->bridge->jobs;

    lock_take(&job->bridge->lock);
    while (*slot && *slot != job)
        slot = &(*slot)->next;
    if (*slot)
        *slot = job->next;
    job->post = NULL;
    lock_release(&job->bridge->lock);
}

/* Cancels the request with this id (NULL: all). Returns whether there is one. */
static bool jobs_cancel(struct bridge *bridge, const json_t *id)
{
    bool is_found = false;

    lock_take(&bridge->lock);
    for (struct job *each = bridge->jobs; each; each = each->next)
        if (!id || json_equal(each->id, id)) {
            job_cancel(each);
            is_found = true;
        }
    lock_release(&bridge->lock);
    return is_found;
}

static const json_t *param_of(const struct job *job, const char *name)
{
    return json_object_get(json_object_get(job->message, "params"), name);
}

static const char *version_of(const struct job *job)
{
    return json_string_value(
        json_object_get(param_of(job, "_meta"), "io.modelcontextprotocol/protocolVersion"));
}

/* The headers repeat what a proxy may want to know of the message; the daemon compares them. */
static int post_stateless(struct job *job, struct mcp_post **ret, struct holt_error *error)
{
    static const char *const names[] = { "name", "uri", "taskId" };
    struct mcp_post_request request = {
        .path = job->bridge->path,
        .body = job->line.data,
        .len = job->line.len,
        .version = version_of(job),
        .method = json_string_value(json_object_get(job->message, "method")),
    };

    for (size_t i = 0; i < ARRAY_SIZE(names) && !request.name; i++) {
        const json_t *name = param_of(job, names[i]);

        request.name = json_string_value(name);
        request.name_len = json_string_length(name);
    }
    if (mcp_post_open(job->bridge->options->holt, &request, ret, error) < 0)
        return -1;
    job_set_post(job, *ret);
    return mcp_post_wait(*ret, error);
}

/* --- requests of a session -------------------------------------------------------------------- */

static int post(struct bridge *bridge, const struct buf *body, const char *session,
                struct mcp_post **ret, struct holt_error *error)
{
    const struct mcp_post_request request = {
        .path = bridge->path,
        .session = *session ? session : NULL,
        .body = body->data,
        .len = body->len,
    };

    *ret = NULL;
    return mcp_post_open(bridge->options->holt, &request, ret, error) < 0
               ? -1
               : mcp_post_wait(*ret, error);
}

/* Stores the session that an initialize has opened. A refused initialize opens none, and the
 * previous session stays valid. Needs the lock. */
static bool session_take(struct bridge *bridge, const struct mcp_post *reply)
{
    const char *session = mcp_post_session(reply);

    if (*session == '\0')
        return false;
    (void)snprintf(bridge->session, sizeof(bridge->session), "%s", session);
    return true;
}

/* Opens a new session after a restart of the daemon, unless another thread has done so already. The
 * client does not notice. Needs the lock. */
static int session_renew(struct bridge *bridge, const char *old, struct holt_error *error)
{
    struct mcp_post *reply;
    int r;

    if (strcmp(bridge->session, old) != 0)
        return 0;
    r = post(bridge, &bridge->first, "", &reply, error);
    if (r == 0)
        (void)session_take(bridge, reply);
    mcp_post_close(reply);
    return r;
}

/* Sends a message; repeats it if the session had to be renewed. */
static int send_message(struct bridge *bridge, const struct buf *body, struct mcp_post **ret,
                        struct holt_error *error)
{
    char session[MCP_SESSION_SIZE];
    int r;

    session_get(bridge, session);
    r = post(bridge, body, session, ret, error);
    if (r < 0 || mcp_post_status(*ret) != STATUS_NO_SESSION || !*session)
        return r;
    mcp_post_close(TAKE_PTR(*ret));
    lock_take(&bridge->lock);
    r = session_renew(bridge, session, error);
    memcpy(session, bridge->session, sizeof(session));
    lock_release(&bridge->lock);
    return r < 0 ? r : post(bridge, body, session, ret, error);
}

/* Returns whether the reply is a JSON-RPC message, and not the error page of a proxy. */
static bool is_message(const char *text, size_t len)
{
    cleanup_json json_t *value = json_loadb(text, len, 0, NULL);

    return json_is_array(value) || json_object_get(value, "jsonrpc");
}

static void error_put(struct bridge *bridge, const struct job *job, const struct holt_error *error)
{
    cleanup_free char *text =
        xasprintf("%s%s%s", error->message, error->remedy[0] ? ": " : "", error->remedy);

    if (job->id)
        put_error(bridge, job->id, CODE_INTERNAL, text);
    else
        (void)report("%s", text);
}

/* Writes the messages of the reply to stdout. */
static void reply_follow(struct job *job, struct mcp_post *reply)
{
    struct bridge *bridge = job->bridge;
    struct holt_error error;
    const char *text;
    size_t len;
    int r;

    while ((r = mcp_post_next(reply, &text, &len, &error)) > 0) {
        if (job_is_cancelled(job))
            return;
        if (mcp_post_status(reply) == 200 || is_message(text, len)) {
            put_line(bridge, text, len);
        } else {
            (void)snprintf(error.message, sizeof(error.message),
                           "the daemon refused the message: %.*s", (int)(len < 300 ? len : 300),
                           text);
            error.remedy[0] = '\0';
            error_put(bridge, job, &error);
        }
    }
    if (r < 0 && !job_is_cancelled(job))
        error_put(bridge, job, &error);
}

static int job_send(struct job *job, struct mcp_post **ret, struct holt_error *error)
{
    struct bridge *bridge = job->bridge;

    if (job->needs_sandbox &&
        mcp_sandbox_prepare(bridge->options->sandbox, bridge->options->holt, error) < 0)
        return -1;
    return job->is_stateless ? post_stateless(job, ret, error)
                             : send_message(bridge, &job->line, ret, error);
}

static void job_do(struct job *job)
{
    struct bridge *bridge = job->bridge;
    struct mcp_post *reply = NULL;
    struct holt_error error;

    if (job->is_stateless)
        job_enter(job);
    if (job_send(job, &reply, &error) == 0)
        reply_follow(job, reply);
    else if (!job_is_cancelled(job))
        error_put(bridge, job, &error);
    if (job->is_stateless)
        job_leave(job);
    mcp_post_close(reply);
}

static void job_main(void *argument)
{
    struct job *job = argument;
    struct bridge *bridge = job->bridge;

    job_do(job);
    job_free(job);
    lock_take(&bridge->lock);
    bridge->under_way--;
    wake(bridge);
    lock_release(&bridge->lock);
}

/* Ends the reader. */
static bool is_full(struct bridge *bridge)
{
    bool is_full;

    lock_take(&bridge->lock);
    is_full = bridge->under_way >= UNDER_WAY_MAX;
    lock_release(&bridge->lock);
    return is_full;
}

/* Takes ownership of the job. */
static void job_start(struct job *job)
{
    struct bridge *bridge = job->bridge;

    lock_take(&bridge->lock);
    bridge->under_way++;
    lock_release(&bridge->lock);
    if (thread_start_detached("holt-mcp-call", 0, job_main, job) < 0)
        job_main(job);
}

/* Later messages need the session, so this waits for it. */
static void initialize(struct job *job)
{
    struct bridge *bridge = job->bridge;
    struct mcp_post *reply;
    struct holt_error error;

    if (post(bridge, &job->line, "", &reply, &error) < 0) {
        error_put(bridge, job, &error);
        mcp_post_close(reply);
        return;
    }
    lock_take(&bridge->lock);
    if (session_take(bridge, reply)) {
        buf_clear(&bridge->first);
        (void)buf_add(&bridge->first, job->line.data, job->line.len);
    }
    lock_release(&bridge->lock);
    reply_follow(job, reply);
    mcp_post_close(reply);
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
    session_get(bridge, session);
    return jobs_cancel(bridge, id) || !*session;
}

static struct job *job_new(struct bridge *bridge, const char *line, size_t len)
{
    struct job *job = xcalloc(1, sizeof(*job));
    const char *method;
    json_t *id;

    job->bridge = bridge;
    job->line.max = LINE_MAX_BYTES;
    (void)buf_add(&job->line, line, len);
    job->message = json_loadb(line, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    method = json_string_value(json_object_get(job->message, "method"));
    id = json_object_get(job->message, "id");
    job->id = json_is_string(id) || json_is_number(id) ? id : NULL;
    job->needs_sandbox =
        json_is_array(job->message) || (method && job->id && strcmp(method, "tools/call") == 0);
    job->is_stateless = version_of(job) || (method && strcmp(method, "server/discover") == 0);
    return job;
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
        initialize(job);
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

    if (bytes->len > LINE_MAX_BYTES) {
        if (!input->is_skipping)
            put_error(bridge, NULL, CODE_INVALID, "a message is longer than 4 MiB");
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

    session_get(bridge, session);
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
        .first = BUF_INIT(LINE_MAX_BYTES),
        .path = xasprintf("mcp?sandbox=%s%s", mcp_sandbox_name(options->sandbox),
                          options->is_read_only ? "&read-only=true" : ""),
        .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .signal_fd = run_signals_open(false),
    };
    struct input input = { .bytes = BUF_INIT(LINE_MAX_BYTES + 2 * READ_SIZE) };
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
