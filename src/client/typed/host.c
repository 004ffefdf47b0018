// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/json.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/transport/messages.h"
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
    health->storage_size_bytes = read_u64(reading, storage, "sizeBytes");
    health->storage_used_percent = read_u32(reading, storage, "usedPercent");
    health->tools = read_u32(reading, object, "tools");
}

int holt_health(struct holt *holt, int64_t deadline, struct holt_health **ret,
                struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), health_read };
    const struct client_call call = { "HostService/Health", json_object(), true, deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

static void runtime_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_runtime *runtime = into;

    runtime->name = read_text(reading, object, "name");
    runtime->works = read_bool(reading, object, "works");
    runtime->problem = read_text(reading, object, "problem");
}

static void capabilities_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *what = read_object(reading, object, "capabilities");
    const json_t *runtimes = read_array(reading, object, "runtimes");
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
    can->runtime_count = json_array_size(runtimes);
    can->runtimes = (const struct holt_runtime *const *)read_list(
        reading, runtimes, sizeof(**can->runtimes), runtime_read);
    can->limits_from = read_text(reading, object, "limitsFrom");
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
    stats->has_cpu_millis = json_field(object, "cpuMillis") != NULL;
    stats->cpu_millis = read_u32(reading, object, "cpuMillis");
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

static int stats_take(void *context, struct reading *reading, const json_t *message,
                      struct holt_error *error)
{
    const struct holt_stats_options *options = context;

    stats_list_read(reading, message, reading->result);
    if (reading_end(reading, error) < 0)
        return -1;
    if (options->on_stats && options->on_stats(options->context, reading->result) != 0)
        return error_set(error, "canceled", "the caller ended the watch");
    return 0;
}

int holt_stats_watch(struct holt *holt, const struct holt_stats_options *options, int64_t deadline,
                     struct holt_error *error)
{
    struct holt_stats_options given = HOLT_INIT(holt_stats_options);
    struct messages_call call = {
        .method = "holt.v1.SandboxService/WatchStats",
        .deadline = deadline,
        .each = stats_take,
        .context = &given,
        .size = sizeof(struct holt_stats_list),
    };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    call.request = request_value(json_object(), "sandboxIds", request_texts(given.sandboxes));
    call.request = request_u64(call.request, "intervalMs", given.interval_ms);
    return messages_follow(holt, &call, error);
}

struct audit {
    struct holt_audit_options options;
    struct holt_audit_verdict *verdict; /* a result */
};

static int verdict_take(struct audit *audit, const json_t *object, struct holt_error *error)
{
    struct reading reading = { .is_wrong = false };
    struct holt_audit_verdict *verdict =
        result_new(sizeof(*verdict), json_incref((json_t *)(uintptr_t)object));

    reading.result = audit->verdict = verdict;
    verdict->is_intact = read_bool(&reading, object, "inOrder");
    verdict->lines = read_u64(&reading, object, "lines");
    verdict->problem = read_text(&reading, object, "problem");
    return reading_end(&reading, error);
}

static int audit_take(void *context, struct reading *reading, const json_t *message,
                      struct holt_error *error)
{
    const json_t *verdict = read_object(reading, message, "verdict");
    const char *line = read_text(reading, message, "line");
    struct audit *audit = context;

    if (reading_end(reading, error) < 0)
        return -1;
    if (verdict && !audit->verdict)
        return verdict_take(audit, verdict, error);
    if (*line && audit->options.on_line &&
        audit->options.on_line(audit->options.context, line) != 0)
        return error_set(error, "canceled", "the caller ended the audit");
    return 0;
}

int holt_audit(struct holt *holt, const struct holt_audit_options *options, int64_t deadline,
               struct holt_audit_verdict **ret, struct holt_error *error)
{
    struct audit audit = { .options = HOLT_INIT(holt_audit_options) };
    struct messages_call call = {
        .method = "holt.v1.HostService/Audit",
        .deadline = deadline,
        .each = audit_take,
        .context = &audit,
    };
    cleanup_result struct holt_audit_verdict *verdict = NULL;
    int r;

    if (options_take(&audit.options, sizeof(audit.options), options, error) < 0)
        return -1;
    call.request = request_text(json_object(), "sandboxId", audit.options.sandbox);
    call.request = request_true(call.request, "verify", audit.options.only_verifies);
    r = messages_follow(holt, &call, error);
    verdict = audit.verdict;
    if (r < 0)
        return -1;
    if (!verdict)
        return error_set(error, "internal", "the daemon ended the audit without a verdict");
    if (ret)
        *ret = TAKE_PTR(verdict);
    return 0;
}
