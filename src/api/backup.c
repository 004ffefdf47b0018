// SPDX-License-Identifier: Apache-2.0
#include "host/backup/backup.h"

#include "api/message/messages.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "host/sandbox/sandbox.h"

static void backup_message(const struct backup_info *info, struct msg_backup *ret)
{
    *ret = (struct msg_backup){
        .name = info->name,
        .sandbox_id = info->sandbox,
        .sandbox_name = info->sandbox_name,
        .snapshot = info->snapshot,
        .created_at_ms = info->created_ms,
        .size_bytes = info->size,
        .stored_bytes = info->stored,
        .template = info->template,
    };
}

int backup_service_create(const struct call *call, const struct msg_backup_create_request *request,
                          struct err *err)
{
    struct msg_backup backup;
    struct backup_info info;
    int r = backup_create(call->host, call->caller, request->sandbox_id,
                          text_or_null(request->snapshot), &info, err);

    if (r < 0)
        return r;
    backup_message(&info, &backup);
    return call_reply(call, MESSAGE(msg_backup_create_response, .backup = &backup), err);
}

int backup_service_list(const struct call *call, const struct msg_backup_list_request *request,
                        struct err *err)
{
    cleanup_free struct backup_info *infos = NULL;
    struct msg_backup *backups;
    size_t count = 0;
    int r = backup_list(call->host, call->caller, text_or_null(request->sandbox_id), &infos, &count,
                        err);

    if (r < 0)
        return r;
    backups = arena_take(call->arena, count, sizeof(*backups));
    for (size_t i = 0; i < count; i++)
        backup_message(&infos[i], &backups[i]);
    return call_reply(
        call, MESSAGE(msg_backup_list_response, .backups = backups, .backups_count = count), err);
}

int backup_service_remove(const struct call *call, const struct msg_backup_remove_request *request,
                          struct err *err)
{
    return backup_remove(call->host, call->caller, request->name, err);
}

int backup_service_restore(const struct call *call,
                           const struct msg_backup_restore_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct msg_sandbox message;
    int r = backup_restore(call->host, call->caller, request->name,
                           text_or_null(request->sandbox_name), &sandbox, err);

    if (r < 0)
        return r;
    sandbox_get_info(sandbox, false, &info);
    message = sandbox_message(call, &info, false);
    return call_reply(call, MESSAGE(msg_backup_restore_response, .sandbox = &message), err);
}

int backup_service_collect(const struct call *call,
                           const struct msg_backup_collect_request *request, struct err *err)
{
    struct archive_collected collected = { 0 };
    int r = backup_collect(call->host, call->caller, &collected, err);

    (void)request;
    if (r < 0)
        return r;
    return call_reply(call,
                      MESSAGE(msg_backup_collect_response, .objects = collected.objects,
                              .bytes = collected.bytes),
                      err);
}
