// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/messages.h"
#include "holt.h"
#include "wire/file_message.h"

static void snapshot_fill(void *result, struct holt_snapshot *snapshot,
                          const struct msg_snapshot *message)
{
    (void)result;
    *snapshot = (struct holt_snapshot){
        .name = message->name,
        .kind = message->kind,
        .turn = message->turn,
        .parent = message->parent,
        .created_ms = (int64_t)message->created_at_ms,
        .space_used_bytes = message->space_used,
        .note = message->note,
    };
}

static int one_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_snapshot_response *reply = message;

    if (!reply->snapshot)
        return reply_lacks("snapshot", error);
    snapshot_fill(result, result, reply->snapshot);
    return 0;
}

int holt_turn(struct holt *holt, const char *sandbox, int64_t deadline, struct holt_snapshot **ret,
              struct holt_error *error)
{
    const struct msg_turn_complete_request request = { .sandbox_id = sandbox };
    const struct client_call call = { &method_snapshot_service_turn_complete, &request, false,
                                      deadline };

    return client_call_for(holt, &call, sizeof(**ret), one_fill, ret, error);
}

int holt_snapshot_create(struct holt *holt, const char *sandbox, const char *name, int64_t deadline,
                         struct holt_snapshot **ret, struct holt_error *error)
{
    const struct msg_create_snapshot_request request = { .sandbox_id = sandbox, .name = name };
    const struct client_call call = { &method_snapshot_service_create, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), one_fill, ret, error);
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_list_snapshots_response *reply = message;
    struct holt_snapshot_list *list = result;

    (void)error;
    list->base = reply->base;
    list->count = reply->snapshots_count;
    list->items = RESULT_LIST(result, struct holt_snapshot, snapshot_fill, reply->snapshots,
                              reply->snapshots_count);
    return 0;
}

int holt_snapshot_list(struct holt *holt, const char *sandbox, int64_t deadline,
                       struct holt_snapshot_list **ret, struct holt_error *error)
{
    const struct msg_list_snapshots_request request = { .sandbox_id = sandbox };
    const struct client_call call = { &method_snapshot_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

int holt_snapshot_remove(struct holt *holt, const char *sandbox, const char *snapshot,
                         int64_t deadline, struct holt_error *error)
{
    const struct msg_remove_snapshot_request request = { .sandbox_id = sandbox,
                                                         .snapshot = snapshot };
    const struct client_call call = { &method_snapshot_service_remove, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

int holt_snapshot_update(struct holt *holt, const char *sandbox, const char *snapshot,
                         const char *note, int64_t deadline, struct holt_error *error)
{
    const struct msg_update_snapshot_request request = {
        .sandbox_id = sandbox,
        .snapshot = snapshot,
        .note = note,
    };
    const struct client_call call = { &method_snapshot_service_update, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

int holt_rollback(struct holt *holt, const char *sandbox, const char *snapshot, bool prunes_newer,
                  int64_t deadline, struct holt_error *error)
{
    const struct msg_rollback_request request = {
        .sandbox_id = sandbox,
        .snapshot = snapshot,
        .prune_newer = prunes_newer,
    };
    const struct client_call call = { &method_snapshot_service_rollback, &request, false,
                                      deadline };

    return client_call_void(holt, &call, error);
}

static int change_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct holt_diff_options *options = context;
    const struct msg_diff_response *reply = message;
    struct holt_change *change = *result;

    *change = (struct holt_change){
        .kind = reply->kind,
        .path = path_of(reply->path, &reply->raw_path),
        .old_path = path_of(reply->old_path, &reply->raw_old_path),
        .type = reply->type,
        .size_bytes = reply->size,
        .old_size_bytes = reply->old_size,
        .is_binary = reply->binary,
        .added_lines = reply->added_lines,
        .deleted_lines = reply->deleted_lines,
        .patch = reply->patch.data ? reply->patch.data : "",
        .patch_len = reply->patch.len,
    };
    if (options->on_change && options->on_change(options->context, change) != 0)
        return error_set(error, "canceled", "the caller ended the diff");
    return 0;
}

int holt_diff(struct holt *holt, const char *sandbox, const struct holt_diff_options *options,
              int64_t deadline, struct holt_error *error)
{
    struct holt_diff_options given = HOLT_INIT(holt_diff_options);
    struct msg_diff_request request;
    const struct messages_call call = {
        .method = &method_snapshot_service_diff,
        .request = &request,
        .deadline = deadline,
        .each = change_take,
        .context = &given,
        .size = sizeof(struct holt_change),
    };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_diff_request){
        .sandbox_id = sandbox,
        .from = given.from,
        .to = given.to,
        .lines = given.counts_lines,
        .patch = given.has_patch,
        .to_sandbox_id = given.to_sandbox,
        .path = given.path ? path_text(given.path) : NULL,
        .raw_path = path_raw(given.path ? given.path : ""),
        .codebase = given.is_from_codebase,
    };
    return messages_follow(holt, &call, error);
}
