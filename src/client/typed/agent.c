// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "holt.h"

static void type_fill(void *result, struct holt_agent_type *type,
                      const struct msg_agent_type *message)
{
    (void)result;
    *type = (struct holt_agent_type){
        .name = message->name,
        .summary = message->summary,
        .template_name = message->template,
        .base_template = message->base_template,
        .packages = message->packages,
        .package_count = message->packages_count,
        .command = message->command,
        .task = message->task,
        .serve = message->serve,
        .port = message->port,
        .ready = message->ready,
        .user = message->user,
        .network = message->network,
        .allow = message->allow,
        .allow_count = message->allow_count,
        .variables = message->variables,
        .variable_count = message->variables_count,
        .files = message->files,
        .file_count = message->files_count,
        .has_token = message->has_token,
        .models = message->models,
        .secrets = message->secrets,
        .secret_count = message->secrets_count,
    };
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_list_agent_types_response *reply = message;
    struct holt_agent_type_list *list = result;

    (void)error;
    list->count = reply->types_count;
    list->items =
        RESULT_LIST(result, struct holt_agent_type, type_fill, reply->types, reply->types_count);
    list->error_count = reply->errors_count;
    list->errors = reply->errors;
    return 0;
}

int holt_agent_type_list(struct holt *holt, int64_t deadline, struct holt_agent_type_list **ret,
                         struct holt_error *error)
{
    const struct msg_list_agent_types_request request = { 0 };
    const struct client_call call = { &method_agent_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

static int got_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_get_agent_type_response *reply = message;

    if (!reply->type)
        return reply_lacks("type", error);
    type_fill(result, result, reply->type);
    return 0;
}

int holt_agent_type_get(struct holt *holt, const char *name, int64_t deadline,
                        struct holt_agent_type **ret, struct holt_error *error)
{
    const struct msg_get_agent_type_request request = { .name = name };
    const struct client_call call = { &method_agent_service_get, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), got_fill, ret, error);
}
