// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/err.h"
#include "http/exchange.h"
#include "http/frontend.h"
#include "mcp/call.h"
#include "mcp/post.h"
#include "mcp/reply.h"
#include "mcp/task.h"
#include "mcp/workspace.h"

/* Parameters of a method that are wrong are no error of the transport. */
static unsigned status_of(enum mcp_code code)
{
    return code == MCP_NO_METHOD ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK;
}

static enum MHD_Result listen_take(struct mcp_post *post, const struct mcp_message *message)
{
    json_t *messages[2] = { NULL, NULL };
    struct mcp_fault fault;

    messages[0] = mcp_listen_answer(message, &messages[1], &fault);
    if (!messages[0])
        return mcp_post_refuse(post, MHD_HTTP_OK, message->id, &fault);
    messages[1] = mcp_stateless_reply(mcp_result(message->id, messages[1]));
    return mcp_events_send(post->exchange->connection, post->exchange->client, messages, 2);
}

static struct mcp_workspace workspace_of(const struct mcp_post *post, const struct mcp_query *query)
{
    return (struct mcp_workspace){
        .host = mcp_sessions_host(post->exchange->frontend->context),
        .caller = &post->exchange->caller,
        .token = post->owner,
        .sandbox = query->spec.sandbox,
        .template = query->spec.template,
        .name = query->workspace,
    };
}

static enum MHD_Result call_take(struct mcp_post *post, const struct mcp_message *message,
                                 const struct mcp_query *query)
{
    const struct mcp_workspace workspace = workspace_of(post, query);
    struct mcp_call_request request;
    struct mcp_fault fault;

    if (mcp_call_request_parse(message->params, &request, &fault) < 0)
        return mcp_post_refuse(post, MHD_HTTP_OK, message->id, &fault);
    return mcp_post_call(post, message->id, &request, &workspace);
}

/* Tasks, and news of them, are for clients that said that they know them. */
static bool needs_tasks(const struct mcp_message *message)
{
    const json_t *filter = json_object_get(message->params, "notifications");

    return mcp_task_has_method(message->method) ||
           (strcmp(message->method, "subscriptions/listen") == 0 &&
            json_object_get(filter, "taskIds"));
}

static json_t *result_find(const struct mcp_post *post, const struct mcp_message *message,
                           const struct mcp_query *query, struct mcp_fault *fault)
{
    const struct mcp_workspace workspace = workspace_of(post, query);
    enum net_mode network = strcmp(message->method, "server/discover") == 0
                                ? mcp_workspace_network(&workspace)
                                : NET_NONE;

    if (mcp_task_has_method(message->method))
        return mcp_task_answer(mcp_sessions_host(post->exchange->frontend->context),
                               &post->exchange->caller, message, fault);
    return mcp_stateless_answer(message, mcp_post_is_read_only(post), network, fault);
}

static enum MHD_Result request_take(struct mcp_post *post, const struct mcp_message *message,
                                    const struct mcp_query *query)
{
    struct mcp_fault fault;
    json_t *result;

    if (needs_tasks(message) && !post->envelope.has_tasks) {
        (void)mcp_fault(&fault, MCP_MISSING_CAPABILITY,
                        "the client must have the extension " MCP_TASKS_EXTENSION);
        return mcp_post_refuse(post, MHD_HTTP_BAD_REQUEST, message->id, &fault);
    }
    if (strcmp(message->method, "tools/call") == 0)
        return call_take(post, message, query);
    if (strcmp(message->method, "subscriptions/listen") == 0)
        return listen_take(post, message);
    result = result_find(post, message, query, &fault);
    if (!result)
        return mcp_post_refuse(post, status_of(fault.code), message->id, &fault);
    return mcp_post_answer(post, MHD_HTTP_OK, mcp_result(message->id, result));
}

enum MHD_Result mcp_stateless_take(struct mcp_post *post, const struct mcp_message *message)
{
    const struct mcp_headers headers = {
        .version = exchange_header(post->exchange, "MCP-Protocol-Version"),
        .method = exchange_header(post->exchange, "Mcp-Method"),
        .name = exchange_header(post->exchange, "Mcp-Name"),
    };
    struct mcp_query query = { .is_wrong = false };

    if (message->kind == MCP_RESPONSE) {
        (void)mcp_fault(&query.fault, MCP_INVALID_REQUEST, "a client sends no responses");
        return mcp_post_refuse(post, MHD_HTTP_BAD_REQUEST, NULL, &query.fault);
    }
    if (mcp_envelope_read(message, &headers, &post->envelope, &query.fault) < 0 ||
        mcp_query_read(post, &query) < 0)
        return mcp_post_refuse(post, MHD_HTTP_BAD_REQUEST, message->id, &query.fault);
    if (message->kind == MCP_NOTIFICATION)
        return mcp_post_answer(post, MHD_HTTP_ACCEPTED, NULL);
    post->wants_read_only = query.spec.is_read_only;
    return request_take(post, message, &query);
}
