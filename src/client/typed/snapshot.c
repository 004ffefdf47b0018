// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/transport/messages.h"
#include "client/typed/request.h"
#include "holt.h"

static void snapshot_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_snapshot *snapshot = into;

    snapshot->name = read_text(reading, object, "name");
    snapshot->kind = read_text(reading, object, "kind");
    snapshot->turn = read_u32(reading, object, "turn");
    snapshot->parent = read_text(reading, object, "parent");
    snapshot->created_ms = read_time(reading, object, "createdAt");
    snapshot->space_used_bytes = read_u64(reading, object, "spaceUsed");
}

static const struct client_answer one = { "snapshot", sizeof(struct holt_snapshot), snapshot_read };

static json_t *request_named(const char *sandbox, const char *field, const char *name)
{
    return request_value(request_for(sandbox), field, name ? json_string(name) : NULL);
}

int holt_turn(struct holt *holt, const char *sandbox, int64_t deadline, struct holt_snapshot **ret,
              struct holt_error *error)
{
    const struct client_call call = { "SnapshotService/TurnComplete", request_for(sandbox), false,
                                      deadline };

    return client_call_for(holt, &call, &one, ret, error);
}

int holt_snapshot_create(struct holt *holt, const char *sandbox, const char *name, int64_t deadline,
                         struct holt_snapshot **ret, struct holt_error *error)
{
    const struct client_call call = { "SnapshotService/Create",
                                      request_named(sandbox, "name", name), false, deadline };

    return client_call_for(holt, &call, &one, ret, error);
}

static void list_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *snapshots = read_array(reading, object, "snapshots");
    struct holt_snapshot_list *list = into;

    list->base = read_text(reading, object, "base");
    list->count = json_array_size(snapshots);
    list->items = (const struct holt_snapshot *const *)read_list(
        reading, snapshots, sizeof(**list->items), snapshot_read);
}

int holt_snapshot_list(struct holt *holt, const char *sandbox, int64_t deadline,
                       struct holt_snapshot_list **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), list_read };
    const struct client_call call = { "SnapshotService/List", request_for(sandbox), true,
                                      deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

int holt_snapshot_remove(struct holt *holt, const char *sandbox, const char *snapshot,
                         int64_t deadline, struct holt_error *error)
{
    const struct client_call call = { "SnapshotService/Remove",
                                      request_named(sandbox, "snapshot", snapshot), false,
                                      deadline };

    return client_call_void(holt, &call, error);
}

int holt_rollback(struct holt *holt, const char *sandbox, const char *snapshot, bool prunes_newer,
                  int64_t deadline, struct holt_error *error)
{
    const struct client_call call = { "SnapshotService/Rollback",
                                      request_true(request_named(sandbox, "snapshot", snapshot),
                                                   "pruneNewer", prunes_newer),
                                      false, deadline };

    return client_call_void(holt, &call, error);
}

static int take_change(void *context, struct reading *reading, const json_t *message,
                       struct holt_error *error)
{
    const struct holt_diff_options *options = context;
    struct holt_change *change = reading->result;

    *change = (struct holt_change){
        .kind = read_text(reading, message, "kind"),
        .path = read_path(reading, message, "path", "rawPath"),
        .old_path = read_path(reading, message, "oldPath", "rawOldPath"),
        .type = read_text(reading, message, "type"),
        .size_bytes = read_u64(reading, message, "size"),
        .old_size_bytes = read_u64(reading, message, "oldSize"),
        .is_binary = read_bool(reading, message, "binary"),
        .added_lines = read_u64(reading, message, "addedLines"),
        .deleted_lines = read_u64(reading, message, "deletedLines"),
    };

    change->patch = read_bytes(reading, message, "patch", &change->patch_len);
    if (reading_end(reading, error) < 0)
        return -1;
    if (options->on_change && options->on_change(options->context, change) != 0)
        return error_set(error, "canceled", "the caller wanted no more changes");
    return 0;
}

int holt_diff(struct holt *holt, const char *sandbox, const struct holt_diff_options *options,
              int64_t deadline, struct holt_error *error)
{
    struct holt_diff_options given = HOLT_INIT(holt_diff_options);
    struct messages_call call = {
        .method = "holt.v1.SnapshotService/Diff",
        .deadline = deadline,
        .each = take_change,
        .context = &given,
        .size = sizeof(struct holt_change),
    };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    call.request = request_text(request_for(sandbox), "from", given.from);
    call.request = request_text(call.request, "to", given.to);
    call.request = request_true(call.request, "lines", given.counts_lines);
    call.request = request_true(call.request, "patch", given.has_patch);
    return messages_follow(holt, &call, error);
}
