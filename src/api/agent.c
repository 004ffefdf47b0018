// SPDX-License-Identifier: Apache-2.0
/* AgentService: the agent types of this host. */
#include <stdlib.h>
#include <string.h>

#include "agent/catalog.h"
#include "agent/type.h"
#include "api/message/agent_setup.h"
#include "api/message/messages.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"

static const char *const *pair_names(const struct agent_pair *pairs, size_t count,
                                     struct arena *arena)
{
    const char **names = arena_take(arena, count + 1, sizeof(*names));

    for (size_t i = 0; i < count; i++)
        names[i] = arena_copy_text(arena, pairs[i].name);
    return names;
}

/* Copies what the message needs to the arena: the type is freed before the reply is written. */
static struct msg_agent_type type_message(const struct agent_type *type, struct arena *arena)
{
    struct msg_agent_type message = {
        .name = arena_copy_text(arena, type->name),
        .summary = arena_copy_text(arena, type->summary),
        .base_template = arena_copy_text(arena, type->template),
        .command = arena_copy_text(arena, type->command),
        .task = arena_copy_text(arena, *type->task ? type->task : type->command),
        .serve = arena_copy_text(arena, type->serve),
        .port = type->port,
        .ready = arena_copy_text(arena, type->ready),
        .user = arena_copy_text(arena, type->user),
        .network = arena_copy_text(arena, type->network),
        .allow_count = type->allow_count,
        .variables = pair_names(type->env, type->env_count, arena),
        .variables_count = type->env_count,
        .files = pair_names(type->files, type->file_count, arena),
        .files_count = type->file_count,
        .models = arena_copy_text(arena, type->models),
        .has_token = agent_type_uses(type, "token"),
    };
    const char **allow = arena_take(arena, type->allow_count + 1, sizeof(*allow));
    char template[AGENT_TEMPLATE_SIZE];

    for (size_t i = 0; i < type->allow_count; i++)
        allow[i] = arena_copy_text(arena, type->allow[i]);
    message.allow = allow;
    agent_template(type, template);
    message.template = arena_copy_text(arena, template);
    message.packages = agent_words(type->npm, arena, &message.packages_count);
    message.secrets = agent_words(type->secrets, arena, &message.secrets_count);
    return message;
}

int agent_service_list(const struct call *call, const struct msg_list_agent_types_request *request,
                       struct err *err)
{
    struct msg_agent_type *types;
    const char **errors;
    char **names;
    size_t count, type_count = 0, error_count = 0;

    (void)request;
    agent_catalog_names(call->agents_dir, &names, &count);
    types = arena_take(call->arena, count + 1, sizeof(*types));
    errors = arena_take(call->arena, count + 1, sizeof(*errors));
    for (size_t i = 0; i < count; i++) {
        struct agent_type type;
        struct err wrong;

        if (agent_catalog_find(call->agents_dir, names[i], &type, &wrong) < 0) {
            errors[error_count++] = arena_copy_text(call->arena, wrong.msg);
        } else {
            types[type_count++] = type_message(&type, call->arena);
            agent_type_done(&type);
        }
        free(names[i]);
    }
    free(names);
    return call_reply(call,
                      MESSAGE(msg_list_agent_types_response, .types = types,
                              .types_count = type_count, .errors = errors,
                              .errors_count = error_count),
                      err);
}

int agent_service_get(const struct call *call, const struct msg_get_agent_type_request *request,
                      struct err *err)
{
    struct msg_agent_type message;
    struct agent_type type;
    int r = agent_catalog_find(call->agents_dir, request->name, &type, err);

    if (r < 0)
        return r;
    message = type_message(&type, call->arena);
    agent_type_done(&type);
    return call_reply(call, MESSAGE(msg_get_agent_type_response, .type = &message), err);
}
