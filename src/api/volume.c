// SPDX-License-Identifier: Apache-2.0
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "host/volume/named_volume.h"

static struct msg_volume volume_message(const struct volume_info *info)
{
    return (struct msg_volume){ .id = info->id, .name = info->name };
}

int volume_service_create(const struct call *call, const struct msg_volume_create_request *request,
                          struct err *err)
{
    struct msg_volume volume;
    struct volume_info info;
    int r = named_volume_create(call->host, request->name, &info, err);

    if (r < 0)
        return r;
    volume = volume_message(&info);
    return call_reply(call, MESSAGE(msg_volume_create_response, .volume = &volume), err);
}

int volume_service_list(const struct call *call, const struct msg_volume_list_request *request,
                        struct err *err)
{
    cleanup_free struct volume_info *infos = NULL;
    struct msg_volume *volumes;
    size_t count = 0;
    int r = named_volume_list(call->host, &infos, &count, err);

    (void)request;
    if (r < 0)
        return r;
    volumes = arena_take(call->arena, count, sizeof(*volumes));
    for (size_t i = 0; i < count; i++)
        volumes[i] = volume_message(&infos[i]);
    return call_reply(
        call, MESSAGE(msg_volume_list_response, .volumes = volumes, .volumes_count = count), err);
}

int volume_service_remove(const struct call *call, const struct msg_volume_remove_request *request,
                          struct err *err)
{
    return named_volume_remove(call->host, request->volume, err);
}
