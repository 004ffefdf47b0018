// SPDX-License-Identifier: Apache-2.0
#include "host/owner/owner.h"

#include <stdlib.h>
#include <string.h>

#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/observe/event.h"

static struct msg_owner_ceiling ceiling_message(const struct call *call,
                                                const struct owner_info *info, enum ceiling which)
{
    char *value = arena_take(call->arena, CEILING_TEXT_SIZE, 1);

    ceiling_format(&info->ceilings, which, value);
    return (struct msg_owner_ceiling){ .name = ceiling_name(which),
                                       .value = value,
                                       .source = ceiling_source_name(info->sources[which]) };
}

/* The message refers to the info. */
static struct msg_owner owner_message(const struct call *call, const struct owner_info *info)
{
    struct msg_owner_ceiling *ceilings = arena_take(call->arena, CEILINGS, sizeof(*ceilings));
    struct msg_owner_usage *usage = arena_take(call->arena, 1, sizeof(*usage));

    for (enum ceiling which = 0; which < CEILINGS; which++)
        ceilings[which] = ceiling_message(call, info, which);
    *usage = (struct msg_owner_usage){ .sandboxes = info->used[CEILING_SANDBOXES],
                                       .memory_bytes = info->used[CEILING_MEMORY],
                                       .cpu_millis = info->used[CEILING_CPUS],
                                       .pids = info->used[CEILING_PIDS],
                                       .disk_bytes = info->used[CEILING_DISK] };
    return (struct msg_owner){
        .name = info->name, .usage = usage, .ceilings = ceilings, .ceilings_count = CEILINGS
    };
}

/* Another owner does not exist for a caller without the role admin, whether it has objects or not.
 */
int owner_service_get(const struct call *call, const struct msg_owner_get_request *request,
                      struct err *err)
{
    const char *name = *request->owner ? request->owner : call->caller->owner;
    struct owner_info info;
    struct msg_owner owner;
    int r = owner_check_name(name, err);

    if (r < 0)
        return r;
    if (strcmp(name, call->caller->owner) != 0 && !caller_is_host_admin(call->caller))
        return err_set(err, ERR_NOT_FOUND, "no owner '%.64s'", name);
    host_get_owner_for(call->host, call->caller, name, &info);
    owner = owner_message(call, &info);
    return call_reply(call, MESSAGE(msg_owner_get_response, .owner = &owner), err);
}

int owner_service_list(const struct call *call, const struct msg_owner_list_request *request,
                       struct err *err)
{
    cleanup_free struct owner_info *infos = NULL;
    struct msg_owner *owners;
    size_t count = 1;

    (void)request;
    if (caller_is_host_admin(call->caller)) {
        host_list_owners(call->host, &infos, &count);
    } else {
        infos = calloc(1, sizeof(*infos));
        if (!infos)
            return err_set(err, ERR_INTERNAL, "out of memory");
        host_get_owner_for(call->host, call->caller, call->caller->owner, infos);
    }
    owners = arena_take(call->arena, count, sizeof(*owners));
    for (size_t i = 0; i < count; i++)
        owners[i] = owner_message(call, &infos[i]);
    return call_reply(
        call, MESSAGE(msg_owner_list_response, .owners = owners, .owners_count = count), err);
}

static int change_read(const struct msg_owner_set_request *request, struct owner_change *change,
                       struct err *err)
{
    change->owner = request->owner;
    for (size_t i = 0; i < request->settings_count; i++) {
        const struct msg_owner_setting *setting = &request->settings[i];
        enum ceiling which;

        if (!ceiling_find(setting->name, &which))
            return err_set(err, ERR_INVALID, "unknown ceiling '%.40s'", setting->name);
        change->is_unset[which] = *setting->value == '\0';
        change->set.is_set[which] = false;
        if (*setting->value && ceiling_parse(&change->set, which, setting->value, err) < 0)
            return -err->errnum;
    }
    return 0;
}

int owner_service_set(const struct call *call, const struct msg_owner_set_request *request,
                      struct err *err)
{
    struct owner_change change = { .owner = NULL };
    struct owner_info info;
    struct msg_owner owner;
    int r = change_read(request, &change, err);

    if (r == 0)
        r = host_set_owner(call->host, &change, err);
    if (r < 0)
        return r;
    host_event(call->host, EVENT_OWNER_CHANGED, json_pack("{s:s}", "owner", request->owner));
    host_get_owner(call->host, request->owner, &info);
    owner = owner_message(call, &info);
    return call_reply(call, MESSAGE(msg_owner_set_response, .owner = &owner), err);
}

int owner_service_remove(const struct call *call, const struct msg_owner_remove_request *request,
                         struct err *err)
{
    int r = host_remove_owner(call->host, request->owner, err);

    if (r == 0)
        host_event(call->host, EVENT_OWNER_CHANGED, json_pack("{s:s}", "owner", request->owner));
    return r;
}
