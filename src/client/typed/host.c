// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "client/client_internal.h"
#include "client/typed/request.h"
#include "holt.h"

static void health_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *storage = read_object(reading, object, "storage");
    struct holt_health *health = into;

    health->status = read_text(reading, object, "status");
    health->version = read_text(reading, object, "version");
    health->runtime = read_text(reading, object, "runtime");
    health->uptime_ms = read_u64(reading, object, "uptimeMs");
    health->sandboxes = read_u32(reading, object, "sandboxes");
    health->pool_ready = read_u32(reading, object, "poolReady");
    health->storage = read_text(reading, storage, "backend");
    health->storage_used_bytes = read_u64(reading, storage, "usedBytes");
    health->storage_available_bytes = read_u64(reading, storage, "availableBytes");
    health->storage_state = read_text(reading, storage, "state");
    health->errors = read_texts(reading, object, "errors");
    health->processes = read_u32(reading, object, "processes");
    health->pool_size = read_u32(reading, object, "poolSize");
}

int holt_health(struct holt *holt, int64_t deadline, struct holt_health **ret,
                struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), health_read };
    const struct client_call call = { "HostService/Health", json_object(), true, deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

static void capabilities_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *what = read_object(reading, object, "capabilities");
    struct holt_capabilities *can = into;

    can->snapshots = read_bool(reading, what, "snapshots");
    can->rollback = read_bool(reading, what, "rollback");
    can->fork = read_bool(reading, what, "fork");
    can->atomic_snapshots = read_bool(reading, what, "atomicSnapshots");
    can->quota = read_bool(reading, what, "quota");
    can->pause = read_bool(reading, what, "pause");
    can->deep_pause = read_bool(reading, what, "deepPause");
    can->launch = read_bool(reading, what, "launch");
    can->streaming_progress = read_bool(reading, what, "streamingProgress");
    can->tier_routing = read_bool(reading, what, "tierRouting");
    can->memory_limit = read_bool(reading, what, "memoryLimit");
    can->cpu_limit = read_bool(reading, what, "cpuLimit");
    can->pids_limit = read_bool(reading, what, "pidsLimit");
    can->max_sandboxes = read_u32(reading, what, "maxSandboxes");
    can->max_sandbox_duration_ms = read_u64(reading, what, "maxSandboxDurationMs");
    can->max_snapshots = read_u32(reading, what, "maxSnapshots");
    can->max_forks = read_u32(reading, what, "maxForks");
    can->default_quota_bytes = read_u64(reading, what, "defaultQuotaBytes");
    can->max_message_bytes = read_u32(reading, what, "maxMessageBytes");
    can->storage = read_text(reading, object, "storage");
    can->default_runtime = read_text(reading, object, "defaultRuntime");
}

int holt_capabilities(struct holt *holt, int64_t deadline, struct holt_capabilities **ret,
                      struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), capabilities_read };
    const struct client_call call = { "HostService/Capabilities", json_object(), true, deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

static void stats_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_stats *stats = into;

    stats->sandbox_id = read_text(reading, object, "sandboxId");
    stats->sandbox_name = read_text(reading, object, "sandboxName");
    stats->state = read_text(reading, object, "state");
    stats->age_ms = read_u64(reading, object, "ageMs");
    stats->cpu_us = read_u64(reading, object, "cpuUs");
    stats->cpu_limit_millis = read_u32(reading, object, "cpuLimitMillis");
    stats->memory_bytes = read_u64(reading, object, "memoryBytes");
    stats->cache_bytes = read_u64(reading, object, "cacheBytes");
    stats->memory_limit_bytes = read_u64(reading, object, "memoryLimitBytes");
    stats->pids = read_u32(reading, object, "pids");
    stats->pids_limit = read_u32(reading, object, "pidsLimit");
    stats->processes = read_u32(reading, object, "processes");
    stats->space_used_bytes = read_u64(reading, object, "spaceUsed");
    stats->quota_bytes = read_u64(reading, object, "quotaBytes");
}

static void stats_list_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *stats = read_array(reading, object, "stats");
    struct holt_stats_list *list = into;

    list->count = json_array_size(stats);
    list->items = (const struct holt_stats *const *)read_list(reading, stats, sizeof(**list->items),
                                                              stats_read);
}

int holt_stats(struct holt *holt, const char *const *sandboxes, int64_t deadline,
               struct holt_stats_list **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), stats_list_read };
    const struct client_call call = {
        "SandboxService/Stats",
        request_value(json_object(), "sandboxIds", request_texts(sandboxes)), true, deadline
    };

    return client_call_for(holt, &call, &answer, ret, error);
}
