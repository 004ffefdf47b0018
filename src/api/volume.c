// SPDX-License-Identifier: Apache-2.0
#include "api/message/messages.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "host/core/share.h"
#include "host/sandbox/sandbox.h"
#include "host/volume/named_volume.h"
#include "host/volume/unrecorded.h"

static int volume_message(const struct call *call, const struct volume_info *info,
                          struct msg_volume *ret, struct err *err)
{
    cleanup_free struct share *shares = NULL;
    size_t count = 0;
    int r = named_volume_shares(call->host, call->caller, info, &shares, &count, err);

    *ret = (struct msg_volume){ .id = info->id, .name = info->name, .owner = info->owner };
    if (r == 0)
        shares_message(shares, count, call->arena, &ret->public, &ret->shared_with,
                       &ret->shared_with_count);
    return r;
}

int volume_service_create(const struct call *call, const struct msg_volume_create_request *request,
                          struct err *err)
{
    struct msg_volume volume;
    struct volume_info info;
    int r = named_volume_create(call->host, call->caller, request->name, &info, err);

    if (r == 0)
        r = volume_message(call, &info, &volume, err);
    if (r < 0)
        return r;
    return call_reply(call, MESSAGE(msg_volume_create_response, .volume = &volume), err);
}

int volume_service_share(const struct call *call, const struct msg_volume_share_request *request,
                         struct err *err)
{
    const struct sharing sharing = { request->owners, request->owners_count, request->public };
    struct msg_volume volume;
    struct volume_info info;
    int r = named_volume_share(call->host, call->caller, request->volume, &sharing, &info, err);

    if (r == 0)
        r = volume_message(call, &info, &volume, err);
    if (r < 0)
        return r;
    return call_reply(call, MESSAGE(msg_volume_share_response, .volume = &volume), err);
}

int volume_service_list(const struct call *call, const struct msg_volume_list_request *request,
                        struct err *err)
{
    cleanup_free struct volume_info *infos = NULL;
    cleanup_free struct unrecorded_volume *kept = NULL;
    struct msg_unrecorded_volume *unrecorded;
    struct msg_volume *volumes;
    size_t count = 0, kept_count = 0;
    int r = named_volume_list(call->host, call->caller, &infos, &count, err);

    (void)request;
    if (r < 0)
        return r;
    volumes = arena_take(call->arena, count, sizeof(*volumes));
    for (size_t i = 0; r == 0 && i < count; i++)
        r = volume_message(call, &infos[i], &volumes[i], err);
    if (r < 0)
        return r;
    if (caller_is_admin(call->caller)) /* they have no owner that anybody knows */
        kept = unrecorded_list(call->host, &kept_count);
    unrecorded = arena_take(call->arena, kept_count, sizeof(*unrecorded));
    for (size_t i = 0; i < kept_count; i++)
        unrecorded[i] =
            (struct msg_unrecorded_volume){ .id = kept[i].id,
                                            .is_shared = kept[i].is_shared,
                                            .is_running = kept[i].machine.machine[0] != '\0' };
    return call_reply(call,
                      MESSAGE(msg_volume_list_response, .volumes = volumes, .volumes_count = count,
                              .unrecorded = unrecorded, .unrecorded_count = kept_count),
                      err);
}

int volume_service_remove(const struct call *call, const struct msg_volume_remove_request *request,
                          struct err *err)
{
    return named_volume_remove(call->host, call->caller, request->volume, err);
}

int volume_service_adopt(const struct call *call, const struct msg_volume_adopt_request *request,
                         struct err *err)
{
    const struct unrecorded_adoption adoption = {
        .volume = request->volume,
        .name = *request->name ? request->name : NULL,
        .template = *request->template ? request->template : NULL,
    };
    struct sandbox *sandbox = NULL;
    int r = unrecorded_adopt(call->host, &adoption, &sandbox, err);

    if (r < 0)
        return r;
    r = call_reply(
        call, MESSAGE(msg_volume_adopt_response, .sandbox_id = sandbox ? sandbox_id(sandbox) : ""),
        err);
    sandbox_unref(sandbox);
    return r;
}
