// SPDX-License-Identifier: Apache-2.0
#include "api/message/messages.h"

#include <string.h>

#include "api/message/permission_messages.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "host/core/host.h"
#include "host/core/owned_template.h"
#include "host/core/share.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox.h"
#include "host/secret/grant.h"
#include "wire/envelope.h"

static const struct pair *labels_message(const struct sandbox_info *info, struct arena *arena)
{
    struct pair *pairs = arena_take(arena, info->label_count, sizeof(*pairs));

    for (size_t i = 0; i < info->label_count; i++)
        pairs[i] = (struct pair){ info->labels[i].key, info->labels[i].value };
    return pairs;
}

static const struct msg_codebase_mount *codebase_mount_message(const struct sandbox_info *info,
                                                               struct arena *arena)
{
    struct msg_codebase_mount *mount;

    if (!info->codebase[0])
        return NULL;
    mount = arena_take(arena, 1, sizeof(*mount));
    *mount = (struct msg_codebase_mount){ .codebase = info->codebase,
                                          .path = info->codebase_path,
                                          .version = info->codebase_version,
                                          .base = info->codebase_base };
    return mount;
}

static const struct msg_permissions *
sandbox_permissions_message(const struct sandbox_info *info, struct arena *arena, bool has_rules)
{
    struct msg_permissions *message;

    if (!info->permissions)
        return NULL;
    message = arena_take(arena, 1, sizeof(*message));
    *message = permissions_message(arena, info, has_rules);
    return message;
}

static const struct msg_volume_mount *mounts_message(const struct sandbox_info *info,
                                                     struct arena *arena)
{
    struct msg_volume_mount *mounts = arena_take(arena, info->mount_count, sizeof(*mounts));

    for (size_t i = 0; i < info->mount_count; i++)
        mounts[i] = (struct msg_volume_mount){ info->mounts[i].shared_volume, info->mounts[i].path,
                                               info->mounts[i].is_read_only };
    return mounts;
}

/* Templates of owners other than root have names in the store that users do not know. */
static const char *template_word(const struct call *call, const struct sandbox_info *info)
{
    char *word;

    if (strncmp(info->template, TEMPLATE_MADE_PREFIX, strlen(TEMPLATE_MADE_PREFIX)) != 0)
        return info->template;
    word = arena_take(call->arena, TEMPLATE_WORD_MAX + 1, 1);
    owned_template_word(call->host, call->caller, info->template, word);
    return word;
}

static const char **secret_names(const struct sandbox_info *info, struct arena *arena,
                                 size_t *ret_count)
{
    struct secret_grants *grants;
    const char **names;

    if (!info->secrets)
        return NULL;
    grants = arena_take(arena, 1, sizeof(*grants));
    secret_grants_read(info->secrets, grants);
    names = arena_take(arena, grants->count, sizeof(*names));
    for (size_t i = 0; i < grants->count; i++)
        names[i] = grants->items[i].name;
    *ret_count = grants->count;
    return names;
}

struct msg_sandbox sandbox_message(const struct call *call, const struct sandbox_info *info,
                                   bool has_space)
{
    struct arena *arena = call->arena;
    struct msg_limits *limits = arena_take(arena, 1, sizeof(*limits));
    size_t secret_count = 0;
    const char **secrets = secret_names(info, arena, &secret_count);

    *limits = (struct msg_limits){ .memory_bytes = info->limits.memory_bytes,
                                   .cpu_millis = info->limits.cpu_millis,
                                   .pids = info->limits.pids,
                                   .files = info->limits.files };
    return (struct msg_sandbox){
        .id = info->id,
        .owner = info->owner,
        .network = network_mode_name(call->host, info->owner, info->network),
        .secrets = secrets,
        .secrets_count = secret_count,
        .name = info->name,
        .state = sandbox_state_name(info->state),
        .reason = info->reason,
        .template = template_word(call, info),
        .runtime = info->runtime,
        .created_at_ms = info->created_ms,
        .labels = labels_message(info, arena),
        .labels_count = info->label_count,
        .limits = limits,
        .quota_bytes = info->quota_bytes,
        .turns = info->turns,
        .snapshots = info->snapshot_count,
        .max_snapshots = info->snapshots_max,
        .base = info->base,
        .space_used = info->space_used,
        .has_space_used = has_space,
        .transfer_done_bytes = info->transfer_done,
        .transfer_total_bytes = info->transfer_total,
        .expires_at_ms = info->expires_ms,
        .expire_action = sandbox_action_name(info->expire_action),
        .idle_timeout_ms = info->idle_timeout_ms,
        .idle_action = sandbox_action_name(info->idle_action),
        .last_active_at_ms = info->last_active_ms,
        .volumes = mounts_message(info, arena),
        .volumes_count = info->mount_count,
        .codebase = codebase_mount_message(info, arena),
        .permissions = sandbox_permissions_message(info, arena, has_space),
    };
}

void shares_message(const struct share *list, size_t count, struct arena *arena, bool *ret_public,
                    const char *const **ret_owners, size_t *ret_count)
{
    const char **owners = arena_take(arena, count, sizeof(*owners));
    struct share *copy = arena_take(arena, count, sizeof(*copy));
    size_t named = 0;

    *ret_public = false;
    for (size_t i = 0; i < count; i++) {
        copy[i] = list[i];
        if (strcmp(list[i].owner, SHARE_ALL) == 0)
            *ret_public = true;
        else
            owners[named++] = copy[i].owner;
    }
    *ret_owners = owners;
    *ret_count = named;
}

struct msg_snapshot snapshot_message(const struct snapshot_info *info)
{
    return (struct msg_snapshot){
        .name = info->name,
        .kind = snapshot_kind_name(info->kind),
        .turn = info->turn,
        .parent = info->parent,
        .created_at_ms = info->created_ms,
        .space_used = info->space_used,
        .note = info->note,
    };
}

struct msg_template template_message(const struct template_info *info)
{
    return (struct msg_template){
        .name = info->name,
        .kind = info->is_host     ? "host"
                : info->digest[0] ? "image"
                                  : "imported",
        .digest = info->digest,
        .size_bytes = info->size_bytes,
        .shared_bytes = info->shared_bytes,
        .files = info->files,
        .created_at = info->created_at,
    };
}

struct msg_capabilities capabilities_message(const struct host_capabilities *can)
{
    return (struct msg_capabilities){
        .snapshots = can->snapshots,
        .rollback = can->rollback,
        .fork = can->fork,
        .atomic_snapshots = can->atomic_snapshots,
        .quota = can->quota,
        .pause = can->pause,
        .deep_pause = can->deep_pause,
        .launch = can->launch,
        .streaming_progress = can->streaming_progress,
        .tier_routing = can->tier_routing,
        .memory_limit = can->memory_limit,
        .cpu_limit = can->cpu_limit,
        .pids_limit = can->pids_limit,
        .max_sandboxes = can->sandboxes_max,
        .max_sandbox_duration_ms = can->sandbox_duration_max_ms,
        .max_snapshots = can->snapshots_max,
        .max_forks = can->forks_max,
        .default_quota_bytes = can->default_quota,
        .max_message_bytes = ENVELOPE_PAYLOAD_MAX,
    };
}

int sandbox_reply(const struct call *call, struct sandbox *sandbox, struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct msg_sandbox message;

    sandbox_get_info(sandbox, false, &info);
    message = sandbox_message(call, &info, false);
    return call_reply(call, MESSAGE(msg_sandbox_response, .sandbox = &message), err);
}
