// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/messages.h"
#include "client/message/request.h"
#include "holt.h"

static int health_fill(void *result, const void *message, struct holt_error *error)
{
    static const struct msg_storage no_storage = { .backend = "", .state = "" };
    const struct msg_health_response *reply = message;
    const struct msg_storage *storage = reply->storage ? reply->storage : &no_storage;
    struct holt_health *health = result;

    (void)error;
    *health = (struct holt_health){
        .status = reply->status,
        .version = reply->version,
        .runtime = reply->runtime,
        .uptime_ms = reply->uptime_ms,
        .sandboxes = reply->sandboxes,
        .pool_ready = reply->pool_ready,
        .storage = storage->backend,
        .storage_used_bytes = storage->used_bytes,
        .storage_available_bytes = storage->available_bytes,
        .storage_state = storage->state,
        .errors = reply->errors,
        .processes = reply->processes,
        .pool_size = reply->pool_size,
        .storage_size_bytes = storage->size_bytes,
        .storage_used_percent = storage->used_percent,
        .tools = reply->tools,
        .state_directory = reply->state_directory,
    };
    return 0;
}

int holt_health(struct holt *holt, int64_t deadline, struct holt_health **ret,
                struct holt_error *error)
{
    const struct msg_health_request request = { 0 };
    const struct client_call call = { &method_host_service_health, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), health_fill, ret, error);
}

static void runtime_fill(void *result, struct holt_runtime *runtime,
                         const struct msg_runtime *message)
{
    (void)result;
    runtime->name = message->name;
    runtime->works = message->works;
    runtime->problem = message->problem;
    runtime->is_allowed = message->allowed;
    runtime->strength = message->strength;
}

static int capabilities_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_capabilities_response *reply = message;
    const struct msg_capabilities *features = reply->capabilities;

    if (!features)
        return reply_lacks("capabilities", error);
    *(struct holt_capabilities *)result = (struct holt_capabilities){
        .snapshots = features->snapshots,
        .rollback = features->rollback,
        .fork = features->fork,
        .atomic_snapshots = features->atomic_snapshots,
        .quota = features->quota,
        .pause = features->pause,
        .deep_pause = features->deep_pause,
        .launch = features->launch,
        .streaming_progress = features->streaming_progress,
        .tier_routing = features->tier_routing,
        .memory_limit = features->memory_limit,
        .cpu_limit = features->cpu_limit,
        .pids_limit = features->pids_limit,
        .max_sandboxes = features->max_sandboxes,
        .max_sandbox_duration_ms = features->max_sandbox_duration_ms,
        .max_snapshots = features->max_snapshots,
        .max_forks = features->max_forks,
        .default_quota_bytes = features->default_quota_bytes,
        .max_message_bytes = features->max_message_bytes,
        .storage = reply->storage,
        .default_runtime = reply->default_runtime,
        .runtime_count = reply->runtimes_count,
        .runtimes = RESULT_LIST(result, struct holt_runtime, runtime_fill, reply->runtimes,
                                reply->runtimes_count),
        .limits_from = reply->limits_from,
    };
    return 0;
}

int holt_capabilities(struct holt *holt, int64_t deadline, struct holt_capabilities **ret,
                      struct holt_error *error)
{
    const struct msg_capabilities_request request = { 0 };
    const struct client_call call = { &method_host_service_capabilities, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), capabilities_fill, ret, error);
}

/* --- statistics ------------------------------------------------------------------------------- */

static void stats_fill(void *result, struct holt_stats *stats,
                       const struct msg_sandbox_stats *message)
{
    (void)result;
    *stats = (struct holt_stats){
        .sandbox_id = message->sandbox_id,
        .sandbox_name = message->sandbox_name,
        .state = message->state,
        .age_ms = message->age_ms,
        .cpu_us = message->cpu_us,
        .cpu_limit_millis = message->cpu_limit_millis,
        .memory_bytes = message->memory_bytes,
        .cache_bytes = message->cache_bytes,
        .memory_limit_bytes = message->memory_limit_bytes,
        .pids = message->pids,
        .pids_limit = message->pids_limit,
        .processes = message->processes,
        .space_used_bytes = message->space_used,
        .quota_bytes = message->quota_bytes,
        .has_cpu_millis = message->has_cpu_millis,
        .cpu_millis = message->cpu_millis,
        .owner = message->owner,
    };
}

static int stats_list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_stats_response *reply = message;
    struct holt_stats_list *list = result;

    (void)error;
    list->count = reply->stats_count;
    list->items =
        RESULT_LIST(result, struct holt_stats, stats_fill, reply->stats, reply->stats_count);
    return 0;
}

int holt_stats(struct holt *holt, const char *const *sandboxes, int64_t deadline,
               struct holt_stats_list **ret, struct holt_error *error)
{
    const struct msg_stats_request request = { .sandbox_ids = sandboxes,
                                               .sandbox_ids_count = request_count(sandboxes) };
    const struct client_call call = { &method_sandbox_service_stats, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), stats_list_fill, ret, error);
}

static int stats_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct holt_stats_options *options = context;

    (void)stats_list_fill(*result, message, error);
    if (options->on_stats && options->on_stats(options->context, *result) != 0)
        return error_set(error, "canceled", "the caller ended the watch");
    return 0;
}

int holt_stats_watch(struct holt *holt, const struct holt_stats_options *options, int64_t deadline,
                     struct holt_error *error)
{
    struct holt_stats_options given = HOLT_INIT(holt_stats_options);
    struct msg_watch_stats_request request;
    const struct messages_call call = {
        .method = &method_sandbox_service_watch_stats,
        .request = &request,
        .deadline = deadline,
        .each = stats_take,
        .context = &given,
        .size = sizeof(struct holt_stats_list),
    };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_watch_stats_request){
        .sandbox_ids = given.sandboxes,
        .sandbox_ids_count = request_count(given.sandboxes),
        .interval_ms = given.interval_ms,
    };
    return messages_follow(holt, &call, error);
}

/* --- audit ------------------------------------------------------------------------------------ */

struct audit {
    struct holt_audit_options options;
    struct holt_audit_verdict *verdict; /* a result */
};

static int audit_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct msg_audit_response *reply = message;
    struct audit *audit = context;

    if (reply->verdict && !audit->verdict) {
        audit->verdict = TAKE_PTR(*result);
        *audit->verdict = (struct holt_audit_verdict){
            .is_intact = reply->verdict->in_order,
            .lines = reply->verdict->lines,
            .problem = reply->verdict->problem,
        };
    }
    if (reply->line && audit->options.on_line &&
        audit->options.on_line(audit->options.context, reply->line) != 0)
        return error_set(error, "canceled", "the caller ended the audit");
    return 0;
}

int holt_audit(struct holt *holt, const struct holt_audit_options *options, int64_t deadline,
               struct holt_audit_verdict **ret, struct holt_error *error)
{
    struct audit audit = { .options = HOLT_INIT(holt_audit_options) };
    cleanup_result struct holt_audit_verdict *verdict = NULL;
    struct msg_audit_request request;
    const struct messages_call call = {
        .method = &method_host_service_audit,
        .request = &request,
        .deadline = deadline,
        .each = audit_take,
        .context = &audit,
        .size = sizeof(struct holt_audit_verdict),
    };
    int r;

    if (options_take(&audit.options, sizeof(audit.options), options, error) < 0)
        return -1;
    request = (struct msg_audit_request){
        .sandbox_id = audit.options.sandbox,
        .verify = audit.options.only_verifies,
    };
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
