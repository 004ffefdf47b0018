// SPDX-License-Identifier: Apache-2.0
/* Messages of the agent on their way to the daemon, and the replies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "cli/core/report.h"
#include "cli/mcp/bridge_internal.h"
#include "cli/mcp/sandbox.h"
#include "holt.h"

enum { STATUS_NO_SESSION = 404, ERROR_MAX = 4096 /* bytes of an error of the daemon */ };

void job_free(struct job *job)
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

void bridge_put_error(struct bridge *bridge, json_t *id, int code, const char *text)
{
    cleanup_json json_t *message = json_pack("{s:s, s:o, s:{s:i, s:o}}", "jsonrpc", "2.0", "id",
                                             id ? json_incref(id) : json_null(), "error", "code",
                                             code, "message", json_text(text));
    cleanup_free char *line = message ? json_dumps(message, JSON_COMPACT) : NULL;

    if (line)
        put_line(bridge, line, strlen(line));
}

void bridge_get_session(struct bridge *bridge, char ret[MCP_SESSION_SIZE])
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

bool jobs_cancel(struct bridge *bridge, const json_t *id)
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

    bridge_get_session(bridge, session);
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
        bridge_put_error(bridge, job->id, MCP_CODE_INTERNAL, text);
    else
        (void)report("%s", text);
}

/* Returns whether the daemon says that the sandbox of the bridge does not exist: somebody has
 * removed it since the last call. */
static bool is_lost(const struct job *job, const char *text, size_t len)
{
    cleanup_json json_t *value = NULL;
    const char *cause;

    if (!job->needs_sandbox || job->has_repeated || len > ERROR_MAX)
        return false;
    value = json_loadb(text, len, 0, NULL);
    cause = json_string_value(
        json_object_get(json_object_get(json_object_get(value, "error"), "data"), "cause"));
    return cause && strcmp(cause, "SessionNotFound") == 0;
}

/* Writes the messages of the reply to stdout. Returns whether the message is to be sent again,
 * because it did nothing. */
static bool reply_follow(struct job *job, struct mcp_post *reply)
{
    struct bridge *bridge = job->bridge;
    struct holt_error error;
    const char *text;
    size_t len;
    int r;

    while ((r = mcp_post_next(reply, &text, &len, &error)) > 0) {
        if (job_is_cancelled(job))
            return false;
        if (is_lost(job, text, len) && mcp_sandbox_forget(bridge->options->sandbox))
            return true;
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
    return false;
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

void job_do(struct job *job)
{
    struct bridge *bridge = job->bridge;
    struct mcp_post *reply = NULL;
    struct holt_error error;

    bool is_again;

    if (job->is_stateless)
        job_enter(job);
    do {
        is_again = false;
        if (job_send(job, &reply, &error) == 0)
            is_again = reply_follow(job, reply);
        else if (!job_is_cancelled(job))
            error_put(bridge, job, &error);
        job_set_post(job, NULL);
        mcp_post_close(TAKE_PTR(reply));
        job->has_repeated |= is_again;
    } while (is_again);
    if (job->is_stateless)
        job_leave(job);
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

void job_start(struct job *job)
{
    struct bridge *bridge = job->bridge;

    lock_take(&bridge->lock);
    bridge->under_way++;
    lock_release(&bridge->lock);
    if (thread_start_detached("holt-mcp-call", 0, job_main, job) < 0)
        job_main(job);
}

/* Later messages need the session, so this waits for it. */
void job_initialize(struct job *job)
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
    (void)reply_follow(job, reply);
    mcp_post_close(reply);
}

/* Returns whether a call works in the sandbox of the bridge: most do, unless they name another. */
static bool call_needs_sandbox(const struct job *job)
{
    static const char *const others[] = { "list_sandboxes", "create_sandbox" };
    const char *tool = json_string_value(param_of(job, "name"));
    const char *handle = json_string_value(json_object_get(param_of(job, "arguments"), "sandbox"));

    for (size_t i = 0; tool && i < ARRAY_SIZE(others); i++)
        if (strcmp(others[i], tool) == 0)
            return false;
    return !handle || strcmp(handle, mcp_sandbox_name(job->bridge->options->sandbox)) == 0;
}

struct job *job_new(struct bridge *bridge, const char *line, size_t len)
{
    struct job *job = xcalloc(1, sizeof(*job));
    const char *method;
    json_t *id;

    job->bridge = bridge;
    job->line.max = MCP_LINE_MAX;
    (void)buf_add(&job->line, line, len);
    job->message = json_loadb(line, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    method = json_string_value(json_object_get(job->message, "method"));
    id = json_object_get(job->message, "id");
    job->id = json_is_string(id) || json_is_number(id) ? id : NULL;
    job->needs_sandbox =
        json_is_array(job->message) ||
        (method && job->id && strcmp(method, "tools/call") == 0 && call_needs_sandbox(job));
    job->is_stateless = version_of(job) || (method && strcmp(method, "server/discover") == 0);
    return job;
}
