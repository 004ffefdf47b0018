// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "api/message/messages.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/sandbox/sandbox.h"

_Static_assert(MSG_CREATE_SNAPSHOT_REQUEST_NAME_MAX_BYTES <= SNAPSHOT_NAME_MAX, "names");
_Static_assert(MSG_UPDATE_SNAPSHOT_REQUEST_NOTE_MAX_BYTES <= SNAPSHOT_NOTE_MAX, "notes");

static int snapshot_reply(const struct call *call, const struct snapshot_info *info,
                          struct err *err)
{
    const struct msg_snapshot message = snapshot_message(info);

    return call_reply(call, MESSAGE(msg_snapshot_response, .snapshot = &message), err);
}

int snapshot_service_turn_complete(const struct call *call,
                                   const struct msg_turn_complete_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct snapshot_info info = { 0 };
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_turn(sandbox, &info, err);
    return r < 0 ? r : snapshot_reply(call, &info, err);
}

int snapshot_service_create(const struct call *call,
                            const struct msg_create_snapshot_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    enum snapshot_kind kind = SNAPSHOT_NAMED;
    struct snapshot_info info = { 0 };
    int r;

    if (strcmp(request->name, SNAPSHOT_TEMPLATE) == 0)
        return err_set(err, ERR_INVALID,
                       "a snapshot cannot be called 'template': that stands for the template "
                       "itself");
    (void)snapshot_kind_parse(request->kind, &kind);
    r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);
    if (r == 0)
        r = sandbox_snapshot(sandbox, request->name, kind, &info, err);
    return r < 0 ? r : snapshot_reply(call, &info, err);
}

int snapshot_service_rollback(const struct call *call, const struct msg_rollback_request *request,
                              struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_rollback(sandbox, request->snapshot, request->prune_newer, err);
    return r < 0 ? r : sandbox_reply(call, sandbox, err);
}

int snapshot_service_remove(const struct call *call,
                            const struct msg_remove_snapshot_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    return r < 0 ? r : sandbox_remove_snapshot(sandbox, request->snapshot, err);
}

int snapshot_service_update(const struct call *call,
                            const struct msg_update_snapshot_request *request, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct snapshot_info info = { 0 };
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_note_snapshot(sandbox, request->snapshot, request->note, &info, err);
    return r < 0 ? r : snapshot_reply(call, &info, err);
}

int snapshot_service_list(const struct call *call, const struct msg_list_snapshots_request *request,
                          struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    cleanup_free struct snapshot_info *infos = NULL;
    struct msg_snapshot *snapshots;
    size_t count = 0;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_list_snapshots(sandbox, &infos, &count, err);
    if (r < 0)
        return r;
    snapshots = arena_take(call->arena, count, sizeof(*snapshots));
    for (size_t i = 0; i < count; i++)
        snapshots[i] = snapshot_message(&infos[i]);
    sandbox_get_info(sandbox, false, &info);
    return call_reply(call,
                      MESSAGE(msg_list_snapshots_response, .snapshots = snapshots,
                              .snapshots_count = count, .base = info.base),
                      err);
}
