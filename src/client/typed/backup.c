// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "client/message/sandbox_result.h"
#include "holt.h"

static void backup_fill(void *result, struct holt_backup *backup, const struct msg_backup *message)
{
    (void)result;
    backup->name = message->name;
    backup->sandbox = message->sandbox_id;
    backup->sandbox_name = message->sandbox_name;
    backup->snapshot = message->snapshot;
    backup->created_ms = (int64_t)message->created_at_ms;
    backup->size_bytes = message->size_bytes;
    backup->stored_bytes = message->stored_bytes;
    backup->template_name = message->template;
}

static int create_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_backup_create_response *reply = message;

    if (!reply->backup)
        return reply_lacks("backup", error);
    backup_fill(result, result, reply->backup);
    return 0;
}

int holt_backup_create(struct holt *holt, const char *sandbox, const char *snapshot,
                       int64_t deadline, struct holt_backup **ret, struct holt_error *error)
{
    const struct msg_backup_create_request request = {
        .sandbox_id = sandbox,
        .snapshot = snapshot ? snapshot : "",
    };
    const struct client_call call = { &method_backup_service_create, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), create_fill, ret, error);
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_backup_list_response *reply = message;
    struct holt_backup_list *list = result;

    (void)error;
    list->count = reply->backups_count;
    list->items =
        RESULT_LIST(result, struct holt_backup, backup_fill, reply->backups, reply->backups_count);
    return 0;
}

int holt_backup_list(struct holt *holt, const char *sandbox, int64_t deadline,
                     struct holt_backup_list **ret, struct holt_error *error)
{
    const struct msg_backup_list_request request = { .sandbox_id = sandbox ? sandbox : "" };
    const struct client_call call = { &method_backup_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

int holt_backup_remove(struct holt *holt, const char *backup, int64_t deadline,
                       struct holt_error *error)
{
    const struct msg_backup_remove_request request = { .name = backup };
    const struct client_call call = { &method_backup_service_remove, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

static int restore_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_backup_restore_response *reply = message;

    return sandbox_result_fill(result, reply->sandbox, error);
}

int holt_backup_restore(struct holt *holt, const char *backup, const char *name, int64_t deadline,
                        struct holt_sandbox **ret, struct holt_error *error)
{
    const struct msg_backup_restore_request request = {
        .name = backup,
        .sandbox_name = name ? name : "",
    };
    const struct client_call call = { &method_backup_service_restore, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), restore_fill, ret, error);
}

static int collect_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_backup_collect_response *reply = message;
    struct holt_backup_collected *collected = result;

    (void)error;
    collected->objects = reply->objects;
    collected->bytes = reply->bytes;
    return 0;
}

int holt_backup_collect(struct holt *holt, int64_t deadline, struct holt_backup_collected **ret,
                        struct holt_error *error)
{
    const struct msg_backup_collect_request request = { 0 };
    const struct client_call call = { &method_backup_service_collect, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), collect_fill, ret, error);
}
