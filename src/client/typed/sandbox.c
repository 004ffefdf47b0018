// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "client/message/sandbox_result.h"
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
    [HOLT_STATE_DEEP_PAUSED] = "deep-paused",
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

static void mounts_fill(void *result, struct holt_sandbox *sandbox,
                        const struct msg_sandbox *message)
{
    const size_t count = message->volumes_count;
    struct holt_mount *mounts = result_part(result, count, sizeof(*mounts));
    bool *read_only = result_part(result, count, sizeof(*read_only));

    for (size_t i = 0; i < count; i++) {
        mounts[i] = (struct holt_mount){ message->volumes[i].volume, message->volumes[i].path };
        read_only[i] = message->volumes[i].read_only;
    }
    sandbox->mounts = mounts;
    sandbox->mounts_read_only = read_only;
    sandbox->mount_count = message->volumes_count;
}

static void sandbox_fill(void *result, struct holt_sandbox *sandbox,
                         const struct msg_sandbox *message)
{
    static const struct msg_limits no_limits;
    const struct msg_limits *limits = message->limits ? message->limits : &no_limits;

    *sandbox = (struct holt_sandbox){
        .id = message->id,
        .name = message->name,
        .state = state_of(message->state),
        .reason = message->reason,
        .template_name = message->template,
        .runtime = message->runtime,
        .created_ms = (int64_t)message->created_at_ms,
        .memory_bytes = limits->memory_bytes,
        .cpu_millis = limits->cpu_millis,
        .pids = limits->pids,
        .files = limits->files,
        .quota_bytes = message->quota_bytes,
        .turns = message->turns,
        .snapshots = message->snapshots,
        .max_snapshots = message->max_snapshots,
        .base = message->base,
        .space_used_bytes = message->space_used,
        .expires_ms = (int64_t)message->expires_at_ms,
        .expire_action = message->expire_action,
        .idle_timeout_ms = message->idle_timeout_ms,
        .idle_action = message->idle_action,
        .last_active_ms = (int64_t)message->last_active_at_ms,
        .address = "",
        .transfer_done_bytes = message->transfer_done_bytes,
        .transfer_total_bytes = message->transfer_total_bytes,
    };
    sandbox->labels = result_labels(result, message->labels, message->labels_count);
    sandbox->label_count = message->labels_count;
    sandbox->owner = message->owner;
    sandbox->network = message->network;
    sandbox->secrets = message->secrets;
    sandbox->secret_count = message->secrets_count;
    mounts_fill(result, sandbox, message);
    sandbox->codebase = sandbox->codebase_path = "";
    if (message->codebase) {
        sandbox->codebase = message->codebase->codebase;
        sandbox->codebase_path = message->codebase->path;
        sandbox->codebase_version = message->codebase->version;
        sandbox->codebase_base = message->codebase->base;
    }
}

int sandbox_result_fill(void *result, const struct msg_sandbox *message, struct holt_error *error)
{
    if (!message)
        return reply_lacks("sandbox", error);
    sandbox_fill(result, result, message);
    return 0;
}

static int list_fill(void *result, const struct msg_sandbox *messages, size_t count)
{
    struct holt_sandbox_list *list = result;

    list->count = count;
    list->items = RESULT_LIST(result, struct holt_sandbox, sandbox_fill, messages, count);
    return 0;
}

/* Splits "name:/path", "name:/path:ro" or "name:/path:rw". A name has no colon; the daemon refuses
 * a text without one. */
static struct msg_volume_mount mount_make(const char *text, struct arena *arena)
{
    const size_t name_len = strcspn(text, ":");
    const char *rest = text[name_len] ? text + name_len + 1 : "";
    size_t path_len = strlen(rest);
    bool is_read_only = path_len > 3 && strcmp(rest + path_len - 3, ":ro") == 0;
    char *name = arena_take(arena, name_len + 1, 1), *path;

    if (is_read_only || (path_len > 3 && strcmp(rest + path_len - 3, ":rw") == 0))
        path_len -= 3;
    path = arena_take(arena, path_len + 1, 1);
    (void)snprintf(name, name_len + 1, "%s", text);
    (void)snprintf(path, path_len + 1, "%s", rest);
    return (struct msg_volume_mount){ name, path, is_read_only };
}

/* Makes mounts of texts that end with NULL. */
static const struct msg_volume_mount *mounts_make(const char *const *texts, struct arena *arena)
{
    const size_t count = request_count(texts);
    struct msg_volume_mount *mounts = arena_take(arena, count + 1, sizeof(*mounts));

    for (size_t i = 0; i < count; i++)
        mounts[i] = mount_make(texts[i], arena);
    return mounts;
}

/* Splits "name" or "name:/path". */
static const struct msg_codebase_mount *codebase_make(const char *text, struct arena *arena)
{
    struct msg_codebase_mount *mount;
    size_t len;
    char *name;

    if (!text)
        return NULL;
    len = strcspn(text, ":");
    name = arena_take(arena, len + 1, 1);
    (void)snprintf(name, len + 1, "%s", text);
    mount = arena_take(arena, 1, sizeof(*mount));
    *mount =
        (struct msg_codebase_mount){ .codebase = name, .path = text[len] ? text + len + 1 : "" };
    return mount;
}

static const struct msg_permission_policy *
permissions_make(const struct holt_permission_rules *rules, struct arena *arena)
{
    struct msg_permission_policy *policy;

    if (!rules)
        return NULL;
    policy = arena_take(arena, 1, sizeof(*policy));
    *policy = (struct msg_permission_policy){ .preset = rules->preset,
                                              .rules = rules->rules,
                                              .rules_count = request_count(rules->rules),
                                              .view = rules->view };
    return policy;
}

static const struct holt_agent *agent_make(void *result, const struct msg_agent *message)
{
    struct holt_agent *agent = result_part(result, 1, sizeof(*agent));

    *agent = (struct holt_agent){
        .type = message->type,
        .command = message->command,
        .task = message->task,
        .env = result_labels(result, message->env, message->env_count),
        .env_count = message->env_count,
        .user = message->user,
        .token = message->token,
        .process = message->process_id,
        .address = message->address,
    };
    return agent;
}

static int created_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_create_sandbox_response *reply = message;

    if (sandbox_result_fill(result, reply->sandbox, error) < 0)
        return -1;
    ((struct holt_sandbox *)result)->is_joined = reply->joined;
    ((struct holt_sandbox *)result)->address = reply->address;
    if (reply->agent)
        ((struct holt_sandbox *)result)->agent = agent_make(result, reply->agent);
    return 0;
}

/* Fills in the settings of an agent, if there are any. */
static int agent_settings_take(const struct holt_agent_settings *options, struct arena *arena,
                               const struct msg_agent_settings **ret, struct holt_error *error)
{
    struct holt_agent_settings given = HOLT_INIT(holt_agent_settings);
    struct msg_agent_settings *settings = arena_take(arena, 1, sizeof(*settings));

    if (!options)
        return 0;
    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    *settings = (struct msg_agent_settings){
        .serve = given.serves,
        .token = given.token,
        .assistant_name = given.assistant_name,
        .workspace_id = given.workspace_id,
        .bridge_url = given.bridge_url,
        .bridge_secret = given.bridge_secret,
    };
    *ret = settings;
    return request_pairs(arena, given.env, &settings->env, &settings->env_count, error);
}

int holt_sandbox_create(struct holt *holt, const struct holt_sandbox_options *options,
                        int64_t deadline, struct holt_sandbox **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct holt_sandbox_options given = HOLT_INIT(holt_sandbox_options);
    struct msg_create_sandbox_request request;
    struct client_call call = { &method_sandbox_service_create, &request, false, deadline };
    struct msg_network_policy network;
    struct msg_limits limits;

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    limits = request_limits(&given);
    request = (struct msg_create_sandbox_request){
        .name = given.name,
        .template = given.template_name,
        .runtime = given.runtime,
        .limits = &limits,
        .quota_bytes = given.quota_bytes,
        .max_snapshots = given.max_snapshots,
        .ttl_ms = given.ttl_ms,
        .expire_action = given.expire_action,
        .idle_timeout_ms = given.idle_timeout_ms,
        .idle_action = given.idle_action,
        .idempotency_key = given.idempotency_key,
        .network = request_network(given.network, given.proxy, given.models, &network),
        .secrets = given.secrets,
        .secrets_count = request_count(given.secrets),
        .type = given.type,
        .permissions = permissions_make(given.permissions, &arena),
    };
    if (request_pairs(&arena, given.labels, &request.labels, &request.labels_count, error) < 0 ||
        agent_settings_take(given.agent, &arena, &request.agent, error) < 0)
        return -1;
    request.codebase = codebase_make(given.codebase, &arena);
    request.volumes = mounts_make(given.volumes, &arena);
    request.volumes_count = request_count(given.volumes);
    call.can_be_repeated = given.idempotency_key != NULL;
    return client_call_for(holt, &call, sizeof(**ret), created_fill, ret, error);
}

static int got_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_get_sandbox_response *reply = message;

    return sandbox_result_fill(result, reply->sandbox, error);
}

int holt_sandbox_get(struct holt *holt, const char *sandbox, int64_t deadline,
                     struct holt_sandbox **ret, struct holt_error *error)
{
    const struct msg_get_sandbox_request request = { .sandbox_id = sandbox };
    const struct client_call call = { &method_sandbox_service_get, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), got_fill, ret, error);
}

static int listed_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_list_sandboxes_response *reply = message;

    (void)error;
    return list_fill(result, reply->sandboxes, reply->sandboxes_count);
}

int holt_sandbox_list(struct holt *holt, const char *const *labels, int64_t deadline,
                      struct holt_sandbox_list **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct msg_list_sandboxes_request request = { 0 };
    const struct client_call call = { &method_sandbox_service_list, &request, true, deadline };

    if (request_pairs(&arena, labels, &request.labels, &request.labels_count, error) < 0)
        return -1;
    return client_call_for(holt, &call, sizeof(**ret), listed_fill, ret, error);
}

static int changed_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_sandbox_response *reply = message;

    return sandbox_result_fill(result, reply->sandbox, error);
}

int holt_sandbox_update(struct holt *holt, const char *sandbox,
                        const struct holt_update_options *options, int64_t deadline,
                        struct holt_sandbox **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct holt_update_options given = HOLT_INIT(holt_update_options);
    struct msg_update_sandbox_request request;
    struct client_call call = { &method_sandbox_service_update, &request, false, deadline };
    struct msg_volume_mounts volumes;
    struct msg_limits limits;

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    limits = (struct msg_limits){ given.memory_bytes, given.cpu_millis, given.pids, given.files };
    volumes = (struct msg_volume_mounts){ mounts_make(given.volumes, &arena),
                                          request_count(given.volumes) };
    request = (struct msg_update_sandbox_request){
        .sandbox_id = sandbox,
        .name = given.name,
        .remove_labels = given.remove_labels,
        .remove_labels_count = request_count(given.remove_labels),
        .limits = &limits,
        .has_ttl_ms = given.sets_ttl,
        .ttl_ms = given.ttl_ms,
        .expire_action = given.expire_action,
        .has_idle_timeout_ms = given.sets_idle_timeout,
        .idle_timeout_ms = given.idle_timeout_ms,
        .idle_action = given.idle_action,
        .has_max_snapshots = given.sets_max_snapshots,
        .max_snapshots = given.max_snapshots,
        .volumes = given.sets_volumes ? &volumes : NULL,
        .quota_bytes = given.quota_bytes,
    };
    if (request_pairs(&arena, given.labels, &request.labels, &request.labels_count, error) < 0)
        return -1;
    return client_call_for(holt, &call, sizeof(**ret), changed_fill, ret, error);
}

/* Makes a call that changes the state of a sandbox. */
static int state_change(struct holt *holt, const struct client_method *method, const char *sandbox,
                        int64_t deadline, struct holt_sandbox **ret, struct holt_error *error)
{
    const struct msg_sandbox_request request = { .sandbox_id = sandbox };
    const struct client_call call = { method, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), changed_fill, ret, error);
}

static int pause_with(struct holt *holt, const struct msg_pause_sandbox_request *request,
                      int64_t deadline, struct holt_sandbox **ret, struct holt_error *error)
{
    const struct client_call call = { &method_sandbox_service_pause, request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), changed_fill, ret, error);
}

int holt_sandbox_pause(struct holt *holt, const char *sandbox, int64_t deadline,
                       struct holt_sandbox **ret, struct holt_error *error)
{
    return pause_with(holt, &(struct msg_pause_sandbox_request){ .sandbox_id = sandbox }, deadline,
                      ret, error);
}

int holt_sandbox_deep_pause(struct holt *holt, const char *sandbox, int64_t deadline,
                            struct holt_sandbox **ret, struct holt_error *error)
{
    return pause_with(holt,
                      &(struct msg_pause_sandbox_request){ .sandbox_id = sandbox, .deep = true },
                      deadline, ret, error);
}

static int resumed_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_resume_sandbox_response *reply = message;

    return sandbox_result_fill(result, reply->sandbox, error);
}

int holt_sandbox_resume(struct holt *holt, const char *sandbox, int64_t deadline,
                        struct holt_sandbox **ret, struct holt_error *error)
{
    const struct msg_resume_sandbox_request request = { .sandbox_id = sandbox };
    const struct client_call call = { &method_sandbox_service_resume, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), resumed_fill, ret, error);
}

int holt_sandbox_stop(struct holt *holt, const char *sandbox, int64_t deadline,
                      struct holt_sandbox **ret, struct holt_error *error)
{
    return state_change(holt, &method_sandbox_service_stop, sandbox, deadline, ret, error);
}

int holt_sandbox_start(struct holt *holt, const char *sandbox, int64_t deadline,
                       struct holt_sandbox **ret, struct holt_error *error)
{
    return state_change(holt, &method_sandbox_service_start, sandbox, deadline, ret, error);
}

int holt_sandbox_destroy(struct holt *holt, const char *sandbox, int64_t deadline,
                         struct holt_error *error)
{
    const struct msg_sandbox_request request = { .sandbox_id = sandbox };
    const struct client_call call = { &method_sandbox_service_destroy, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

static int forked_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_fork_response *reply = message;

    (void)error;
    return list_fill(result, reply->sandboxes, reply->sandboxes_count);
}

int holt_sandbox_fork(struct holt *holt, const char *sandbox,
                      const struct holt_fork_options *options, int64_t deadline,
                      struct holt_sandbox_list **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct holt_fork_options given = HOLT_INIT(holt_fork_options);
    struct msg_fork_request request;
    struct msg_network_policy network;
    const struct client_call call = { &method_sandbox_service_fork, &request, false, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_fork_request){
        .sandbox_id = sandbox,
        .from = given.from,
        .count = given.count,
        .name = given.name,
        .has_ttl_ms = given.sets_ttl,
        .ttl_ms = given.ttl_ms,
        .expire_action = given.expire_action,
        .network = request_network(given.network, given.proxy, NULL, &network),
        .permissions = permissions_make(given.permissions, &arena),
    };
    if (request_pairs(&arena, given.labels, &request.labels, &request.labels_count, error) < 0)
        return -1;
    return client_call_for(holt, &call, sizeof(**ret), forked_fill, ret, error);
}
