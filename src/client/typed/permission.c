// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "holt.h"

static int permissions_fill(void *result, const struct msg_permissions *message,
                            struct holt_error *error)
{
    struct holt_permissions *permissions = result;

    if (!message)
        return reply_lacks("permissions", error);
    permissions->is_enforced = message->enforced;
    permissions->preset = message->preset;
    permissions->rules = message->rules;
    permissions->rule_count = message->rules_count;
    permissions->generation = message->generation;
    permissions->engine = message->engine;
    permissions->engine_reason = message->engine_reason;
    permissions->path = message->path;
    permissions->denials = message->denials;
    return 0;
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    return permissions_fill(
        result, ((const struct msg_permission_list_response *)message)->permissions, error);
}

int holt_permission_list(struct holt *holt, const char *sandbox, int64_t deadline,
                         struct holt_permissions **ret, struct holt_error *error)
{
    const struct msg_permission_list_request request = { .sandbox_id = sandbox };
    const struct client_call call = { &method_permission_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

static int change_fill(void *result, const struct msg_permission_change *message,
                       struct holt_error *error)
{
    struct holt_permissions *permissions = result;

    if (!message)
        return reply_lacks("change", error);
    permissions->open_files = message->open_files;
    permissions->ended_processes = message->ended_processes;
    return permissions_fill(result, message->permissions, error);
}

static int set_fill(void *result, const void *message, struct holt_error *error)
{
    return change_fill(result, ((const struct msg_permission_set_response *)message)->change,
                       error);
}

int holt_permission_set(struct holt *holt, const char *sandbox,
                        const struct holt_permission_change *change, int64_t deadline,
                        struct holt_permissions **ret, struct holt_error *error)
{
    const struct msg_permission_set_request request = { .sandbox_id = sandbox,
                                                        .preset = change->preset,
                                                        .rules = change->rules,
                                                        .rules_count = request_count(change->rules),
                                                        .revoke = change->is_revoking };
    const struct client_call call = { &method_permission_service_set, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), set_fill, ret, error);
}

static int add_fill(void *result, const void *message, struct holt_error *error)
{
    return change_fill(result, ((const struct msg_permission_add_response *)message)->change,
                       error);
}

int holt_permission_add(struct holt *holt, const char *sandbox,
                        const struct holt_permission_change *change, int64_t deadline,
                        struct holt_permissions **ret, struct holt_error *error)
{
    const struct msg_permission_add_request request = { .sandbox_id = sandbox,
                                                        .rules = change->rules,
                                                        .rules_count = request_count(change->rules),
                                                        .revoke = change->is_revoking };
    const struct client_call call = { &method_permission_service_add, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), add_fill, ret, error);
}

static int remove_fill(void *result, const void *message, struct holt_error *error)
{
    return change_fill(result, ((const struct msg_permission_remove_response *)message)->change,
                       error);
}

int holt_permission_remove(struct holt *holt, const char *sandbox,
                           const struct holt_permission_change *change, int64_t deadline,
                           struct holt_permissions **ret, struct holt_error *error)
{
    const struct msg_permission_remove_request request = {
        .sandbox_id = sandbox,
        .rules = change->rules,
        .rules_count = request_count(change->rules),
        .revoke = change->is_revoking,
    };
    const struct client_call call = { &method_permission_service_remove, &request, false,
                                      deadline };

    return client_call_for(holt, &call, sizeof(**ret), remove_fill, ret, error);
}

static int why_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_permission_why_response *reply = message;

    (void)error;
    *(struct holt_permission_why *)result =
        (struct holt_permission_why){ .path = reply->path,
                                      .level = reply->level,
                                      .rule = reply->rule,
                                      .number = reply->number,
                                      .is_traversable = reply->traversable,
                                      .would_take = reply->would_take };
    return 0;
}

int holt_permission_why(struct holt *holt, const char *sandbox, const char *path, int64_t deadline,
                        struct holt_permission_why **ret, struct holt_error *error)
{
    const struct msg_permission_why_request request = { .sandbox_id = sandbox, .path = path };
    const struct client_call call = { &method_permission_service_why, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), why_fill, ret, error);
}

static int test_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_permission_test_response *reply = message;

    (void)error;
    *(struct holt_permission_test *)result =
        (struct holt_permission_test){ .is_allowed = reply->allowed,
                                       .error = reply->error,
                                       .path = reply->path,
                                       .level = reply->level,
                                       .rule = reply->rule };
    return 0;
}

int holt_permission_test(struct holt *holt, const char *sandbox,
                         const struct holt_permission_operation *operation, int64_t deadline,
                         struct holt_permission_test **ret, struct holt_error *error)
{
    const struct msg_permission_test_request request = { .sandbox_id = sandbox,
                                                         .path = operation->path,
                                                         .operation = operation->name,
                                                         .to = operation->to };
    const struct client_call call = { &method_permission_service_test, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), test_fill, ret, error);
}

static void entry_fill(void *result, struct holt_permission_entry *entry,
                       const struct msg_permission_entry *message)
{
    (void)result;
    *entry = (struct holt_permission_entry){ .path = message->path,
                                             .is_directory = message->directory,
                                             .level = message->level,
                                             .number = message->number };
}

static int tree_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_permission_tree_response *reply = message;
    struct holt_permission_tree *tree = result;

    (void)error;
    tree->count = reply->entries_count;
    tree->items = RESULT_LIST(result, struct holt_permission_entry, entry_fill, reply->entries,
                              reply->entries_count);
    tree->is_truncated = reply->truncated;
    return 0;
}

int holt_permission_tree(struct holt *holt, const char *sandbox,
                         const struct holt_permission_part *part, int64_t deadline,
                         struct holt_permission_tree **ret, struct holt_error *error)
{
    const struct msg_permission_tree_request request = { .sandbox_id = sandbox,
                                                         .path = part ? part->path : NULL,
                                                         .depth = part ? part->depth : 0 };
    const struct client_call call = { &method_permission_service_tree, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), tree_fill, ret, error);
}
