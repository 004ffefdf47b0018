// SPDX-License-Identifier: Apache-2.0
#include "client/typed/sandbox.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/typed/request.h"
#include "client/typed/result.h"
#include "holt.h"

static const char *const states[] = {
    [HOLT_STATE_UNKNOWN] = "unknown",
    [HOLT_STATE_CREATING] = "creating",
    [HOLT_STATE_ACTIVE] = "active",
    [HOLT_STATE_PAUSING] = "pausing",
    [HOLT_STATE_PAUSED] = "paused",
    [HOLT_STATE_STOPPED] = "stopped",
    [HOLT_STATE_ROLLING_BACK] = "rolling-back",
    [HOLT_STATE_DESTROYING] = "destroying",
    [HOLT_STATE_DESTROYED] = "destroyed",
    [HOLT_STATE_FAILED] = "failed",
};

const char *holt_state_name(enum holt_state state)
{
    return (size_t)state < ARRAY_SIZE(states) ? states[state] : states[HOLT_STATE_UNKNOWN];
}

static enum holt_state state_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        if (strcmp(states[i], name) == 0)
            return (enum holt_state)i;
    return HOLT_STATE_UNKNOWN;
}

static void labels_read(struct reading *reading, const json_t *object, struct holt_sandbox *sandbox)
{
    json_t *map = (json_t *)(uintptr_t)read_object(reading, object, "labels"), *value;
    struct holt_label *labels =
        result_part(reading->result, json_object_size(map), sizeof(*labels));
    const char *key;

    sandbox->labels = labels;
    json_object_foreach(map, key, value) labels[sandbox->label_count++] =
        (struct holt_label){ .key = key, .value = read_text(reading, map, key) };
}

static void mounts_read(struct reading *reading, const json_t *object, struct holt_sandbox *sandbox)
{
    const json_t *list = read_array(reading, object, "volumes");
    struct holt_mount *mounts =
        result_part(reading->result, json_array_size(list), sizeof(*mounts));

    sandbox->mounts = mounts;
    sandbox->mount_count = json_array_size(list);
    for (size_t i = 0; i < sandbox->mount_count; i++) {
        mounts[i].volume = read_text(reading, json_array_get(list, i), "volume");
        mounts[i].path = read_text(reading, json_array_get(list, i), "path");
    }
}

void sandbox_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *limits = read_object(reading, object, "limits");
    struct holt_sandbox *sandbox = into;

    sandbox->id = read_text(reading, object, "id");
    sandbox->name = read_text(reading, object, "name");
    sandbox->state = state_of(read_text(reading, object, "state"));
    sandbox->reason = read_text(reading, object, "reason");
    sandbox->template_name = read_text(reading, object, "template");
    sandbox->runtime = read_text(reading, object, "runtime");
    sandbox->created_ms = read_time(reading, object, "createdAt");
    labels_read(reading, object, sandbox);
    if (limits) {
        sandbox->memory_bytes = read_u64(reading, limits, "memoryBytes");
        sandbox->cpu_millis = read_u32(reading, limits, "cpuMillis");
        sandbox->pids = read_u32(reading, limits, "pids");
    }
    sandbox->quota_bytes = read_u64(reading, object, "quotaBytes");
    sandbox->turns = read_u32(reading, object, "turns");
    sandbox->snapshots = read_u32(reading, object, "snapshots");
    sandbox->max_snapshots = read_u32(reading, object, "maxSnapshots");
    sandbox->base = read_text(reading, object, "base");
    sandbox->space_used_bytes = read_u64(reading, object, "spaceUsed");
    sandbox->expires_ms = read_time(reading, object, "expiresAt");
    sandbox->expire_action = read_text(reading, object, "expireAction");
    sandbox->idle_timeout_ms = read_u64(reading, object, "idleTimeoutMs");
    sandbox->idle_action = read_text(reading, object, "idleAction");
    sandbox->last_active_ms = read_time(reading, object, "lastActiveAt");
    mounts_read(reading, object, sandbox);
}

static void created_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_sandbox *sandbox = into;

    sandbox_read(reading, read_object(reading, object, "sandbox"), sandbox);
    sandbox->is_joined = read_bool(reading, object, "joined");
}

/* A call that is answered with one sandbox; ret may be NULL. */
static int call_for_one(struct holt *holt, const struct client_call *call,
                        struct holt_sandbox **ret, struct holt_error *error)
{
    return client_call_for(
        holt, call, &(struct client_answer){ "sandbox", sizeof(**ret), sandbox_read }, ret, error);
}

static int call_for_list(struct holt *holt, const struct client_call *call,
                         struct holt_sandbox_list **ret, struct holt_error *error)
{
    cleanup_result struct holt_sandbox_list *list = NULL;
    struct reading reading = { .is_wrong = false };
    const json_t *sandboxes;
    json_t *reply;

    if (client_call(holt, call, &reply, error) < 0)
        return -1;
    reading.result = list = result_new(sizeof(*list), reply);
    sandboxes = read_array(&reading, reply, "sandboxes");
    list->count = json_array_size(sandboxes);
    list->items = (const struct holt_sandbox *const *)read_list(
        &reading, sandboxes, sizeof(struct holt_sandbox), sandbox_read);
    if (reading_end(&reading, error) < 0)
        return -1;
    *ret = TAKE_PTR(list);
    return 0;
}

/* A list of VolumeMount from "name:/path" texts, which end with NULL. A name has no colon; what has
 * none at all is for the daemon to refuse. */
static json_t *volumes_list(const char *const *texts)
{
    json_t *list = json_array();

    for (; *texts && list; texts++) {
        size_t len = strcspn(*texts, ":");
        json_t *mount = json_pack("{s:s%, s:s}", "volume", *texts, len, "path",
                                  (*texts)[len] ? *texts + len + 1 : "");

        if (json_array_append_new(list, mount) < 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

int holt_sandbox_create(struct holt *holt, const struct holt_sandbox_options *options,
                        int64_t deadline, struct holt_sandbox **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), created_read };
    struct holt_sandbox_options given = HOLT_INIT(holt_sandbox_options);
    struct client_call call = { .method = "SandboxService/Create", .deadline = deadline };
    json_t *request;

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = request_sandbox(request_text(json_object(), "name", given.name), &given);
    request = request_u64(request, "quotaBytes", given.quota_bytes);
    if (given.labels)
        request = request_value(request, "labels", request_map(given.labels));
    if (given.max_snapshots)
        request = request_value(request, "maxSnapshots", json_integer(given.max_snapshots));
    if (given.volumes)
        request = request_value(request, "volumes", volumes_list(given.volumes));
    request = request_u64(request, "ttlMs", given.ttl_ms);
    request = request_text(request, "expireAction", given.expire_action);
    request = request_u64(request, "idleTimeoutMs", given.idle_timeout_ms);
    request = request_text(request, "idleAction", given.idle_action);
    call.request = request_text(request, "idempotencyKey", given.idempotency_key);
    call.can_be_repeated = given.idempotency_key != NULL;
    return client_call_for(holt, &call, &answer, ret, error);
}

int holt_sandbox_get(struct holt *holt, const char *sandbox, int64_t deadline,
                     struct holt_sandbox **ret, struct holt_error *error)
{
    const struct client_call call = {
        .method = "SandboxService/Get",
        .request = request_for(sandbox),
        .can_be_repeated = true,
        .deadline = deadline,
    };

    return call_for_one(holt, &call, ret, error);
}

int holt_sandbox_list(struct holt *holt, const char *const *labels, int64_t deadline,
                      struct holt_sandbox_list **ret, struct holt_error *error)
{
    struct client_call call = {
        .method = "SandboxService/List",
        .request = json_object(),
        .can_be_repeated = true,
        .deadline = deadline,
    };

    if (labels)
        call.request = request_value(call.request, "labels", request_map(labels));
    return call_for_list(holt, &call, ret, error);
}

int holt_sandbox_pause(struct holt *holt, const char *sandbox, int64_t deadline,
                       struct holt_sandbox **ret, struct holt_error *error)
{
    const struct client_call call = { "SandboxService/Pause", request_for(sandbox), false,
                                      deadline };

    return call_for_one(holt, &call, ret, error);
}

int holt_sandbox_resume(struct holt *holt, const char *sandbox, int64_t deadline,
                        struct holt_sandbox **ret, struct holt_error *error)
{
    const struct client_call call = { "SandboxService/Resume", request_for(sandbox), false,
                                      deadline };

    return call_for_one(holt, &call, ret, error);
}

int holt_sandbox_stop(struct holt *holt, const char *sandbox, int64_t deadline,
                      struct holt_sandbox **ret, struct holt_error *error)
{
    const struct client_call call = { "SandboxService/Stop", request_for(sandbox), false,
                                      deadline };

    return call_for_one(holt, &call, ret, error);
}

int holt_sandbox_start(struct holt *holt, const char *sandbox, int64_t deadline,
                       struct holt_sandbox **ret, struct holt_error *error)
{
    const struct client_call call = { "SandboxService/Start", request_for(sandbox), false,
                                      deadline };

    return call_for_one(holt, &call, ret, error);
}

int holt_sandbox_destroy(struct holt *holt, const char *sandbox, int64_t deadline,
                         struct holt_error *error)
{
    const struct client_call call = { "SandboxService/Destroy", request_for(sandbox), false,
                                      deadline };

    return client_call_void(holt, &call, error);
}

int holt_sandbox_fork(struct holt *holt, const char *sandbox,
                      const struct holt_fork_options *options, int64_t deadline,
                      struct holt_sandbox_list **ret, struct holt_error *error)
{
    struct holt_fork_options given = HOLT_INIT(holt_fork_options);
    struct client_call call = { .method = "SandboxService/Fork", .deadline = deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    call.request = request_text(request_for(sandbox), "from", given.from);
    if (given.count)
        call.request = request_value(call.request, "count", json_integer(given.count));
    return call_for_list(holt, &call, ret, error);
}
