// SPDX-License-Identifier: Apache-2.0
#include "mcp/frontend.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/sandbox/info.h"
#include "host/sandbox/network.h"
#include "http/connect.h"
#include "http/exchange.h"
#include "http/frontend.h"
#include "http/limits.h"
#include "mcp/call.h"
#include "mcp/mcp.h"
#include "mcp/message.h"
#include "mcp/post.h"
#include "mcp/reply.h"
#include "mcp/session.h"
#include "mcp/workspace.h"

enum {
    BATCH_MAX = 64,
    BATCH_BYTES = MCP_REPLY_MAX - BATCH_MAX * 1024, /* of results; refusals must fit too */
};

_Static_assert((int)MCP_OWNER_BYTES == (int)SHA256_DIGEST_LENGTH, "an owner is a hash");

/* Clients of the unix socket for which the same owner and role are configured have the same owner;
 * that of root is zero. The token follows the last space of the header, and was checked before. */
static void owner_find(struct mcp_post *post)
{
    const struct caller *caller = &post->exchange->caller;
    const char *header = exchange_header(post->exchange, MHD_HTTP_HEADER_AUTHORIZATION);
    const char *token = header ? strrchr(header, ' ') : NULL;
    cleanup_free char *peer = NULL;

    if (!post->exchange->listener->is_local && token) {
        (void)SHA256((const unsigned char *)token + 1, strlen(token + 1), post->owner);
    } else if (caller->role != caller_root.role || strcmp(caller->owner, caller_root.owner) != 0) {
        peer = xasprintf("%s of %s", role_name(caller->role), caller->owner);
        (void)SHA256((const unsigned char *)peer, strlen(peer), post->owner);
    }
}

bool mcp_post_is_read_only(const struct mcp_post *post)
{
    return !caller_may_change(&post->exchange->caller) || post->wants_read_only ||
           (post->session && mcp_session_is_read_only(post->session));
}

enum MHD_Result mcp_post_answer(const struct mcp_post *post, unsigned status, json_t *body)
{
    const struct mcp_reply reply = {
        .status = status,
        .body = post->is_stateless && body ? mcp_stateless_reply(body) : body,
        .session = post->session ? mcp_session_id(post->session) : NULL,
        .is_last = post->is_broken,
    };

    return mcp_reply_send(post->exchange->connection, post->exchange->client, &reply);
}

enum MHD_Result mcp_post_refuse(const struct mcp_post *post, unsigned status, json_t *id,
                                const struct mcp_fault *fault)
{
    return mcp_post_answer(post, status, mcp_failure(id, fault));
}

static enum MHD_Result refuse_text(const struct mcp_post *post, unsigned status, const char *text)
{
    struct mcp_fault fault;

    (void)mcp_fault(&fault, MCP_REFUSED, "%s", text);
    return mcp_post_refuse(post, status, NULL, &fault);
}

/* --- sessions --------------------------------------------------------------------------------- */

static enum MHD_Result query_field_read(void *context, enum MHD_ValueKind kind, const char *name,
                                        const char *value)
{
    struct mcp_query *query = context;
    const char *text = value ? value : "";

    (void)kind;
    if (strcmp(name, "sandbox") == 0 && is_handle(text, SANDBOX_NAME_MAX))
        query->spec.sandbox = text;
    else if (strcmp(name, "template") == 0 && is_name(text))
        query->spec.template = text;
    else if (strcmp(name, "workspace") == 0 && is_handle(text, SANDBOX_NAME_MAX))
        query->workspace = text;
    else if (strcmp(name, "read-only") == 0 && strcmp(text, "true") == 0)
        query->spec.is_read_only = true;
    else
        query->is_wrong = true;
    return query->is_wrong ? MHD_NO : MHD_YES;
}

int mcp_query_read(const struct mcp_post *post, struct mcp_query *ret)
{
    (void)MHD_get_connection_values(post->exchange->connection, MHD_GET_ARGUMENT_KIND,
                                    query_field_read, ret);
    if (ret->is_wrong)
        return mcp_fault(&ret->fault, MCP_INVALID_PARAMS,
                         "/mcp takes ?sandbox=ID, ?template=NAME, ?workspace=NAME and "
                         "read-only=true");
    if (ret->spec.sandbox && ret->spec.template)
        return mcp_fault(&ret->fault, MCP_INVALID_PARAMS,
                         "/mcp takes a sandbox or a template, not both");
    return 0;
}

/* A session that names no sandbox gets a new one. */
static enum net_mode session_network(const struct mcp_post *post,
                                     const struct mcp_session_spec *spec)
{
    const struct mcp_workspace workspace = {
        .host = mcp_sessions_host(post->exchange->frontend->context),
        .caller = spec->caller,
        .sandbox = spec->sandbox,
    };

    return spec->sandbox ? mcp_workspace_network(&workspace)
                         : network_default_mode(workspace.host, workspace.caller, spec->template);
}

static enum MHD_Result initialize(struct mcp_post *post, const struct mcp_message *message)
{
    cleanup_json json_t *result = NULL;
    struct mcp_query query = { .is_wrong = false };
    const char *version = NULL;
    struct err err = { 0 };

    if (mcp_query_read(post, &query) < 0)
        return mcp_post_refuse(post, MHD_HTTP_BAD_REQUEST, message->id, &query.fault);
    memcpy(query.spec.owner, post->owner, sizeof(query.spec.owner));
    query.spec.caller = &post->exchange->caller;
    result =
        mcp_initialize(message->params, session_network(post, &query.spec), &version, &query.fault);
    if (!result)
        return mcp_post_refuse(post, MHD_HTTP_OK, message->id, &query.fault);
    query.spec.may_batch = mcp_version_has_batches(version);
    if (mcp_session_open(post->exchange->frontend->context, &query.spec, &post->session, &err) < 0)
        return mcp_post_answer(post, err_kind_row(err.kind)->http_status,
                               mcp_failure_of(message->id, &err));
    return mcp_post_answer(post, MHD_HTTP_OK, mcp_result(message->id, TAKE_PTR(result)));
}

/* 0, or the status to refuse with. */
static unsigned session_find(struct mcp_post *post, struct mcp_fault *fault)
{
    const char *id = exchange_header(post->exchange, "Mcp-Session-Id");
    struct err err;

    if (!id) {
        (void)mcp_fault(fault, MCP_REFUSED,
                        "the header Mcp-Session-Id is missing: initialize gives it");
        return MHD_HTTP_BAD_REQUEST;
    }
    if (mcp_session_find(post->exchange->frontend->context, id, post->owner, &post->session,
                         &err) == 0)
        return 0;
    (void)mcp_fault(fault, MCP_NO_SESSION, "%s", err.msg);
    return MHD_HTTP_NOT_FOUND;
}

static enum MHD_Result session_delete(struct mcp_post *post)
{
    struct mcp_fault fault;
    struct err err = { 0 };
    unsigned status = session_find(post, &fault);

    if (status != 0)
        return mcp_post_refuse(post, status, NULL, &fault);
    if (mcp_session_end(post->session, &err) < 0)
        return mcp_post_answer(post, err_kind_row(err.kind)->http_status,
                               mcp_failure_of(NULL, &err));
    return mcp_post_answer(post, MHD_HTTP_OK, NULL);
}

/* --- messages --------------------------------------------------------------------------------- */

static struct mcp_call *call_begin(const struct mcp_post *post, json_t *id,
                                   const struct mcp_call_request *request,
                                   const struct mcp_workspace *workspace)
{
    const struct mcp_caller caller = {
        .host = mcp_sessions_host(post->exchange->frontend->context),
        .caller = &post->exchange->caller,
        .session = post->session,
        .workspace = workspace,
        .is_read_only = mcp_post_is_read_only(post),
        .may_wake = caller_may_change(&post->exchange->caller),
        .has_tasks = post->envelope.has_tasks,
        .connection_fd = post->exchange->connection_fd,
    };

    return mcp_call_new(&caller, id, request);
}

/* Waits for the reply: 0 with it (NULL: no reply is needed), 1 when a keepalive is due. */
static int call_next(struct mcp_post *post, struct mcp_call *call, json_t *id, json_t **ret)
{
    struct err err = { 0 };
    int r = mcp_call_next(call, ret, &err);

    if (r > 0)
        return r;
    post->is_broken |= !*ret;
    if (r == -ECANCELED && exchange_is_stopped(post->exchange, &err))
        *ret = mcp_failure_of(id, &err);
    return 0;
}

/* However long it takes. */
static json_t *call_wait(struct mcp_post *post, json_t *id, const struct mcp_call_request *request)
{
    struct mcp_call *call = call_begin(post, id, request, NULL);
    json_t *reply = NULL;

    while (call_next(post, call, id, &reply) > 0)
        json_decref(reply);
    mcp_call_free(call);
    return reply;
}

static bool is_tool_call(const struct mcp_message *message)
{
    return message->kind == MCP_REQUEST && strcmp(message->method, "tools/call") == 0;
}

static void notification_take(const struct mcp_post *post, const struct mcp_message *message)
{
    const json_t *cancelled = mcp_cancelled_id(message);

    if (cancelled)
        mcp_session_cancel(post->session, cancelled);
}

/* The answer to one message of a session; NULL: none. */
static json_t *message_answer(struct mcp_post *post, const struct mcp_message *message)
{
    struct mcp_call_request request;
    struct mcp_fault fault;
    json_t *result = NULL;

    if (message->kind != MCP_REQUEST) {
        notification_take(post, message);
        return NULL;
    }
    if (!is_tool_call(message))
        result = mcp_answer(message, mcp_post_is_read_only(post), &fault);
    else if (mcp_call_request_parse(message->params, &request, &fault) == 0)
        return call_wait(post, message->id, &request);
    return result ? mcp_result(message->id, result) : mcp_failure(message->id, &fault);
}

/* Appends a reply, or an error if the batch becomes too long. */
static void batch_add(json_t *answers, json_t *reply, size_t *left)
{
    size_t len = json_dumpb(reply, NULL, 0, JSON_COMPACT);
    struct mcp_fault fault;

    if (len <= *left) {
        *left -= len;
        (void)json_array_append_new(answers, reply);
        return;
    }
    (void)mcp_fault(&fault, MCP_REFUSED,
                    "the results of this batch are longer than %d bytes together: ask for less",
                    BATCH_BYTES);
    (void)json_array_append_new(answers, mcp_failure(json_object_get(reply, "id"), &fault));
    json_decref(reply);
}

/* One after the other. */
static json_t *batch_answer(struct mcp_post *post, const json_t *batch)
{
    json_t *answers = json_array();
    size_t index, left = BATCH_BYTES;
    json_t *value;

    json_array_foreach((json_t *)(uintptr_t)batch, index, value) {
        struct mcp_message message;
        struct mcp_fault fault;
        json_t *reply = mcp_message_read(value, &message, &fault) < 0
                            ? mcp_failure(message.id, &fault)
                            : message_answer(post, &message);

        if (reply)
            batch_add(answers, reply, &left);
    }
    return answers;
}

static enum MHD_Result batch_take(struct mcp_post *post, const json_t *batch)
{
    cleanup_json json_t *answers = NULL;
    struct mcp_fault fault;
    unsigned status = session_find(post, &fault);

    if (status == 0 && !mcp_session_may_batch(post->session))
        (void)mcp_fault(&fault, MCP_INVALID_REQUEST,
                        "a batch is not part of the revision that was agreed on");
    else if (status == 0 && (json_array_size(batch) == 0 || json_array_size(batch) > BATCH_MAX))
        (void)mcp_fault(&fault, MCP_INVALID_REQUEST, "a batch has 1 to %d messages", BATCH_MAX);
    else if (status == 0)
        answers = batch_answer(post, batch);
    if (!answers)
        return mcp_post_refuse(post, status ? status : MHD_HTTP_BAD_REQUEST, NULL, &fault);
    if (json_array_size(answers) == 0)
        return mcp_post_answer(post, MHD_HTTP_ACCEPTED, NULL);
    return mcp_post_answer(post, MHD_HTTP_OK, TAKE_PTR(answers));
}

enum MHD_Result mcp_post_call(struct mcp_post *post, json_t *id,
                              const struct mcp_call_request *request,
                              const struct mcp_workspace *workspace)
{
    struct mcp_call *call = call_begin(post, id, request, workspace);
    struct mcp_stream stream = { .exchange = post->exchange, .call = call, .id = id };
    json_t *reply = NULL;
    int r = 1;

    if (!request->progress_token)
        r = call_next(post, call, id, &reply);
    if (r > 0 && mcp_call_may_be_task(call)) {
        reply = mcp_call_take_task(call);
        r = reply ? 0 : 1;
    }
    if (r <= 0) {
        mcp_call_free(call);
        return mcp_post_answer(post, reply ? MHD_HTTP_OK : MHD_HTTP_ACCEPTED, reply);
    }
    stream.session = TAKE_PTR(post->session);
    return mcp_stream_send(post->exchange->connection, &stream);
}

static enum MHD_Result message_take(struct mcp_post *post, const struct mcp_message *message)
{
    struct mcp_call_request request = { .tool = NULL };
    struct mcp_fault fault;
    unsigned status;
    json_t *reply;

    if (message->kind == MCP_REQUEST && strcmp(message->method, "initialize") == 0)
        return initialize(post, message);
    status = session_find(post, &fault);
    if (status != 0)
        return mcp_post_refuse(post, status, message->id, &fault);
    if (is_tool_call(message) && mcp_call_request_parse(message->params, &request, &fault) == 0)
        return mcp_post_call(post, message->id, &request, NULL);
    reply = message_answer(post, message);
    return mcp_post_answer(post, reply ? MHD_HTTP_OK : MHD_HTTP_ACCEPTED, reply);
}

/* --- requests --------------------------------------------------------------------------------- */

static bool accepts(const char *accept, const char *type)
{
    return !accept || strcasestr(accept, type) || strstr(accept, "*/*");
}

/* 0, or the status to refuse with. */
static unsigned headers_check(const struct mcp_post *post, const char **ret_why)
{
    const char *accept = exchange_header(post->exchange, MHD_HTTP_HEADER_ACCEPT);

    *ret_why = "the content type must be " CONNECT_UNARY_TYPE;
    if (!connect_type_is(exchange_header(post->exchange, MHD_HTTP_HEADER_CONTENT_TYPE),
                         CONNECT_UNARY_TYPE))
        return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
    *ret_why = "the client must accept " CONNECT_UNARY_TYPE " and " MCP_STREAM_TYPE;
    if (!accepts(accept, CONNECT_UNARY_TYPE) || !accepts(accept, MCP_STREAM_TYPE))
        return MHD_HTTP_NOT_ACCEPTABLE;
    return 0;
}

/* A message says itself, or in a header, whether its revision has sessions. */
static enum MHD_Result body_take(struct mcp_post *post, const json_t *value)
{
    const char *version = exchange_header(post->exchange, "MCP-Protocol-Version");
    struct mcp_message message = { .id = NULL };
    struct mcp_fault fault;

    post->is_stateless = mcp_is_stateless(value, version);
    if (json_is_array(value) && post->is_stateless) {
        (void)mcp_fault(&fault, MCP_INVALID_REQUEST,
                        "a batch is not part of revision " MCP_STATELESS_VERSION);
        return mcp_post_refuse(post, MHD_HTTP_BAD_REQUEST, NULL, &fault);
    }
    if (!json_is_array(value) && mcp_message_read(value, &message, &fault) < 0)
        return mcp_post_refuse(post, MHD_HTTP_BAD_REQUEST, message.id, &fault);
    if (post->is_stateless)
        return mcp_stateless_take(post, &message);
    if (version && !mcp_knows_version(version)) {
        (void)mcp_fault_version(&fault, version);
        return mcp_post_refuse(post, MHD_HTTP_BAD_REQUEST, message.id, &fault);
    }
    return json_is_array(value) ? batch_take(post, value) : message_take(post, &message);
}

static enum MHD_Result post_take(struct mcp_post *post)
{
    struct exchange *exchange = post->exchange;
    cleanup_json json_t *value = NULL;
    struct mcp_fault fault;
    struct err err = { 0 };
    const char *why;
    unsigned status = headers_check(post, &why);

    if (status != 0)
        return refuse_text(post, status, why);
    if (exchange->is_failed)
        return refuse_text(post, MHD_HTTP_CONTENT_TOO_LARGE, exchange->err.msg);
    if (exchange_is_stopped(exchange, &err)) {
        post->is_broken = true;
        return mcp_post_answer(post, MHD_HTTP_SERVICE_UNAVAILABLE, mcp_failure_of(NULL, &err));
    }
    if (mcp_parse(exchange->body.data ? exchange->body.data : "", exchange->body.len, &value,
                  &fault) < 0)
        return mcp_post_refuse(post, MHD_HTTP_BAD_REQUEST, NULL, &fault);
    return body_take(post, value);
}

static bool mcp_owns(const char *path, const char *verb)
{
    (void)verb;
    return strcmp(path, "/mcp") == 0;
}

static enum MHD_Result mcp_request_answer(struct exchange *exchange)
{
    struct mcp_post post = { .exchange = exchange };
    enum MHD_Result result;

    owner_find(&post);
    client_connection_allow(exchange->client, CONNECTION_FOREVER);
    if (strcmp(exchange->verb, MHD_HTTP_METHOD_POST) == 0)
        result = post_take(&post);
    else if (strcmp(exchange->verb, MHD_HTTP_METHOD_DELETE) == 0)
        result = session_delete(&post);
    else
        result = refuse_text(&post, MHD_HTTP_METHOD_NOT_ALLOWED,
                             "messages are sent with POST; there is no stream to GET");
    mcp_session_put(post.session);
    return result;
}

const struct frontend_ops mcp_frontend = {
    .name = "mcp",
    .owns = mcp_owns,
    .answer = mcp_request_answer,
};
