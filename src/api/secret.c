// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "api/message/messages.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "host/secret/owned_secret.h"

static void secret_message(const struct call *call, const struct secret_info *info,
                           struct msg_secret *ret)
{
    const struct secret_use *use = &info->use;
    const char **hosts = arena_take(call->arena, use->host_count, sizeof(*hosts));
    const char **host_keys = arena_take(call->arena, use->host_key_count, sizeof(*host_keys));

    for (size_t i = 0; i < use->host_key_count; i++)
        host_keys[i] = use->host_keys[i];
    for (size_t i = 0; i < use->host_count; i++) {
        char *text = arena_take(call->arena, NET_NAME_SIZE + sizeof(":65535"), 1);

        (void)snprintf(text, NET_NAME_SIZE + sizeof(":65535"), "%s:%u", use->hosts[i].name,
                       use->hosts[i].port);
        hosts[i] = text;
    }
    *ret = (struct msg_secret){
        .id = info->id,
        .name = info->name,
        .owner = info->owner,
        .hosts = hosts,
        .hosts_count = use->host_count,
        .place = secret_place_name(use->place),
        .field = use->field,
        .template = use->place == SECRET_IN_HEADER ? use->template : "",
        .env = use->env,
        .host_keys = host_keys,
        .host_keys_count = use->host_key_count,
        .created_at_ms = info->created_ms,
        .changed_at_ms = info->changed_ms,
    };
}

int secret_service_set(const struct call *call, const struct msg_secret_set_request *request,
                       struct err *err)
{
    const struct owned_secret_value value = { request->name, request->value,
                                              strlen(request->value) };
    const struct secret_request use = {
        .hosts = request->hosts,
        .host_count = request->hosts_count,
        .header = request->header,
        .query = request->query,
        .json = request->json,
        .is_basic = request->basic,
        .host_keys = request->host_keys,
        .host_key_count = request->host_keys_count,
        .env = request->env,
    };
    struct msg_secret secret;
    struct secret_info info;
    int r = owned_secret_set(call->host, call->caller, &value, &use, &info, err);

    if (r < 0)
        return r;
    secret_message(call, &info, &secret);
    return call_reply(call, MESSAGE(msg_secret_set_response, .secret = &secret), err);
}

int secret_service_rotate(const struct call *call, const struct msg_secret_rotate_request *request,
                          struct err *err)
{
    const struct owned_secret_value value = { request->secret, request->value,
                                              strlen(request->value) };
    struct msg_secret secret;
    struct secret_info info;
    int r = owned_secret_rotate(call->host, call->caller, &value, &info, err);

    if (r < 0)
        return r;
    secret_message(call, &info, &secret);
    return call_reply(call, MESSAGE(msg_secret_rotate_response, .secret = &secret), err);
}

int secret_service_list(const struct call *call, const struct msg_secret_list_request *request,
                        struct err *err)
{
    cleanup_free struct secret_info *infos = NULL;
    struct msg_secret *secrets;
    size_t count = 0;
    int r = owned_secret_list(call->host, call->caller, &infos, &count, err);

    (void)request;
    if (r < 0)
        return r;
    secrets = arena_take(call->arena, count, sizeof(*secrets));
    for (size_t i = 0; i < count; i++)
        secret_message(call, &infos[i], &secrets[i]);
    return call_reply(
        call, MESSAGE(msg_secret_list_response, .secrets = secrets, .secrets_count = count), err);
}

int secret_service_remove(const struct call *call, const struct msg_secret_remove_request *request,
                          struct err *err)
{
    return owned_secret_remove(call->host, call->caller, request->secret, err);
}
