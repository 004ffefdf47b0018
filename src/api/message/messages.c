// SPDX-License-Identifier: Apache-2.0
#include "api/message/messages.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "host/core/host.h"
#include "host/sandbox/info.h"
#include "store/template/template.h"
#include "wire/envelope.h"

static json_t *labels_json(const struct sandbox_info *info)
{
    json_t *map = json_object();

    for (size_t i = 0; i < info->label_count; i++)
        (void)json_object_set_new(map, info->labels[i].key, json_text(info->labels[i].value));
    return map;
}

/* What it has none of is left out. */
static json_t *mounts_json(const struct sandbox_info *info)
{
    json_t *list = info->mount_count > 0 ? json_array() : NULL;

    for (size_t i = 0; i < info->mount_count; i++)
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:o}", "volume", info->mounts[i].shared_volume,
                                              "path", json_text(info->mounts[i].path)));
    return list;
}

static json_t *limits_json(const struct sandbox_limits *limits)
{
    return json_pack("{s:o, s:I, s:I}", "memoryBytes", json_u64(limits->memory_bytes), "cpuMillis",
                     (json_int_t)limits->cpu_millis, "pids", (json_int_t)limits->pids);
}

/* What never comes is left out. */
static json_t *moment_json(uint64_t ms)
{
    return ms ? json_time(ms) : NULL;
}

json_t *sandbox_json(const struct sandbox_info *info, bool has_space)
{
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:s, s:o*, s:o*, s:s, "
        "s:o, s:s, s:o*, s:o*}",
        "id", info->id, "name", info->name, "state", sandbox_state_name(info->state), "reason",
        json_text(info->reason), "template", info->template, "runtime", info->runtime, "createdAt",
        json_time(info->created_ms), "labels", labels_json(info), "limits",
        limits_json(&info->limits), "quotaBytes", json_u64(info->quota_bytes), "turns",
        (json_int_t)info->turns, "snapshots", (json_int_t)info->snapshot_count, "maxSnapshots",
        (json_int_t)info->snapshots_max, "base", info->base, "spaceUsed",
        has_space ? json_u64(info->space_used) : NULL, "expiresAt", moment_json(info->expires_ms),
        "expireAction", sandbox_action_name(info->expire_action), "idleTimeoutMs",
        json_u64(info->idle_timeout_ms), "idleAction", sandbox_action_name(info->idle_action),
        "lastActiveAt", moment_json(info->last_active_ms), "volumes", mounts_json(info));
}

json_t *snapshot_json(const struct snapshot_info *info)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:o, s:o}", "name", info->name, "kind",
                     snapshot_kind_name(info->kind), "turn", (json_int_t)info->turn, "parent",
                     info->parent, "createdAt", json_time(info->created_ms), "spaceUsed",
                     json_u64(info->space_used));
}

struct msg_template template_message(const struct template_info *info)
{
    return (struct msg_template){
        .name = info->name,
        .kind = info->is_host ? "host" : "imported",
        .size_bytes = info->size_bytes,
        .files = info->files,
        .created_at = info->created_at,
    };
}

static json_t *can_json(const struct host_capabilities *can)
{
    return json_pack("{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b}",
                     "snapshots", can->snapshots, "rollback", can->rollback, "fork", can->fork,
                     "atomicSnapshots", can->atomic_snapshots, "quota", can->quota, "pause",
                     can->pause, "deepPause", can->deep_pause, "launch", can->launch,
                     "streamingProgress", can->streaming_progress, "tierRouting", can->tier_routing,
                     "memoryLimit", can->memory_limit, "cpuLimit", can->cpu_limit, "pidsLimit",
                     can->pids_limit);
}

json_t *capabilities_json(const struct host_capabilities *can)
{
    cleanup_json json_t *limits = json_pack(
        "{s:I, s:o, s:I, s:I, s:o, s:I}", "maxSandboxes", (json_int_t)can->sandboxes_max,
        "maxSandboxDurationMs", json_u64(can->sandbox_duration_max_ms), "maxSnapshots",
        (json_int_t)can->snapshots_max, "maxForks", (json_int_t)can->forks_max, "defaultQuotaBytes",
        json_u64(can->default_quota), "maxMessageBytes", (json_int_t)ENVELOPE_PAYLOAD_MAX);
    json_t *all = can_json(can);

    if (all && limits)
        (void)json_object_update(all, limits);
    return all;
}
