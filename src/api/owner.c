// SPDX-License-Identifier: Apache-2.0
#include "host/owner/owner.h"

#include <stdlib.h>
#include <string.h>

#include "api/service.h"
#include "auth/token_store.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/core/owned_template.h"
#include "host/observe/event.h"
#include "host/volume/named_volume.h"

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

static int name_compare(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* Returns the owners of these names, each once and in order. Sorts the names. */
static struct owner_info *owners_get(const struct call *call, const char **names, size_t *count)
{
    struct owner_info *infos = xcalloc(*count + 1, sizeof(*infos));
    size_t shown = 0;

    qsort(names, *count, sizeof(*names), name_compare);
    for (size_t i = 0; i < *count; i++)
        if (i == 0 || strcmp(names[i - 1], names[i]) != 0)
            host_get_owner(call->host, names[i], &infos[shown++]);
    *count = shown;
    return infos;
}

/* Lists the owners with sandboxes, ceilings, tokens, templates or volumes for an admin of the host.
 */
static int owners_list(const struct call *call, struct owner_info **ret, size_t *ret_count,
                       struct err *err)
{
    cleanup_free struct owned_template *templates = NULL;
    cleanup_free struct volume_info *volumes = NULL;
    cleanup_free struct token_info *tokens = NULL;
    cleanup_free struct owner_info *used = NULL;
    cleanup_free const char **names = NULL;
    size_t template_count = 0, volume_count = 0, token_count = 0, used_count = 0, count = 0;
    int r = owned_template_list(call->host, call->caller, &templates, &template_count, err);

    if (r == 0)
        r = named_volume_list(call->host, call->caller, &volumes, &volume_count, err);
    if (r < 0)
        return r;
    host_list_owners(call->host, &used, &used_count);
    token_store_list(call->tokens, call->caller, &tokens, &token_count);
    names = xcalloc(used_count + token_count + template_count + volume_count + 1, sizeof(*names));
    for (size_t i = 0; i < used_count; i++)
        names[count++] = used[i].name;
    for (size_t i = 0; i < token_count; i++)
        names[count++] = tokens[i].owner;
    for (size_t i = 0; i < template_count; i++)
        names[count++] = templates[i].record.owner;
    for (size_t i = 0; i < volume_count; i++)
        names[count++] = volumes[i].owner;
    *ret = owners_get(call, names, &count);
    *ret_count = count;
    return 0;
}

int owner_service_list(const struct call *call, const struct msg_owner_list_request *request,
                       struct err *err)
{
    cleanup_free struct owner_info *infos = NULL;
    struct msg_owner *owners;
    size_t count = 1;
    int r = 0;

    (void)request;
    if (caller_is_host_admin(call->caller)) {
        r = owners_list(call, &infos, &count, err);
    } else {
        infos = xcalloc(1, sizeof(*infos));
        host_get_owner_for(call->host, call->caller, call->caller->owner, infos);
    }
    if (r < 0)
        return r;
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
